#pragma once

#include <cstdint>
#include <memory>

#include "weir/base/intrusive_list.h"

#include "client_connection.h"
#include "io/tls_sessions.h"
#include "policy/ping_pace.h"
#include "upstream/attempt.h"
#include "upstream/endpoint.h"

namespace weir::inline v0::upstream {

/// One loop's part of an endpoint: its connections, and the attempts that use or want them.
///
/// Thread-safety: its loop's thread. Lifetime: in its pool, until the endpoint has left the set and
/// nothing uses it any more.
struct PoolEndpoint {
  PoolEndpoint(std::shared_ptr<Endpoint> endpoint, std::uint32_t loop)
      : shared(std::move(endpoint)), counters(shared->counters(loop)), queue(shared->queue(loop)) {}

  [[nodiscard]] bool unused() const noexcept { return connections == 0 && attempts == 0; }

  const std::shared_ptr<Endpoint> shared;
  EndpointCounters& counters;
  control::OutgoingQueue& queue;  // attempts of this loop that wait for a connection
  IntrusiveList<ClientConnection, &ClientConnection::idle_hook> idle;  // HTTP/1.1, newest last
  IntrusiveList<ClientConnection, &ClientConnection::open_hook> multiplexed;  // HTTP/2
  IntrusiveList<Attempt, &Attempt::unanswered_hook> unanswered;               // oldest first
  io::TlsSessions sessions;
  std::uint32_t connections = 0;
  std::uint32_t connecting = 0;
  std::uint32_t attempts = 0;  // that refer to this object
  bool speaks_http2 = false;   // the last connection agreed to it
  policy::PingPaceRules pings;
  bool in_set = true;
  ListHook<PoolEndpoint> wanted_hook;  // while attempts wait here
};

}  // namespace weir::inline v0::upstream
