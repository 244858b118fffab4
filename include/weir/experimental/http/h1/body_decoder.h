#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/limits.h"

namespace weir::inline v0::http::h1 {

enum class BodyEvent : std::uint8_t {
  kNeedMore,  // the bytes contain no complete event
  kData,      // `chunk` views the bytes; chunk.last() ends the message
  kTrailers,  // `trailers` views the bytes; the last chunk, empty, follows at the next call
  kError,
};

struct BodyStep {
  BodyEvent event = BodyEvent::kNeedMore;
  ParseError error = ParseError::kNone;
  std::size_t consumed = 0;  // with every event: drop this many bytes after using the views
  BodyChunk chunk{};
};

/// Removes the framing of a body: spans in, views of the content out, nothing is copied.
///
///   for (;;) {
///     BodyStep step = decoder.next(bytes, trailers);
///     bytes = bytes.subspan(step.consumed);  // views stay valid until the region moves
///     if (step.event == kNeedMore) break;    // keep `bytes`, e.g. a partial trailer section
///     …
///   }
///
/// Promises: the pieces are the content, in order; how the input was split decides only where
/// pieces end. kData with chunk.last() comes exactly once, and nothing after it is read. Chunk
/// sizes are bare hex (at most 16 digits, no sign, no blanks), lines end in CRLF, extensions and
/// trailers are bounded, forbidden trailers are refused. No allocation, no throw.
/// Thread-safety: none. Cost: O(1) per piece and per chunk header byte; content is not read.
/// Lifetime: views of `bytes`, and of `trailers` storage.
class BodyDecoder {
 public:
  BodyDecoder() noexcept = default;  // kNone
  BodyDecoder(BodyFraming framing, const HttpLimits& limits) noexcept;

  /// `bytes` are those not yet consumed. `storage` has room for trailer_count_max views (only
  /// chunked bodies use it; its content is undefined until kTrailers).
  [[nodiscard]] BodyStep next(std::span<const char> bytes, std::span<HeaderView> storage) noexcept;

  /// The peer closed its side: completes a kUntilClose body, else kTruncated.
  [[nodiscard]] BodyStep finish() noexcept;

  /// The fields of the last kTrailers.
  [[nodiscard]] const HeaderList& trailers() const noexcept { return trailers_; }

  /// Trailers were given out; the next call gives the last piece without further bytes.
  [[nodiscard]] bool end_due() const noexcept { return state_ == State::kEndAfterTrailers; }
  /// The last piece has been given out.
  [[nodiscard]] bool done() const noexcept { return state_ == State::kDone; }
  /// Bytes of content returned so far.
  [[nodiscard]] std::uint64_t content_bytes() const noexcept { return content_bytes_; }
  /// Of a kLength body: bytes still to come.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return remaining_; }

 private:
  enum class State : std::uint8_t {
    kEmpty,
    kLength,
    kUntilClose,
    kChunkSize,
    kChunkExtension,
    kChunkSizeLf,
    kChunkData,
    kChunkDataCr,
    kChunkDataLf,
    kTrailers,
    kEndAfterTrailers,
    kDone,
    kFailed,
  };

  BodyStep fail(ParseError error) noexcept;
  BodyStep last(std::size_t consumed, const char* at) noexcept;
  BodyStep content(std::span<const char> bytes, std::size_t at) noexcept;
  BodyStep next_of_chunked(std::span<const char> bytes, std::span<HeaderView> storage) noexcept;
  BodyStep trailer_section(std::span<const char> bytes, std::size_t at,
                           std::span<HeaderView> storage) noexcept;
  ParseError read_size_byte(char c) noexcept;
  ParseError skip_extension(std::span<const char> bytes, std::size_t& at) noexcept;
  void end_size_line() noexcept;

  const HttpLimits* limits_ = nullptr;
  std::uint64_t remaining_ = 0;  // of the body (kLength) or the chunk
  std::uint64_t content_bytes_ = 0;
  std::uint32_t extension_bytes_ = 0;  // this chunk
  std::uint32_t extension_total_ = 0;  // this message
  HeadCursor trailer_cursor_;
  std::uint8_t size_digits_ = 0;
  State state_ = State::kEmpty;
  ParseError error_ = ParseError::kNone;
  HeaderList trailers_;
};

}  // namespace weir::inline v0::http::h1
