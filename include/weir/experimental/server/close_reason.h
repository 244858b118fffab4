#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"

namespace weir::inline v0::inline server {

/// Why a connection and its streams ended. The names are stable: they are metric labels.
enum class CloseReason : std::uint8_t {
  kNone,           // still open
  kClient,         // the client ended it between requests
  kFinished,       // the response with "connection: close" was sent
  kIdle,           // idle timeout
  kIdlePressure,   // idle, or stalled at CRITICAL, and its place was needed
  kHeaderTimeout,  // the head did not arrive in time
  kBodyTimeout,    // the body arrived slower than the minimum rate
  kWriteTimeout,   // the client read slower than the minimum rate
  kTunnelIdle,     // a tunnel was silent for too long
  kBackpressure,   // blocked on its client for too long, or the longest blocked one under pressure
  kParseError,     // invalid HTTP
  kReadError,      // the kernel reported an error on read
  kWriteError,     // the kernel reported an error on write
  kClientAbort,    // the client disconnected during a request
  kUnreadBody,     // answered before its body was complete, and the rest is too long to read
  kReset,          // the handler reset the stream
  kTunnelEnd,      // both sides of a tunnel ended
  kShutdown,       // the server is stopping
  kTls,            // the TLS layer failed
  kHandshake,      // the TLS handshake failed, or the client disconnected during it
  kHandshakeTimeout,  // the TLS handshake was not completed in time
  kNotTls,            // another protocol on a TLS listener
  kProtocol,          // HTTP/2: the peer violated the protocol or a bound
  kProxyHeader,       // the PROXY header was missing, malformed or late
  kSource,            // the source that its PROXY header names has connections_per_source_max
  kCount,
};
WEIR_ENUM_NAMES(CloseReason, "none", "client", "finished", "idle", "idle_pressure",
                "header_timeout", "body_timeout", "write_timeout", "tunnel_idle", "backpressure",
                "parse_error", "read_error", "write_error", "client_abort", "unread_body", "reset",
                "tunnel_end", "shutdown", "tls", "handshake", "handshake_timeout", "not_tls",
                "protocol", "proxy_header", "source")
static_assert(kCloseReasonNames.size() == static_cast<std::size_t>(CloseReason::kCount));

/// Why the server itself refused something, before a handler saw it or because a pool was empty.
enum class RefuseReason : std::uint8_t {
  kConnections,    // no place, and no idle connection to close
  kPressure,       // a new connection was refused at HIGH or CRITICAL
  kPressureShare,  // a new connection was refused at random at ELEVATED
  kNoFds,          // accept failed: no descriptor
  kNoMemory,       // accept failed: no kernel memory
  kArena,          // no arena, and no place in the queue
  kArenaTimeout,   // pending for too long
  kOverload503,    // a handler answered send_503()
  kBadRequest,     // a parse error (4xx, 5xx)
  kHandshake,      // no handshake slot
  kStreams,        // no stream slot
  kBodyLease,      // no body lease
  kSource,         // its source has connections_per_source_max open
  kSessions,       // no place for an HTTP/2 session
  kUntrusted,      // a PROXY header is required, and the sender is no trusted proxy
  kCount,
};
WEIR_ENUM_NAMES(RefuseReason, "connections", "pressure", "pressure_share", "no_fds", "no_memory",
                "arena", "arena_timeout", "overload_503", "bad_request", "handshake", "streams",
                "body_lease", "source", "sessions", "untrusted_proxy")
static_assert(kRefuseReasonNames.size() == static_cast<std::size_t>(RefuseReason::kCount));

}  // namespace weir::inline v0::inline server
