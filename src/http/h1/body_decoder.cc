#include "weir/experimental/http/h1/body_decoder.h"

#include <algorithm>

#include "weir/base/assert.h"

#include "h1/field_scan.h"
#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

constexpr std::uint8_t kSizeDigitsMax = 16;

[[nodiscard]] const std::uint8_t* as_bytes(const char* p) noexcept {
  return reinterpret_cast<const std::uint8_t*>(p);
}

[[nodiscard]] std::uint64_t hex_value(char c) noexcept {
  return static_cast<std::uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

[[nodiscard]] bool has_forbidden(const HeaderList& trailers) noexcept {
  return std::any_of(trailers.begin(), trailers.end(),
                     [](const HeaderView& field) { return is_forbidden_in_trailers(field.id); });
}

}  // namespace

BodyDecoder::BodyDecoder(BodyFraming framing, const HttpLimits& limits) noexcept
    : limits_(&limits), remaining_(framing.length) {
  switch (framing.kind) {
    case BodyKind::kNone:
      state_ = State::kEmpty;
      break;
    case BodyKind::kLength:
      state_ = framing.length == 0 ? State::kEmpty : State::kLength;
      break;
    case BodyKind::kChunked:
      remaining_ = 0;
      state_ = State::kChunkSize;
      break;
    case BodyKind::kUntilClose:
      state_ = State::kUntilClose;
      break;
  }
}

BodyStep BodyDecoder::fail(ParseError error) noexcept {
  state_ = State::kFailed;
  error_ = error;
  return {.event = BodyEvent::kError, .error = error};
}

BodyStep BodyDecoder::last(std::size_t consumed, const char* at) noexcept {
  state_ = State::kDone;
  return {.event = BodyEvent::kData,
          .consumed = consumed,
          .chunk = {as_bytes(at), 0, BodyStatus::kComplete}};
}

/// Content up to `remaining_` at bytes[at].
BodyStep BodyDecoder::content(std::span<const char> bytes, std::size_t at) noexcept {
  const std::size_t here = bytes.size() - at;
  if (here == 0) return {.consumed = at};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(here, remaining_));
  BodyStep step{.event = BodyEvent::kData,
                .consumed = at + size,
                .chunk = {as_bytes(bytes.data() + at), size, BodyStatus::kContinue}};
  content_bytes_ += size;
  if (state_ == State::kUntilClose) return step;
  remaining_ -= size;
  if (remaining_ != 0) return step;
  if (state_ == State::kLength) {
    state_ = State::kDone;
    step.chunk.status = BodyStatus::kComplete;
  } else {
    state_ = State::kChunkDataCr;
  }
  return step;
}

BodyStep BodyDecoder::next(std::span<const char> bytes, std::span<HeaderView> storage) noexcept {
  switch (state_) {
    case State::kEmpty:
    case State::kEndAfterTrailers:
      return last(0, bytes.data());
    case State::kLength:
      return content(bytes, 0);
    case State::kUntilClose:
      remaining_ = bytes.size();
      return content(bytes, 0);
    case State::kDone:
      return {};
    case State::kFailed:
      return {.event = BodyEvent::kError, .error = error_};
    default:
      return next_of_chunked(bytes, storage);
  }
}

BodyStep BodyDecoder::finish() noexcept {
  if (state_ == State::kUntilClose || state_ == State::kEmpty || state_ == State::kEndAfterTrailers)
    return last(0, nullptr);
  if (state_ == State::kDone) return {};
  return fail(state_ == State::kFailed ? error_ : ParseError::kTruncated);
}

/// One byte of a size line. kNone: continue.
ParseError BodyDecoder::read_size_byte(char c) noexcept {
  if (scan::is(c, scan::kHex)) {
    if (++size_digits_ > kSizeDigitsMax) return ParseError::kBadChunkSize;
    remaining_ = remaining_ << 4U | hex_value(c);
    return ParseError::kNone;
  }
  if (size_digits_ == 0 || remaining_ > static_cast<std::uint64_t>(INT64_MAX))
    return ParseError::kBadChunkSize;
  if (c == '\r') {
    state_ = State::kChunkSizeLf;
  } else if (c == ';') {
    state_ = State::kChunkExtension;
  } else {
    return c == '\n' ? ParseError::kBadLineEnding : ParseError::kBadChunkSize;
  }
  return ParseError::kNone;
}

