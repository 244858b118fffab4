#include "recorder_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "weir/base/errno_text.h"
#include "weir/base/number_text.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::string_view kSuffix = ".weirrec";
constexpr std::string_view kRunning = "running.weirrec";
constexpr Duration kTryAgain = std::chrono::seconds(60);

/// The seconds in the name of a file that is kept; nothing for other files.
std::optional<std::int64_t> kept_since(std::string_view name) {
  const bool kept = name.starts_with("overload-") || name.starts_with("ended-");
  if (!kept || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  name.remove_prefix(name.find('-') + 1);
  return parse_number<std::int64_t>(name.substr(0, name.find('.')));
}

}  // namespace

std::string RecorderFiles::path(const std::string& name) const {
  return setup_.config.folder + "/" + name;
}

void RecorderFiles::write(std::span<const policy::DecisionWords> decisions, std::uint64_t lost,
                          Duration now) {
  lost_ += lost;
  if (!ready(now)) {
    lost_ += decisions.size();
    return;
  }
  if (const auto done = put(decisions); !done) {
    lost_ += decisions.size();
    return failed(done.error(), now);
  }
  written_ += decisions.size();
}

bool RecorderFiles::ready(Duration now) {
  if (file_) return true;
  if (failing_ && now < try_again_) return false;
  if (const auto opened = open(); !opened) {
    failed(opened.error(), now);
    return false;
  }
  if (failing_.exchange(false)) setup_.say("the decision recorder writes its file again");
  return true;
}

Result<void, std::errc> RecorderFiles::open() {
  move_away(path(std::string(kRunning)), "ended");
  policy::RecordingHeader header = setup_.header(0);
  const std::uint64_t bytes = setup_.config.file_bytes;
  first_ = policy::encode_header(header).size();
  header.capacity = places_ = (bytes - std::min(bytes, first_)) / policy::kDecisionBytes;
  if (places_ == 0) return unexpected(std::errc::file_too_large);
  auto file = io::RecordFile::create(path(std::string(kRunning)), bytes);
  if (!file) return unexpected(file.error());
  if (auto done = file->write(0, policy::encode_header(header)); !done) return done;
  file_ = std::move(*file);
  next_ = 0;
  key_ = new_key();
  return {};
}

/// In pieces that are consecutive in the file.
Result<void, std::errc> RecorderFiles::put(std::span<const policy::DecisionWords> decisions) {
  while (!decisions.empty()) {
    const std::size_t count =
        std::min<std::size_t>({decisions.size(), static_cast<std::size_t>(places_ - next_),
                               kChunkBytes / policy::kDecisionBytes});
    std::string bytes;
    bytes.reserve(count * policy::kDecisionBytes);
    for (const policy::DecisionWords& words : decisions.first(count)) {
      const auto decision = policy::unpack(words);
      policy::append_decision(bytes,
                              decision ? policy::pack(policy::with_tags(*decision, key_)) : words);
    }
    auto done = file_->write(first_ + next_ * policy::kDecisionBytes, bytes);
    if (!done) return done;
    next_ = (next_ + count) % places_;
    decisions = decisions.subspan(count);
  }
  return {};
}

void RecorderFiles::failed(std::errc why, Duration now) {
  file_.reset();
  try_again_ = now + kTryAgain;
  if (failing_.exchange(true)) return;
  setup_.say("the decision recorder cannot write in " + setup_.config.folder + ": " +
             errno_text(why) + "; decisions are kept in memory only; check recorder.folder");
}

void RecorderFiles::watch_overload(bool overloaded, Duration now) {
  const bool begins = !std::exchange(overloaded_, overloaded) && overloaded;
  if (began_ && now >= *began_ + kAround) {
    freeze(now);
    began_.reset();
  }
  if (begins && !began_) began_ = now;
}

/// The decisions of the running file that ended around the beginning of the overload.
Result<void, std::errc> RecorderFiles::each_around(const Visit& visit) {
  constexpr std::uint64_t kPerChunk = kChunkBytes / policy::kDecisionBytes;
  std::string chunk;
  for (std::uint64_t at = 0; at < places_; at += kPerChunk) {
    chunk.resize(static_cast<std::size_t>(std::min(kPerChunk, places_ - at)) *
                 policy::kDecisionBytes);
    const auto got = file_->read(first_ + at * policy::kDecisionBytes, chunk);
    if (!got) return unexpected(got.error());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(chunk.data(), *got));
    for (std::size_t i = 0; i + policy::kDecisionBytes <= bytes.size();
         i += policy::kDecisionBytes) {
      const auto one = policy::unpack(policy::words_at(bytes.subspan(i, policy::kDecisionBytes)));
      if (!one) continue;
      const Duration from_begin = one->ended_at() - *began_;
      if (from_begin >= -kAround && from_begin <= kAround) visit(*one);
    }
  }
  return {};
}

void RecorderFiles::freeze(Duration now) {
  if (!file_) return;
  std::uint64_t count = 0;
  auto done = each_around([&](const policy::RecordedDecision&) { ++count; });
  if (!done) return failed(done.error(), now);
  const std::string part = path("overload.part");
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  const std::string head = policy::encode_header(setup_.header(count));
  auto copy = io::RecordFile::create(part, head.size() + count * policy::kDecisionBytes);
  if (!copy) return failed(copy.error(), now);
  done = copy->write(0, head);
  const SipKey key = new_key();
  std::uint64_t offset = head.size();
  std::string bytes;
  const auto flush = [&] {
    if (done) done = copy->write(offset, bytes);
    offset += bytes.size();
    bytes.clear();
  };
  const auto read = each_around([&](const policy::RecordedDecision& one) {
    policy::append_decision(bytes, policy::pack(policy::with_tags(one, key)));
    if (bytes.size() >= kChunkBytes / 2) flush();
  });
  flush();
  if (!read || !done) return failed(!read ? read.error() : done.error(), now);
  move_away(part, "overload");
  ++frozen_;
}

/// Gives a finished file its name, which no other has, and makes room for it.
void RecorderFiles::move_away(const std::string& from, const std::string& kind) {
  std::error_code ignored;
  if (!std::filesystem::exists(from, ignored)) return;
  const std::string stem = path(kind + "-" + std::to_string(setup_.unix_seconds()));
  std::string to = stem + std::string(kSuffix);
  for (int n = 2; std::filesystem::exists(to, ignored) && n < 100; ++n) {
    to = stem + "." + std::to_string(n) + std::string(kSuffix);
  }
  std::filesystem::rename(from, to, ignored);
  remove_oldest();
}

void RecorderFiles::remove_oldest() {
  std::vector<std::pair<std::int64_t, std::string>> kept;
  std::error_code error;
  for (std::filesystem::directory_iterator it(setup_.config.folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (const auto since = kept_since(name)) kept.emplace_back(*since, name);
  }
  std::sort(kept.begin(), kept.end());
  for (std::size_t i = 0; i + setup_.config.files_max < kept.size(); ++i) {
    std::filesystem::remove(path(kept[i].second), error);
  }
}

RecorderFiles::Stats RecorderFiles::stats() const noexcept {
  return {.written = written_, .lost = lost_, .frozen = frozen_, .failing = failing_};
}

}  // namespace weir::inline v0::gateway
