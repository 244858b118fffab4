#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::server {

/// Why a connection, and with it its streams, ended. Names are stable: they are metric labels.
enum class CloseReason : std::uint8_t {
  kNone,              // still open
  kClient,            // the client ended it between requests
  kFinished,          // we said "connection: close" and the response is out
  kIdle,              // idle timeout
  kIdlePressure,      // idle, and its place was needed
  kHeaderTimeout,     // the head did not come in time
  kBodyTimeout,       // the body came slower than the minimum rate
  kWriteTimeout,      // the client read slower than the minimum rate
  kTunnelIdle,        // a tunnel carried nothing for too long
  kBackpressure,      // its output was blocked for too long, or it was the oldest blocked one
  kParseError,        // not HTTP as we accept it
  kReadError,         // the kernel reported an error on read
  kWriteError,        // the kernel reported an error on write
  kClientAbort,       // the client went away during a request
  kUnreadBody,        // answered before its body had come, and the rest is not worth reading
  kReset,             // the handler reset the stream
  kTunnelEnd,         // both sides of a tunnel ended
  kShutdown,          // the server stops
  kTls,               // the TLS layer failed
  kHandshake,         // the TLS handshake failed, or the client left in it
  kHandshakeTimeout,  // the TLS handshake was not done in time
  kNotTls,            // something else on a port that speaks TLS
  kProtocol,          // HTTP/2: the peer broke the protocol, or one of its bounds
  kCount,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(CloseReason::kCount)>
    kCloseReasonNames = {"none",         "client",        "finished",
                         "idle",         "idle_pressure", "header_timeout",
                         "body_timeout", "write_timeout", "tunnel_idle",
                         "backpressure", "parse_error",   "read_error",
                         "write_error",  "client_abort",  "unread_body",
                         "reset",        "tunnel_end",    "shutdown",
                         "tls",          "handshake",     "handshake_timeout",
                         "not_tls",      "protocol"};
[[nodiscard]] constexpr std::string_view name_of(CloseReason reason) noexcept {
  return kCloseReasonNames[static_cast<std::size_t>(reason)];
}

/// Why the server itself refused something before a handler saw it, or for want of memory.
enum class RefuseReason : std::uint8_t {
  kConnections,    // no place, and no idle connection to close
  kPressure,       // accept was shed at HIGH or CRITICAL
  kPressureShare,  // accept was shed by chance at ELEVATED
  kNoFds,          // accept failed: no descriptor
  kNoMemory,       // accept failed: no kernel memory
  kArena,          // no arena, and no place in the queue
  kArenaTimeout,   // waited too long for an arena
  kOverload503,    // a handler answered send_503()
  kBadRequest,     // a parse error was answered (4xx, 5xx)
  kHandshake,      // no handshake slot
  kStreams,        // no stream slot
  kBodyLease,      // no body lease
  kSource,         // its source has connections_per_source_max open
  kSessions,       // no place for an HTTP/2 session
  kCount,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(RefuseReason::kCount)>
    kRefuseReasonNames = {"connections", "pressure",  "pressure_share", "no_fds",
                          "no_memory",   "arena",     "arena_timeout",  "overload_503",
                          "bad_request", "handshake", "streams",        "body_lease",
                          "source",      "sessions"};
[[nodiscard]] constexpr std::string_view name_of(RefuseReason reason) noexcept {
  return kRefuseReasonNames[static_cast<std::size_t>(reason)];
}

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::CloseReason;
using server::kCloseReasonNames;
using server::kRefuseReasonNames;
using server::name_of;
using server::RefuseReason;
}  // namespace weir::inline v0
