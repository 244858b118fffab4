#include "policy/recording.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/number_text.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr std::string_view kMagic = "WEIRDEC1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFixedBytes = 64;
constexpr std::size_t kChecksumAt = 56;
constexpr std::size_t kTextMax = kRecordingHeaderMax / 4;  // of each of the three

void put(std::string& out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) {
    out += static_cast<char>(static_cast<unsigned char>(value >> (8U * i)));
  }
}

std::uint64_t get(std::span<const std::byte> from, std::size_t at, unsigned bytes) noexcept {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(from[at + i]) << (8U * i);
  }
  return value;
}

/// FNV-1a.
std::uint64_t checksum(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (text.size() + line.size() + 1 > kTextMax) break;
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<RecordingHeader::Scope> scope_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto id = parse_number<std::uint16_t>(line.substr(0, space));
  if (!id) return std::nullopt;
  return RecordingHeader::Scope{*id, std::string(line.substr(space + 1))};
}

struct Head {
  RecordingHeader header;
  std::size_t bytes = 0;
};

Result<Head, std::string> read_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) {
    return unexpected<std::string>("this is no recording of Weir: it does not begin with " +
                                   std::string(kMagic));
  }
  if (bytes.size() < kFixedBytes) return unexpected<std::string>("the header is cut off");
  const std::uint64_t version = get(bytes, 8, 4);
  if (version != kVersion) {
    return unexpected<std::string>("the recording has version " + std::to_string(version) +
                                   ", and this program reads version " + std::to_string(kVersion));
  }
  const std::uint64_t record = get(bytes, 12, 4);
  const std::uint64_t whole = get(bytes, 16, 4);
  const std::uint64_t reasons = get(bytes, 20, 4);
  const std::uint64_t scopes = get(bytes, 24, 4);
  const std::uint64_t config = get(bytes, 28, 4);
  if (record != kDecisionBytes || whole % kFixedBytes != 0 || whole > kRecordingHeaderMax ||
      kFixedBytes + reasons + scopes + config > whole) {
    return unexpected<std::string>("the header has impossible sizes");
  }
  if (whole > bytes.size()) return unexpected<std::string>("the header is cut off");
  const std::string covered = std::string(text.substr(0, kChecksumAt)) +
                              std::string(text.substr(kFixedBytes, whole - kFixedBytes));
  if (checksum(covered) != get(bytes, kChecksumAt, 8)) {
    return unexpected<std::string>("the header is damaged: its checksum does not match");
  }
  Head head;
  head.bytes = whole;
  head.header.started_unix_us = static_cast<std::int64_t>(get(bytes, 32, 8));
  head.header.capacity = get(bytes, 40, 8);
  head.header.reasons = split(text.substr(kFixedBytes, reasons));
  for (const std::string& line : split(text.substr(kFixedBytes + reasons, scopes))) {
    auto scope = scope_of(line);
    if (!scope) return unexpected<std::string>("the header names a scope without a number");
    head.header.scopes.push_back(std::move(*scope));
  }
  head.header.config = text.substr(kFixedBytes + reasons + scopes, config);
  return head;
}

std::uint64_t tag_of(SipKey key, std::uint64_t tag, std::uint64_t kind) noexcept {
  const std::array<std::uint64_t, 2> words = {tag, kind};
  return siphash64(key, std::as_bytes(std::span(words)));
}

}  // namespace

std::string encode_header(const RecordingHeader& header) {
  const std::string reasons = lines_of(header.reasons);
  std::vector<std::string> names;
  for (const RecordingHeader::Scope& scope : header.scopes) {
    names.push_back(std::to_string(scope.id) + " " + scope.name);
  }
  const std::string scopes = lines_of(names);
  const std::string_view config = std::string_view(header.config).substr(0, kTextMax);
  std::string texts = reasons + scopes + std::string(config);
  texts.resize((texts.size() + kFixedBytes - 1) / kFixedBytes * kFixedBytes);
  std::string out(kMagic);
  put(out, kVersion, 4);
  put(out, kDecisionBytes, 4);
  put(out, kFixedBytes + texts.size(), 4);
  put(out, reasons.size(), 4);
  put(out, scopes.size(), 4);
  put(out, config.size(), 4);
  put(out, static_cast<std::uint64_t>(header.started_unix_us), 8);
  put(out, header.capacity, 8);
  put(out, 0, 8);
  const std::uint64_t sum = checksum(out + texts);
  put(out, sum, 8);
  return out + texts;
}

void append_decision(std::string& out, const DecisionWords& words) {
  for (const std::uint64_t word : words) put(out, word, sizeof(word));
}

DecisionWords words_at(std::span<const std::byte> record) noexcept {
  DecisionWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = get(record, i * 8, 8);
  return words;
}

Result<Recording, std::string> read_recording(std::span<const std::byte> bytes) {
  Result<Head, std::string> head = read_header(bytes);
  if (!head) return unexpected(std::move(head.error()));
  Recording recording;
  recording.header = std::move(head->header);
  std::span<const std::byte> rest = bytes.subspan(head->bytes);
  const std::size_t places = rest.size() / kDecisionBytes;
  recording.cut = places < recording.header.capacity || rest.size() % kDecisionBytes != 0;
  for (std::size_t i = 0; i < places; ++i) {
    const DecisionWords words = words_at(rest.subspan(i * kDecisionBytes, kDecisionBytes));
    if (words == DecisionWords{}) continue;
    const std::optional<RecordedDecision> decision = unpack(words);
    if (!decision || decision->reason >= recording.header.reasons.size()) {
      ++recording.torn;
      continue;
    }
    recording.decisions.push_back(*decision);
  }
  std::stable_sort(
      recording.decisions.begin(), recording.decisions.end(),
      [](const RecordedDecision& a, const RecordedDecision& b) { return a.at < b.at; });
  return recording;
}

RecordedDecision with_tags(RecordedDecision decision, SipKey key) noexcept {
  const auto tagged = [&](auto& tag, std::uint64_t kind) {
    using Tag = std::remove_reference_t<decltype(tag)>;
    if (tag != 0) tag = static_cast<Tag>(tag_of(key, tag, kind) | 1U);
  };
  tagged(decision.request, 1);
  tagged(decision.actor, 2);
  tagged(decision.peer, 3);
  return decision;
}

}  // namespace weir::inline v0::inline policy
