#include "waiter_queues.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

using control::OutgoingEnd;
using control::OutgoingItem;

void ConnectionWaiter::on_item_end(OutgoingItem& item, OutgoingEnd how) noexcept {
  auto& waiter = *static_cast<ConnectionWaiter*>(item.context());
  waiter.queues->on_end(waiter, how);
}

WaiterQueues::WaiterQueues(io::Loop& loop, Upstream& upstream) noexcept
    : loop_(loop),
      upstream_(upstream),
      tell_(io::Callback<>::to<&WaiterQueues::tell>(*this)),
      timer_(io::Timer::Fired::to<&WaiterQueues::on_timer>(*this)) {}

WaiterQueues::~WaiterQueues() {
  WEIR_ASSERT(wanted_.empty() && all_told());
  loop_.cancel(timer_);
}

bool WaiterQueues::enter(PoolEndpoint& endpoint, ConnectionWaiter& waiter,
                         const Entry& entry) noexcept {
  const bool critical = entry.access == io::Access::kCritical;
  const TimePoint now = loop_.now();
  OutgoingItem& item = waiter.item;
  item.priority = critical ? Priority::kCritical : std::max(entry.priority, Priority::kHigh);
  item.bytes = std::min(entry.bytes, upstream_.outgoing().destination_bytes_max.bytes());
  // A time that has passed is reported as any other: by the timer, in the next turn.
  item.deadline =
      std::max(std::min(now + upstream_.timeouts().connect, entry.until), now + Duration(1));
  if (!critical && ordinary_ >= upstream_.config().connection_queue_max) {
    endpoint.queue.refuse(item);
    return false;
  }
  waiter.queues = this;
  waiter.until = entry.until;
  waiter.access = entry.access;
  if (!endpoint.queue.put(item, now).accepted()) return false;
  waiter.wanted = &endpoint;
  if (!critical) ++ordinary_;
  upstream_.add_waiting(1);
  if (!endpoint.wanted_hook.linked()) wanted_.push_back(endpoint);
  if (!timer_.armed() || item.deadline < timer_.deadline()) loop_.arm(timer_, item.deadline);
  return true;
}

/// It is in no queue any more.
void WaiterQueues::left(ConnectionWaiter& waiter) noexcept {
  PoolEndpoint& endpoint = *std::exchange(waiter.wanted, nullptr);
  if (waiter.access != io::Access::kCritical) --ordinary_;
  upstream_.add_waiting(-1);
  if (endpoint.queue.queued() == 0 && endpoint.wanted_hook.linked()) wanted_.remove(endpoint);
}

void WaiterQueues::leave(ConnectionWaiter& waiter) noexcept {
  if (waiter.over_hook.linked()) return over_.remove(waiter);
  if (!waiter.item.queued()) return;
  waiter.item.queue()->withdraw(waiter.item);
  left(waiter);
}

ConnectionWaiter* WaiterQueues::first(const PoolEndpoint& endpoint) noexcept {
  const OutgoingItem* item = endpoint.queue.front();
  return item != nullptr ? static_cast<ConnectionWaiter*>(item->context()) : nullptr;
}

// Time does not matter here: who is found late, because the loop was, is served all the same. Only
// the timer ends those whose time is over.
ConnectionWaiter& WaiterQueues::take_first(PoolEndpoint& endpoint, OutgoingEnd how) noexcept {
  OutgoingItem* item = endpoint.queue.get(TimePoint{});
  WEIR_ASSERT(item != nullptr);
  endpoint.queue.finish(*item, how);
  auto& waiter = *static_cast<ConnectionWaiter*>(item->context());
  left(waiter);
  return waiter;
}

PoolEndpoint* WaiterQueues::next_wanted() noexcept {
  PoolEndpoint* endpoint = wanted_.pop_front();
  if (endpoint != nullptr) wanted_.push_back(*endpoint);
  return endpoint;
}

// ---- ends that the queue decides about

UpstreamFailure WaiterQueues::why_expired(const ConnectionWaiter& waiter) const noexcept {
  if (waiter.until <= loop_.now()) return UpstreamFailure::kDeadline;
  return waiter.wanted->connecting > 0 ? UpstreamFailure::kConnectTimeout
                                       : UpstreamFailure::kNoConnection;
}

void WaiterQueues::on_end(ConnectionWaiter& waiter, OutgoingEnd how) noexcept {
  if (how == OutgoingEnd::kSent || how == OutgoingEnd::kFailed) return;  // take_first()
  waiter.why = how == OutgoingEnd::kExpired ? why_expired(waiter) : UpstreamFailure::kNoConnection;
  left(waiter);
  over_.push_back(waiter);
  loop_.defer(tell_);
}

void WaiterQueues::tell() noexcept {
  while (ConnectionWaiter* waiter = over_.pop_front()) waiter->on_no_connection(waiter->why);
}

void WaiterQueues::on_timer(TimePoint now) {
  PoolEndpoint* endpoint = wanted_.front();
  while (endpoint != nullptr) {
    PoolEndpoint* const next = wanted_.next(*endpoint);
    endpoint->queue.expire(now);
    endpoint = next;
  }
  TimePoint due = TimePoint::max();
  for (const PoolEndpoint& one : wanted_) due = std::min(due, one.queue.next_expiry());
  if (due != TimePoint::max()) loop_.arm(timer_, due);
}

void WaiterQueues::close() noexcept {
  while (PoolEndpoint* endpoint = wanted_.front()) endpoint->queue.close();
  tell();
}

}  // namespace weir::inline v0::upstream
