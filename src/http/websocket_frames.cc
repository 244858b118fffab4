#include "http/websocket_frames.h"

#include <algorithm>

namespace weir::inline v0::http {
namespace {

constexpr std::uint8_t kOpcodeMask = 0x0f;
constexpr std::uint8_t kOpcodeClose = 0x8;
constexpr std::uint8_t kMaskBit = 0x80;
constexpr std::uint8_t kLength16 = 126;  // in the 7 bits: the length follows in 2 bytes …
constexpr std::uint8_t kLength64 = 127;  // … in 8 bytes
constexpr std::uint8_t kMaskBytes = 4;

}  // namespace

void WebSocketFrames::pass(std::string_view bytes) noexcept {
  while (!bytes.empty()) bytes.remove_prefix(step(bytes));
}

std::size_t WebSocketFrames::rest_of_frame(std::string_view bytes) const noexcept {
  WebSocketFrames ahead = *this;
  std::size_t used = 0;
  while (!ahead.at_boundary() && used < bytes.size()) used += ahead.step(bytes.substr(used));
  return used;
}

/// Takes at least one byte; never more than one part of a frame.
std::size_t WebSocketFrames::step(std::string_view bytes) noexcept {
  const auto byte = static_cast<std::uint8_t>(bytes.front());
  switch (stage_) {
    case Stage::kFirst:
      opcode_ = byte & kOpcodeMask;
      stage_ = Stage::kSecond;
      return 1;
    case Stage::kSecond:
      read_second(byte);
      return 1;
    case Stage::kLength:
      read_length(byte);
      return 1;
    case Stage::kMask:
      if (--mask_left_ == 0) enter_next();
      return 1;
    case Stage::kPayload: {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, bytes.size()));
      payload_left_ -= size;
      if (payload_left_ == 0) enter_next();
      return size;
    }
    case Stage::kLost:
      break;
  }
  return bytes.size();
}

void WebSocketFrames::read_second(std::uint8_t byte) noexcept {
  const auto length = static_cast<std::uint8_t>(byte & ~kMaskBit);
  mask_left_ = (byte & kMaskBit) != 0 ? kMaskBytes : 0;
  length_left_ = length == kLength64 ? 8 : length == kLength16 ? 2 : 0;
  payload_left_ = length_left_ > 0 ? 0 : length;
  enter_next();
}

void WebSocketFrames::read_length(std::uint8_t byte) noexcept {
  const bool first_of_64 = length_left_ == 8;
  if (first_of_64 && byte >= 0x80) {  // RFC 6455 §5.2: the highest bit must be 0
    stage_ = Stage::kLost;
    return;
  }
  payload_left_ = payload_left_ << 8U | byte;
  if (--length_left_ == 0) enter_next();
}

void WebSocketFrames::enter_next() noexcept {
  if (length_left_ > 0) {
    stage_ = Stage::kLength;
  } else if (mask_left_ > 0) {
    stage_ = Stage::kMask;
  } else if (payload_left_ > 0) {
    stage_ = Stage::kPayload;
  } else {
    stage_ = Stage::kFirst;
    closed_ = closed_ || opcode_ == kOpcodeClose;
  }
}

std::array<char, kMaskedGoingAwayBytes> masked_going_away(std::uint32_t key) noexcept {
  constexpr std::size_t kHeader = 2;
  std::array<char, kMaskedGoingAwayBytes> frame{};
  frame[0] = kGoingAway[0];
  frame[1] = static_cast<char>(static_cast<std::uint8_t>(kGoingAway[1]) | kMaskBit);
  char* const mask = frame.data() + kHeader;
  for (std::size_t i = 0; i < kMaskBytes; ++i) mask[i] = static_cast<char>(key >> (8 * i));
  char* const payload = mask + kMaskBytes;
  for (std::size_t i = 0; i + kHeader < kGoingAway.size(); ++i) {
    payload[i] = static_cast<char>(kGoingAway[kHeader + i] ^ mask[i % kMaskBytes]);
  }
  return frame;
}

}  // namespace weir::inline v0::http
