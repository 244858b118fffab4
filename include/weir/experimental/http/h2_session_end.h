#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/enum_names.h"

namespace weir::inline v0::http::h2 {

/// Why an HTTP/2 connection ended. The names are stable: they are metric labels.
enum class SessionEnd : std::uint8_t {
  kNone,             // it has not ended
  kFinished,         // GOAWAY was sent by one side, and all streams have ended
  kBadPreface,       // not HTTP/2
  kProtocolError,    // a frame that is not allowed, or not allowed now
  kFrameSize,        // a frame that is too large or has a wrong length
  kStreamClosed,     // frames for a stream that the peer itself had ended
  kCompression,      // HPACK does not decode
  kFlowControl,      // a window was exceeded or overflowed
  kHeaderBlock,      // a header block too long, or in too many pieces
  kSettings,         // too many entries in one SETTINGS frame
  kGlitches,         // the score reached its limit
  kOutboundQueue,    // too many frames are not sent yet
  kMemory,           // the connection's allocation budget is used up
  kSettingsTimeout,  // our SETTINGS were not acknowledged in time
  kHeaderTimeout,    // a header block was not finished in time
  kInternal,         // the codec failed
  kCount,
};
inline constexpr std::size_t kSessionEndCount = static_cast<std::size_t>(SessionEnd::kCount);
WEIR_ENUM_NAMES(SessionEnd, "none", "finished", "bad_preface", "protocol_error", "frame_size",
                "stream_closed", "compression", "flow_control", "header_block", "settings",
                "glitches", "outbound_queue", "memory", "settings_timeout", "header_timeout",
                "internal")
static_assert(kSessionEndNames.size() == kSessionEndCount);

}  // namespace weir::inline v0::http::h2
