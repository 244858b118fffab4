#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"

namespace weir::inline v0::io {

/// Why an IO call moved no bytes. kAgain is not a failure: wait until the socket is ready.
enum class IoError : std::uint8_t {
  kAgain,        // not ready; an event follows when it is
  kEof,          // the peer ended its side
  kReset,        // the connection was reset by the peer or the network
  kTimedOut,     // the kernel gave up (connect, TCP_USER_TIMEOUT, keep-alive)
  kRefused,      // connection refused
  kUnreachable,  // no route
  kNoFds,        // the process or the system has no descriptor left
  kNoMemory,     // the kernel has no buffer left
  kInUse,        // address already in use
  kDenied,       // permission denied
  kInvalid,      // the address or an argument is wrong
  kTls,          // invalid TLS
  kOther,
};

WEIR_ENUM_NAMES(IoError, "again", "eof", "reset", "timed_out", "refused", "unreachable", "no_fds",
                "no_memory", "in_use", "denied", "invalid", "tls", "other")

/// The IoError for an errno value.
[[nodiscard]] IoError io_error_of(int error_number) noexcept;

}  // namespace weir::inline v0::io
