#pragma once

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"

#include "io/shared_blocks.h"
#include "upstream/client_stream.h"

namespace weir::inline v0::upstream {

struct PoolEndpoint;

/// Somebody who wants a stream to an endpoint; an attempt.
///
/// Lifetime: must leave the pool (ConnectionPool::stop_waiting) before it is destroyed.
class ConnectionWaiter {
 public:
  /// Call start() on it.
  virtual void on_connection(ClientStream& stream) = 0;
  virtual void on_no_connection(UpstreamFailure failure) = 0;

  // For the pool.
  ListHook<ConnectionWaiter> endpoint_hook;
  ListHook<ConnectionWaiter> queue_hook;  // of all waiters of the pool, in order of time
  PoolEndpoint* wanted = nullptr;
  TimePoint wait_until{};
  io::Access access = io::Access::kOrdinary;

 protected:
  ~ConnectionWaiter() = default;
};

}  // namespace weir::inline v0::upstream
