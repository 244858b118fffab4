#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/experimental/http/h1/message.h"

namespace weir::inline v0::http::h1 {

enum class WriteError : std::uint8_t {
  kDoesNotFit,    // use a larger buffer, or refuse the message
  kBadStartLine,  // method not a token, target or reason with a forbidden byte, status not 100–599
  kBadName,       // not a token
  kBadValue,      // CR, LF, NUL or another control byte
  kBadFraming,    // a second framing, framing by field(), framing without a body, a bad trailer
};

/// The phrase of RFC 9110 for a status; empty if it has none.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

inline constexpr std::string_view kContinueResponse = "HTTP/1.1 100 Continue\r\n\r\n";

namespace internal {
/// Not defined: using one at compile time causes the error message.
void a_block_of_fields_ends_in_crlf();
void a_block_of_fields_holds_no_empty_line();
}  // namespace internal

/// Lines that are the same in every message ("server: weir\r\n"), checked at compile time.
class FieldBlock {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is the point.
  consteval FieldBlock(const char* lines) : lines_(lines) {
    if (!lines_.ends_with("\r\n")) internal::a_block_of_fields_ends_in_crlf();
    if (lines_.starts_with("\r\n") || lines_.find("\r\n\r\n") != std::string_view::npos)
      internal::a_block_of_fields_holds_no_empty_line();
  }
  [[nodiscard]] constexpr std::string_view lines() const noexcept { return lines_; }

 private:
  std::string_view lines_;
};

/// Writes one head into the caller's span: start line, fields, framing, then end().
///
///   HeadWriter w(buffer);
///   w.status(200); w.date(cached_date); w.field("content-type", "text/plain");
///   w.content_length(5); Result<std::size_t, WriteError> bytes = w.end();
///
/// Promises: the output parses as exactly one head with exactly these fields. A name or value that
/// could end its line is an error, as is a second framing or framing given by field(). end()
/// returns the first error. Never writes outside the span; no allocation, no throw.
/// Thread-safety: none. Cost: one checked copy per field. Lifetime: that of the span.
class HeadWriter {
 public:
  explicit HeadWriter(std::span<char> out) noexcept : out_(out) {}

  /// "HTTP/1.1 200 OK". With an empty reason, the phrase of RFC 9110 is used.
  void status(unsigned code, std::string_view reason = {}, Version version = Version::k11) noexcept;
  void request(std::string_view method, std::string_view target,
               Version version = Version::k11) noexcept;

  void field(std::string_view name, std::string_view value) noexcept;
  void field(std::string_view name, std::uint64_t value) noexcept;
  void fields(FieldBlock block) noexcept;
  /// The IMF-fixdate that the caller keeps (it needs to be formatted only once per second).
  void date(std::string_view imf_fixdate) noexcept { field("date", imf_fixdate); }

  void content_length(std::uint64_t bytes) noexcept;
  void chunked() noexcept;
  void connection_close() noexcept { put_line("connection", "close"); }
  void connection_keep_alive() noexcept { put_line("connection", "keep-alive"); }

  /// The bytes written so far.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Writes the empty line. Returns the size of the whole head, or the first error.
  [[nodiscard]] Result<std::size_t, WriteError> end() noexcept;

 private:
  friend Result<std::size_t, WriteError> write_last_chunk(std::span<char>,
                                                          std::span<const HeaderView>) noexcept;
  void continue_after(std::size_t bytes) noexcept { size_ = bytes; }
  void put(std::string_view text) noexcept;
  void put_line(std::string_view name, std::string_view value) noexcept;
  void fail(WriteError error) noexcept;

  std::span<char> out_;
  std::size_t size_ = 0;
  Version version_ = Version::k11;
  WriteError error_ = WriteError::kDoesNotFit;
  bool failed_ = false;
  bool framed_ = false;
  bool may_frame_ = true;
};

/// The room that a chunk needs around its payload, so that framing and payload are sent from one
/// buffer with one write: fill buffer[kChunkHeadRoom …] and leave kChunkTailRoom after it.
inline constexpr std::size_t kChunkHeadRoom = 10;  // 8 hex digits, CRLF
inline constexpr std::size_t kChunkTailRoom = 2;

/// Frames the `payload` bytes at buffer[kChunkHeadRoom]. Returns the part of `buffer` to send:
/// size line (right-aligned before the payload), payload, CRLF. `payload` > 0 (an empty chunk would
/// end the body) and the buffer must hold it with both rooms; both are asserted.
[[nodiscard]] std::span<const char> frame_chunk(std::span<char> buffer,
                                                std::size_t payload) noexcept;

/// The size line of a chunk whose payload is sent from another buffer (it is followed by CRLF).
/// Returns its length; `out` holds at least kChunkHeadRoom bytes.
[[nodiscard]] std::size_t write_chunk_head(std::span<char> out, std::uint32_t payload) noexcept;

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

/// The last chunk with a trailer section. Fields that are not allowed as trailers give kBadFraming.
[[nodiscard]] Result<std::size_t, WriteError> write_last_chunk(
    std::span<char> out, std::span<const HeaderView> trailers) noexcept;

}  // namespace weir::inline v0::http::h1
