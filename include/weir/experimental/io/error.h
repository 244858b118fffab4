#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::io {

/// Why an IO call gave nothing. kAgain is not a failure: wait for readiness.
enum class IoError : std::uint8_t {
  kAgain,        // nothing now; readiness will be told
  kEof,          // the peer ended its side
  kReset,        // the peer, or the network, broke the connection
  kTimedOut,     // the kernel gave up (connect, TCP_USER_TIMEOUT, keep-alive)
  kRefused,      // nobody listens there
  kUnreachable,  // no route
  kNoFds,        // the process or the system has no descriptor left
  kNoMemory,     // the kernel has no buffer left
  kInUse,        // the address is taken
  kDenied,       // not permitted
  kInvalid,      // the address or an argument is wrong
  kTls,          // what came is not TLS as we accept it
  kOther,
};

inline constexpr std::array<std::string_view, 13> kIoErrorNames = {
    "again",     "eof",    "reset",  "timed_out", "refused", "unreachable", "no_fds",
    "no_memory", "in_use", "denied", "invalid",   "tls",     "other"};

[[nodiscard]] constexpr std::string_view name_of(IoError error) noexcept {
  return kIoErrorNames[static_cast<std::size_t>(error)];
}

/// The IoError that an errno value means.
[[nodiscard]] IoError io_error_of(int error_number) noexcept;

}  // namespace weir::inline v0::io
