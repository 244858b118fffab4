#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::http::h2 {

/// Why an HTTP/2 connection came to its end. Names are stable: they are metric labels.
enum class SessionEnd : std::uint8_t {
  kNone,             // it goes on
  kFinished,         // GOAWAY was said, by us or by the peer, and all streams are over
  kBadPreface,       // not HTTP/2
  kProtocolError,    // a frame where, or as, it may not be
  kFrameSize,        // a frame larger than it may be, or of a wrong length
  kStreamClosed,     // frames for a stream that the peer itself had ended
  kCompression,      // HPACK does not decode
  kFlowControl,      // windows exceeded or overflown
  kHeaderBlock,      // a header block too long, or in too many pieces
  kSettings,         // too many entries in one SETTINGS frame
  kGlitches,         // the score reached its limit
  kOutboundQueue,    // more frames to send than may wait
  kMemory,           // the connection's allocation budget is used up
  kSettingsTimeout,  // our SETTINGS were not acknowledged in time
  kHeaderTimeout,    // a header block was not finished in time
  kInternal,         // the codec failed
  kCount,
};
inline constexpr std::size_t kSessionEndCount = static_cast<std::size_t>(SessionEnd::kCount);
inline constexpr std::array<std::string_view, kSessionEndCount> kSessionEndNames = {
    "none",         "finished",         "bad_preface",    "protocol_error",
    "frame_size",   "stream_closed",    "compression",    "flow_control",
    "header_block", "settings",         "glitches",       "outbound_queue",
    "memory",       "settings_timeout", "header_timeout", "internal"};
[[nodiscard]] constexpr std::string_view name_of(SessionEnd end) noexcept {
  return kSessionEndNames[static_cast<std::size_t>(end)];
}

}  // namespace weir::inline v0::http::h2
