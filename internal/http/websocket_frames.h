#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

/// Follows the frames of one direction of a WebSocket connection (RFC 6455 §5.2), so that a Close
/// frame can be put between two of them. It reads headers and skips payloads; it judges nothing.
///
///   stage     the next byte is                                 leaves by
///   kFirst    FIN and opcode: at a boundary                    that byte → kSecond
///   kSecond   MASK and the length of 7 bits                    that byte → the next part that
///   exists kLength   of the length of 16 or 64 bits                   its last byte → the next
///   part kMask     of the masking key                               its last byte → the next part
///   kPayload  of the payload                                   its last byte → kFirst
///   kLost     anything: a length of 2^63 or more was announced –
///
/// Promises: the same for every way to split the bytes; total, for hostile bytes too. After an
/// impossible length there is no boundary any more. Extensions do not matter: none of them may
/// change where a frame ends.
/// Thread-safety: a value. Cost: a few instructions per frame, not per byte; 16 bytes.
class WebSocketFrames {
 public:
  /// These bytes have passed.
  void pass(std::string_view bytes) noexcept;
  /// How many of `bytes`, which come next, belong to the frame that has begun; all of them if it
  /// does not end there, none at a boundary.
  [[nodiscard]] std::size_t rest_of_frame(std::string_view bytes) const noexcept;

  /// Another frame may begin here.
  [[nodiscard]] bool at_boundary() const noexcept { return stage_ == Stage::kFirst; }
  /// A whole Close frame has passed: nothing follows it in this direction.
  [[nodiscard]] bool closed() const noexcept { return closed_; }

 private:
  enum class Stage : std::uint8_t { kFirst, kSecond, kLength, kMask, kPayload, kLost };

  [[nodiscard]] std::size_t step(std::string_view bytes) noexcept;
  void read_second(std::uint8_t byte) noexcept;
  void read_length(std::uint8_t byte) noexcept;
  void enter_next() noexcept;

  std::uint64_t payload_left_ = 0;
  Stage stage_ = Stage::kFirst;
  std::uint8_t opcode_ = 0;
  std::uint8_t length_left_ = 0;  // bytes of the extended length
  std::uint8_t mask_left_ = 0;    // bytes of the masking key
  bool closed_ = false;
};

/// A Close frame with status 1001 and the text "going away", as a server sends it.
inline constexpr std::string_view kGoingAway = "\x88\x0c\x03\xe9going away";

/// The same as a client sends it: masked with this key.
inline constexpr std::size_t kMaskedGoingAwayBytes = kGoingAway.size() + 4;
[[nodiscard]] std::array<char, kMaskedGoingAwayBytes> masked_going_away(std::uint32_t key) noexcept;

}  // namespace weir::inline v0::http
