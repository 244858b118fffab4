// Any bytes as a chunked body, compared with a slow decoder written from the grammar of RFC 9112
// §7.1 with this codec's bounds: same content, same trailers, same number of bytes, or both refuse.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/body_decoder.h"

#include "fuzz/pieces.h"

namespace weir::inline v0::http::h1 {
namespace {

struct Outcome {
  enum Kind { kComplete, kWaiting, kRefused } kind = kWaiting;
  std::string content;
  std::string trailers;
  std::size_t used = 0;  // kComplete: bytes of the body
  bool operator==(const Outcome&) const = default;
};

/// A line without its CRLF; nullopt if there is none yet. Sets `bad` at a misplaced CR or LF.
std::optional<std::string_view> take_line(std::string_view& rest, bool& bad) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '\n') bad = true;
    if (rest[i] == '\r' && i + 1 < rest.size() && rest[i + 1] != '\n') bad = true;
    if (bad) return std::nullopt;
    if (rest[i] == '\r' && i + 1 < rest.size()) {
      const std::string_view line = rest.substr(0, i);
      rest.remove_prefix(i + 2);
      return line;
    }
  }
  return std::nullopt;
}

bool size_of_chunk(std::string_view line, std::uint64_t& size) {
  const std::string_view digits = line.substr(0, line.find(';'));
  if (digits.empty() || digits.size() > 16) return false;
  size = 0;
  for (const char c : digits) {
    constexpr std::string_view kLow = "0123456789abcdef";
    constexpr std::string_view kHigh = "0123456789ABCDEF";
    std::size_t value = kLow.find(c);
    if (value == std::string_view::npos) value = kHigh.find(c);
    if (value == std::string_view::npos) return false;
    size = size * 16 + value;
  }
  return size <= static_cast<std::uint64_t>(INT64_MAX);
}

/// Reads whole lines, so it finds no error before the line ends.
Outcome by_the_grammar(std::string_view bytes, const http::HttpLimits& limits) {
  Outcome out;
  std::string_view rest = bytes;
  std::size_t extensions = 0;
  const auto refused = [&] {
    out.kind = Outcome::kRefused;
    return out;
  };
  bool bad = false;
  for (;;) {
    const auto line = take_line(rest, bad);
    if (bad) return refused();
    if (!line) return out;
    std::uint64_t size = 0;
    if (!size_of_chunk(*line, size)) return refused();
    if (const std::size_t semicolon = line->find(';'); semicolon != std::string_view::npos) {
      const std::string_view extension = line->substr(semicolon + 1);
      extensions += extension.size();
      if (extension.size() > limits.chunk_extension_bytes_max ||
          extensions > limits.message_extension_bytes_max || !is_valid_field_value(extension))
        return refused();
    }
    if (size == 0) break;
    if (rest.size() < size) return out;
    out.content += rest.substr(0, size);
    rest.remove_prefix(size);
    if (rest.size() < 2) return out;
    if (rest.substr(0, 2) != "\r\n") return refused();
    rest.remove_prefix(2);
  }
  std::size_t count = 0;
  bool forbidden = false;
  for (const std::size_t begin = rest.size();;) {
    const auto line = take_line(rest, bad);
    if (bad || begin - rest.size() > limits.trailer_bytes_max) return refused();
    if (!line) return out;
    if (line->empty()) break;
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos || !is_valid_field_name(line->substr(0, colon)))
      return refused();
    const std::string_view name = line->substr(0, colon);
    std::string_view value = line->substr(colon + 1);
    if (!is_valid_field_value(value)) return refused();
    forbidden = forbidden || is_forbidden_in_trailers(field_id(name));
    if (equals_ignore_case(name, "content_length") ||
        equals_ignore_case(name, "transfer_encoding") || ++count > limits.trailer_count_max)
      return refused();
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    out.trailers += std::string(name) + "=" + std::string(value) + "\n";
  }
  if (forbidden) return refused();
  out.kind = Outcome::kComplete;
  out.used = bytes.size() - rest.size();
  return out;
}

class Decoding {
 public:
  explicit Decoding(const http::HttpLimits& limits)
      : storage_(limits.trailer_count_max), decoder_({BodyKind::kChunked, 0}, limits) {}

  void feed(std::string_view piece) {
    pending_ += piece;
    while (out_.kind == Outcome::kWaiting) {
      const std::vector<char> exact(pending_.begin(), pending_.end());
      const BodyStep step = decoder_.next(exact, storage_);
      WEIR_ASSERT(step.consumed <= exact.size());
      out_.content += step.chunk.text();
      if (step.event == BodyEvent::kTrailers)
        for (const http::HeaderView& f : decoder_.trailers())
          out_.trailers += std::string(f.name) + "=" + std::string(f.value) + "\n";
      if (step.event == BodyEvent::kError) out_.kind = Outcome::kRefused;
      pending_.erase(0, step.consumed);
      used_ += step.consumed;
      if (step.event == BodyEvent::kNeedMore) return;
      if (decoder_.done()) {
        out_.kind = Outcome::kComplete;
        out_.used = used_;
      }
    }
  }
  [[nodiscard]] const Outcome& outcome() const { return out_; }

 private:
  std::vector<http::HeaderView> storage_;
  BodyDecoder decoder_;
  std::string pending_;
  std::size_t used_ = 0;
  Outcome out_;
};

void check(std::string_view bytes) {
  http::HttpLimits limits;  // small, so that inputs reach the bounds
  limits.chunk_extension_bytes_max = 16;
  limits.message_extension_bytes_max = 40;
  limits.trailer_bytes_max = 80;
  limits.trailer_count_max = 4;
  Decoding whole(limits);
  whole.feed(bytes);
  Decoding pieces(limits);
  fuzz::in_pieces(bytes, [&](std::string_view piece) { pieces.feed(piece); });
  WEIR_ASSERT(whole.outcome() == pieces.outcome());

  const Outcome expected = by_the_grammar(bytes, limits);
  const Outcome& got = whole.outcome();
  // The codec refuses as early as possible, the grammar at the end of a line.
  if (expected.kind == Outcome::kComplete) WEIR_ASSERT(got == expected);
  if (expected.kind == Outcome::kRefused) WEIR_ASSERT(got.kind == Outcome::kRefused);
  if (got.kind == Outcome::kComplete) WEIR_ASSERT(expected == got);
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::http::h1::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
