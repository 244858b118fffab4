#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.h"

namespace weir::inline v0::http {

// What a proxy has to know of gRPC over HTTP/2: which requests are gRPC calls, their deadline and
// their status. Messages are bytes to it.

/// The codes that a proxy uses itself; any other code is passed on.
enum class GrpcStatus : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

/// "application/grpc", with "+format" or parameters, in any case. gRPC-Web is plain HTTP.
[[nodiscard]] bool is_grpc_content_type(std::string_view value) noexcept;

/// The longest deadline that is kept; longer ones are cut.
inline constexpr Duration kGrpcTimeoutMax = std::chrono::hours(24);

/// A grpc-timeout: 1 to 8 digits and one of H M S m u n. nullopt: not one.
[[nodiscard]] std::optional<Duration> parse_grpc_timeout(std::string_view value) noexcept;

/// A grpc-timeout that is never longer than `left`: milliseconds, below 10 ms microseconds.
class GrpcTimeoutText {
 public:
  explicit GrpcTimeoutText(Duration left) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 12> text_{};
  std::size_t size_ = 0;
};

/// A grpc-status of one or two digits; nullopt: none, or not a number. Codes that gRPC does not
/// know are returned as they are.
[[nodiscard]] std::optional<std::uint8_t> parse_grpc_status(std::string_view value) noexcept;

/// The status that gRPC clients derive from an HTTP status without a grpc-status.
[[nodiscard]] GrpcStatus grpc_status_of_http(unsigned status) noexcept;

}  // namespace weir::inline v0::http
