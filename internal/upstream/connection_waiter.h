#pragma once

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_item.h"

#include "io/shared_blocks.h"
#include "upstream/client_stream.h"

namespace weir::inline v0::upstream {

class ClientConnection;
class WaiterQueues;
struct PoolEndpoint;

/// Somebody who wants a stream to an endpoint; an attempt.
///
/// Lifetime: must leave the pool (ConnectionPool::stop_waiting) before it is destroyed.
class ConnectionWaiter {
 public:
  ConnectionWaiter(const ConnectionWaiter&) = delete;
  ConnectionWaiter& operator=(const ConnectionWaiter&) = delete;

  /// Call start() on it.
  virtual void on_connection(ClientStream& stream) = 0;
  /// kDeadline: the time that the waiter itself set is over.
  virtual void on_no_connection(UpstreamFailure failure) = 0;

  // For ConnectionPool: the connection that is being opened for this waiter alone.
  ClientConnection* own = nullptr;

  // For WaiterQueues.
  control::OutgoingItem item;  // its place in the queue to the endpoint
  ListHook<ConnectionWaiter> over_hook;
  WaiterQueues* queues = nullptr;
  PoolEndpoint* wanted = nullptr;  // while it is queued
  TimePoint until{};               // set by the waiter
  io::Access access = io::Access::kOrdinary;
  UpstreamFailure why = UpstreamFailure::kNone;  // while it waits to be told

 protected:
  ConnectionWaiter() noexcept : item(&ConnectionWaiter::on_item_end, this) {}
  ~ConnectionWaiter() = default;

 private:
  static void on_item_end(control::OutgoingItem& item, control::OutgoingEnd how) noexcept;
};

}  // namespace weir::inline v0::upstream
