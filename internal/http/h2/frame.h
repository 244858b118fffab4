#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/h2/error_code.h"

/// The nine-byte header of every HTTP/2 frame, and the payloads of fixed shape.

namespace weir::inline v0::http::h2 {

using StreamId = std::uint32_t;

inline constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr std::size_t kFrameHeaderBytes = 9;
inline constexpr std::uint32_t kFramePayloadMax = 16384;  // we never allow or send larger ones
inline constexpr StreamId kStreamIdMax = 0x7fffffff;
inline constexpr std::uint32_t kDefaultWindow = 65535;  // until SETTINGS or WINDOW_UPDATE change it

enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr std::uint8_t kKnownFrameTypes = 10;

namespace flag {
inline constexpr std::uint8_t kEndStream = 0x1;
inline constexpr std::uint8_t kAck = 0x1;
inline constexpr std::uint8_t kEndHeaders = 0x4;
inline constexpr std::uint8_t kPadded = 0x8;
inline constexpr std::uint8_t kPriority = 0x20;
}  // namespace flag

struct FrameHeader {
  std::uint32_t length = 0;  // of the payload, 24 bits
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  StreamId stream = 0;  // 31 bits; the reserved bit is ignored

  [[nodiscard]] constexpr bool is(FrameType t) const noexcept {
    return type == static_cast<std::uint8_t>(t);
  }
  [[nodiscard]] constexpr bool has(std::uint8_t bits) const noexcept { return (flags & bits) != 0; }
  bool operator==(const FrameHeader&) const = default;
};

[[nodiscard]] constexpr std::uint32_t read_u32(const std::uint8_t* p) noexcept {
  return std::uint32_t{p[0]} << 24U | std::uint32_t{p[1]} << 16U | std::uint32_t{p[2]} << 8U |
         std::uint32_t{p[3]};
}
constexpr void write_u32(std::uint8_t* p, std::uint32_t value) noexcept {
  p[0] = static_cast<std::uint8_t>(value >> 24U);
  p[1] = static_cast<std::uint8_t>(value >> 16U);
  p[2] = static_cast<std::uint8_t>(value >> 8U);
  p[3] = static_cast<std::uint8_t>(value);
}

[[nodiscard]] constexpr FrameHeader read_frame_header(const std::uint8_t* p) noexcept {
  return {.length = std::uint32_t{p[0]} << 16U | std::uint32_t{p[1]} << 8U | std::uint32_t{p[2]},
          .type = p[3],
          .flags = p[4],
          .stream = read_u32(p + 5) & kStreamIdMax};
}
constexpr void write_frame_header(std::uint8_t* p, const FrameHeader& header) noexcept {
  p[0] = static_cast<std::uint8_t>(header.length >> 16U);
  p[1] = static_cast<std::uint8_t>(header.length >> 8U);
  p[2] = static_cast<std::uint8_t>(header.length);
  p[3] = header.type;
  p[4] = header.flags;
  write_u32(p + 5, header.stream);
}

inline constexpr std::size_t kGoawayBytes = kFrameHeaderBytes + 8;

/// A GOAWAY frame without debug data, for a session that can send nothing else.
[[nodiscard]] constexpr std::array<std::uint8_t, kGoawayBytes> goaway_frame(
    StreamId last, ErrorCode code) noexcept {
  std::array<std::uint8_t, kGoawayBytes> bytes{};
  write_frame_header(bytes.data(), {.length = 8,
                                    .type = static_cast<std::uint8_t>(FrameType::kGoaway),
                                    .flags = 0,
                                    .stream = 0});
  write_u32(bytes.data() + kFrameHeaderBytes, last);
  write_u32(bytes.data() + kFrameHeaderBytes + 4, static_cast<std::uint32_t>(code));
  return bytes;
}

/// An empty SETTINGS frame and a GOAWAY, sent by a server that has no place for a session.
[[nodiscard]] constexpr auto refusal_frames() noexcept {
  std::array<std::uint8_t, kFrameHeaderBytes + kGoawayBytes> bytes{};
  write_frame_header(bytes.data(), {.length = 0,
                                    .type = static_cast<std::uint8_t>(FrameType::kSettings),
                                    .flags = 0,
                                    .stream = 0});
  const auto goaway = goaway_frame(0, ErrorCode::kEnhanceYourCalm);
  for (std::size_t i = 0; i < goaway.size(); ++i) bytes[kFrameHeaderBytes + i] = goaway[i];
  return bytes;
}

}  // namespace weir::inline v0::http::h2
