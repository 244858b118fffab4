#pragma once

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
  switch (code) {
    case ErrorCode::kNoError:
      return "no_error";
    case ErrorCode::kProtocolError:
      return "protocol_error";
    case ErrorCode::kInternalError:
      return "internal_error";
    case ErrorCode::kFlowControlError:
      return "flow_control_error";
    case ErrorCode::kSettingsTimeout:
      return "settings_timeout";
    case ErrorCode::kStreamClosed:
      return "stream_closed";
    case ErrorCode::kFrameSizeError:
      return "frame_size_error";
    case ErrorCode::kRefusedStream:
      return "refused_stream";
    case ErrorCode::kCancel:
      return "cancel";
    case ErrorCode::kCompressionError:
      return "compression_error";
    case ErrorCode::kConnectError:
      return "connect_error";
    case ErrorCode::kEnhanceYourCalm:
      return "enhance_your_calm";
    case ErrorCode::kInadequateSecurity:
      return "inadequate_security";
    case ErrorCode::kHttp11Required:
      return "http_1_1_required";
  }
  return "unknown";
}

}  // namespace weir::inline v0::http::h2
