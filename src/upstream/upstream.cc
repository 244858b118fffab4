#include "upstream/upstream.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "upstream/pool.h"

namespace weir::inline v0::upstream {

Upstream::Upstream(UpstreamConfig config, const std::vector<io::SocketName>& endpoints,
                   std::uint32_t reserved)
    : config_(std::move(config)), reserved_(std::min(reserved, config_.max_connections / 4)) {
  WEIR_ASSERT(!endpoints.empty());
  set_timeouts(timeouts_of(config_));
  for (const io::SocketName& name : endpoints) {
    endpoints_.push_back(std::make_unique<Endpoint>(name));
  }
}

UpstreamTimeouts timeouts_of(const UpstreamConfig& config) noexcept {
  return {.connect = config.connect_timeout,
          .first_byte = config.first_byte_timeout,
          .inactivity = config.inactivity_timeout,
          .overall = config.overall_timeout,
          .idle = config.idle_timeout};
}

UpstreamTimeouts Upstream::timeouts() const noexcept {
  return {.connect = Duration(connect_ns_.load(std::memory_order_relaxed)),
          .first_byte = Duration(first_byte_ns_.load(std::memory_order_relaxed)),
          .inactivity = Duration(inactivity_ns_.load(std::memory_order_relaxed)),
          .overall = Duration(overall_ns_.load(std::memory_order_relaxed)),
          .idle = Duration(idle_ns_.load(std::memory_order_relaxed))};
}

void Upstream::set_timeouts(const UpstreamTimeouts& timeouts) noexcept {
  connect_ns_.store(timeouts.connect.count(), std::memory_order_relaxed);
  first_byte_ns_.store(timeouts.first_byte.count(), std::memory_order_relaxed);
  inactivity_ns_.store(timeouts.inactivity.count(), std::memory_order_relaxed);
  overall_ns_.store(timeouts.overall.count(), std::memory_order_relaxed);
  idle_ns_.store(timeouts.idle.count(), std::memory_order_relaxed);
}

std::uint32_t Upstream::choose(std::uint32_t& turn, TimePoint now) const noexcept {
  const auto count = static_cast<std::uint32_t>(endpoints_.size());
  std::uint32_t soonest = turn % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t candidate = turn++ % count;
    if (endpoints_[candidate]->available(now)) return candidate;
    if (endpoints_[candidate]->ejected_until() < endpoints_[soonest]->ejected_until()) {
      soonest = candidate;
    }
  }
  return soonest;
}

bool Upstream::try_add_connection(io::Access access) noexcept {
  const std::uint32_t kept = access == io::Access::kCritical ? 0 : reserved_;
  return connections_.try_add(1, config_.max_connections - kept);
}

void Upstream::drop_connection() noexcept {
  connections_.sub(1);
  if (waiting_.load(std::memory_order_seq_cst) == 0) return;
  const std::scoped_lock lock(pools_mutex_);
  for (UpstreamPool* pool : pools_) pool->post_serve_waiting();
}

void Upstream::add_pool(UpstreamPool& pool) {
  const std::scoped_lock lock(pools_mutex_);
  pools_.push_back(&pool);
}

void Upstream::remove_pool(UpstreamPool& pool) noexcept {
  const std::scoped_lock lock(pools_mutex_);
  std::erase(pools_, &pool);
}

std::uint32_t Upstream::idle() const noexcept {
  std::uint32_t total = 0;
  for (const auto& endpoint : endpoints_) total += endpoint->idle.load(std::memory_order_relaxed);
  return total;
}

void Upstream::add_waiting(std::int32_t change) noexcept {
  waiting_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_seq_cst);
}

void Upstream::ask_for_idle(const UpstreamPool& asker) noexcept {
  const std::scoped_lock lock(pools_mutex_);
  for (UpstreamPool* pool : pools_) {
    if (pool != &asker) pool->post_give();
  }
}

bool Upstream::all_ejected(TimePoint now) const noexcept {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->available(now)) return false;
  }
  return true;
}

bool Upstream::all_failing() const noexcept {
  return std::all_of(endpoints_.begin(), endpoints_.end(),
                     [](const auto& endpoint) { return endpoint->failing(); });
}

}  // namespace weir::inline v0::upstream