/// Skips extensions, which have no use here; they are bounded, because they are cheap to send.
ParseError BodyDecoder::skip_extension(std::span<const char> bytes, std::size_t& at) noexcept {
  const std::size_t left = limits_->chunk_extension_bytes_max - extension_bytes_;
  const std::size_t left_total = limits_->message_extension_bytes_max - extension_total_;
  const std::size_t cap = std::min({bytes.size() - at, left + 1, left_total + 1});
  const char* const begin = bytes.data() + at;
  const char* const p = scan::skip_value(begin, begin + cap);
  const auto size = static_cast<std::size_t>(p - begin);
  if (size > left || size > left_total) return ParseError::kChunkExtensionTooLong;
  extension_bytes_ += static_cast<std::uint32_t>(size);
  extension_total_ += static_cast<std::uint32_t>(size);
  at += size;
  if (at == bytes.size()) return ParseError::kNone;
  if (*p != '\r') return *p == '\n' ? ParseError::kBadLineEnding : ParseError::kBadChunkSize;
  ++at;
  state_ = State::kChunkSizeLf;
  return ParseError::kNone;
}

void BodyDecoder::end_size_line() noexcept {
  size_digits_ = 0;
  extension_bytes_ = 0;
  if (remaining_ != 0) {
    state_ = State::kChunkData;
    return;
  }
  state_ = State::kTrailers;
  trailer_cursor_ = field_section_at(0);
}

BodyStep BodyDecoder::next_of_chunked(std::span<const char> bytes,
                                      std::span<HeaderView> storage) noexcept {
  std::size_t at = 0;
  while (state_ != State::kTrailers) {
    if (state_ == State::kChunkData) return content(bytes, at);
    if (at == bytes.size()) return {.consumed = at};
    ParseError error = ParseError::kNone;
    switch (state_) {
      case State::kChunkSize:
        error = read_size_byte(bytes[at++]);
        break;
      case State::kChunkExtension:
        error = skip_extension(bytes, at);
        break;
      case State::kChunkSizeLf:
        if (bytes[at++] != '\n') error = ParseError::kBadLineEnding;
        end_size_line();
        break;
      case State::kChunkDataCr:
        if (bytes[at++] != '\r') error = ParseError::kBadChunkEnd;
        state_ = State::kChunkDataLf;
        break;
      default:  // kChunkDataLf
        if (bytes[at++] != '\n') error = ParseError::kBadChunkEnd;
        state_ = State::kChunkSize;
        break;
    }
    if (error != ParseError::kNone) return fail(error);
  }
  return trailer_section(bytes, at, storage);
}

/// The section is consumed only when it is complete, so that its views are contiguous.
BodyStep BodyDecoder::trailer_section(std::span<const char> bytes, std::size_t at,
                                      std::span<HeaderView> storage) noexcept {
  WEIR_ASSERT(storage.size() >= limits_->trailer_count_max);
  const char* const base = bytes.data() + at;
  const std::size_t here = bytes.size() - at;
  const HeadBytes view{base, base + std::min<std::size_t>(here, limits_->trailer_bytes_max)};
  const bool resumed = trailer_cursor_.pos != 0;
  trailers_.reset(storage);
  HeadResult result = scan_fields(view, trailer_cursor_, limits_->trailer_count_max,
                                  resumed ? nullptr : &trailers_);
  if (result.status == ParseStatus::kNeedMore) {
    if (here >= limits_->trailer_bytes_max) return fail(ParseError::kTrailersTooLarge);
    return {.consumed = at};
  }
  if (result.status == ParseStatus::kError) return fail(result.error);
  if (resumed) {
    trailer_cursor_ = field_section_at(0);
    result = scan_fields(view, trailer_cursor_, limits_->trailer_count_max, &trailers_);
  }
  const std::size_t consumed = at + result.consumed;
  if (trailers_.size() == 0) return last(consumed, bytes.data() + consumed);
  if (has_forbidden(trailers_)) return fail(ParseError::kForbiddenTrailer);
  state_ = State::kEndAfterTrailers;
  return {.event = BodyEvent::kTrailers, .consumed = consumed};
}

}  // namespace weir::inline v0::http::h1
