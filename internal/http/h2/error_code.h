#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::http::h2 {

/// RFC 9113 §7. Codes received from a peer may be any 32-bit value.
enum class ErrorCode : std::uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kSettingsTimeout = 4,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kConnectError = 10,
  kEnhanceYourCalm = 11,
  kInadequateSecurity = 12,
  kHttp11Required = 13,
};

/// "protocol_error"; "unknown" for a code that the RFC does not define.
[[nodiscard]] constexpr std::string_view name_of(ErrorCode code) noexcept {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"no_error", "protocol_error", "internal_error", "flow_control_error", "settings_timeout",
       "stream_closed", "frame_size_error", "refused_stream", "cancel", "compression_error",
       "connect_error", "enhance_your_calm", "inadequate_security", "http_1_1_required"});
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace weir::inline v0::http::h2
