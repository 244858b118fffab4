#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_item.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/policy/priority.h"

#include "io/shared_blocks.h"
#include "pool_endpoint.h"
#include "upstream/connection_waiter.h"

namespace weir::inline v0::upstream {

class Upstream;

/// Those of one loop who wait for a connection: a control::OutgoingQueue per endpoint, whose counts
/// all loops share, and one timer for all of them.
///
/// Critical ones first, then by class, then by age. Besides the bounds of the queues there is one
/// per loop (connection_queue_max), which does not hold for critical ones.
///
/// Who does not get a connection is told why: kNoConnection if there was no place for it, or a
/// newer one took its place; at the connect timeout kConnectTimeout if a connection was being
/// opened, otherwise kNoConnection; kDeadline at the time that it set itself. An owner is never
/// told while another one enters: an event of one request may end others.
///
/// Thread-safety: its loop's thread. Cost: as OutgoingQueue; the timer looks at all endpoints that
/// somebody waits for. Lifetime: empty when it is destroyed: close().
class WaiterQueues {
 public:
  WaiterQueues(io::Loop& loop, Upstream& upstream) noexcept;
  WaiterQueues(const WaiterQueues&) = delete;
  WaiterQueues& operator=(const WaiterQueues&) = delete;
  ~WaiterQueues();

  struct Entry {
    io::Access access = io::Access::kOrdinary;
    Priority priority = Priority::kNormal;  // of an ordinary one; kCritical counts as kHigh
    std::uint64_t bytes = 0;                // that it holds in memory
    TimePoint until = TimePoint::max();     // it does not wait longer, nor beyond the timeout
  };
  /// False: there is no place for it.
  [[nodiscard]] bool enter(PoolEndpoint& endpoint, ConnectionWaiter& waiter,
                           const Entry& entry) noexcept;
  /// The waiter does not want a stream any more; no event follows. Nothing if it does not wait.
  void leave(ConnectionWaiter& waiter) noexcept;
  /// Who is served next; nullptr: nobody waits.
  [[nodiscard]] static ConnectionWaiter* first(const PoolEndpoint& endpoint) noexcept;
  /// Takes the first one out, because it has a stream (kSent), or will not get one (kFailed).
  [[nodiscard]] ConnectionWaiter& take_first(PoolEndpoint& endpoint,
                                             control::OutgoingEnd how) noexcept;
  /// Endpoints that somebody waits for, and the next one of them in turn.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_.size(); }
  [[nodiscard]] PoolEndpoint* next_wanted() noexcept;
  /// Ends all; they are told now.
  void close() noexcept;
  /// Nobody has to be told anything.
  [[nodiscard]] bool all_told() const noexcept { return over_.empty() && !tell_.queued(); }

  // For ConnectionWaiter.
  void on_end(ConnectionWaiter& waiter, control::OutgoingEnd how) noexcept;

 private:
  void left(ConnectionWaiter& waiter) noexcept;
  [[nodiscard]] UpstreamFailure why_expired(const ConnectionWaiter& waiter) const noexcept;
  void tell() noexcept;
  void on_timer(TimePoint now);

  io::Loop& loop_;
  Upstream& upstream_;
  IntrusiveList<PoolEndpoint, &PoolEndpoint::wanted_hook> wanted_;
  IntrusiveList<ConnectionWaiter, &ConnectionWaiter::over_hook> over_;  // to be told
  io::Task tell_;
  io::Timer timer_;
  std::uint32_t ordinary_ = 0;
};

}  // namespace weir::inline v0::upstream
