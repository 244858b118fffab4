#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "weir/base/bounded_count.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_queue.h"
#include "weir/experimental/upstream/upstream_config.h"
#include "weir/policy/hedge_config.h"

#include "control/redundancy_budget.h"
#include "io/shared_blocks.h"
#include "io/tls_context.h"
#include "policy/hedge_delay.h"
#include "policy/loser_end.h"
#include "policy/peak_ewma.h"
#include "policy/replica_view.h"
#include "upstream/call_counters.h"
#include "upstream/discovery/endpoint_source.h"
#include "upstream/endpoint.h"
#include "upstream/endpoint_set.h"
#include "upstream/endpoint_totals.h"

namespace weir::inline v0::upstream {

/// The timeouts of an upstream that are in force now.
struct UpstreamTimeouts {
  Duration connect{};
  Duration first_byte{};
  Duration inactivity{};  // a body without progress in either direction
  Duration overall{};     // 0: none
  Duration idle{};
  Duration age{};   // of a connection
  Duration hold{};  // a request waits for an endpoint at most for this time

  bool operator==(const UpstreamTimeouts&) const = default;
};

/// The timeouts of a configuration.
[[nodiscard]] UpstreamTimeouts timeouts_of(const UpstreamConfig& config) noexcept;

/// The bounds of the queues to the endpoints of an upstream.
[[nodiscard]] control::OutgoingConfig outgoing_of(const UpstreamConfig& config) noexcept;

/// The redundancy budget of an upstream: its own values, otherwise those of `common`.
[[nodiscard]] policy::RedundancyBudgetRules budget_rules_of(
    const UpstreamConfig& config, const policy::HedgeConfig& common) noexcept;

/// The size of one connection's object, for the memory ceiling.
[[nodiscard]] std::size_t connection_bytes() noexcept;
/// The size of one block of UpstreamMemory::sessions.
[[nodiscard]] std::size_t session_block_bytes(std::size_t region_bytes) noexcept;

class ConnectionPool;
class Dispatcher;
struct PoolEndpoint;

/// Told when an endpoint changes its state or its set, from any loop's thread. Must not block.
class UpstreamObserver {
 public:
  virtual void on_endpoint_change(std::string_view upstream, const Endpoint& endpoint,
                                  const policy::HealthChange& change) = 0;
  virtual void on_set_change(std::string_view upstream, std::size_t added, std::size_t removed,
                             std::size_t endpoints) = 0;
  virtual void on_tls_failure(std::string_view upstream, const Endpoint& endpoint,
                              std::string_view why) = 0;

 protected:
  ~UpstreamObserver() = default;
};

/// One upstream, shared by all loops: its endpoints, bounds, timeouts, budget and TLS context.
///
/// Thread-safety: any member, any thread. Lifetime: outlives every Dispatcher made for it.
class Upstream {
 public:
  struct Setup {
    UpstreamConfig config;
    std::uint32_t loops = 1;
    std::uint32_t reserved = 0;  // of max_connections, at most a quarter, for critical requests
    Rng rng{0};
    UpstreamObserver* observer = nullptr;
    io::TlsContext::Ptr tls{};  // nullptr: cleartext
    policy::CancelPaceRules cancel_pace{};
    std::uint32_t read_classes = 1;
  };
  /// `endpoints` may be empty: they come later, by set_endpoints().
  Upstream(Setup setup, std::vector<DiscoveredEndpoint> endpoints, TimePoint now);
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream();

  /// As at start; the timeouts in force are in timeouts().
  [[nodiscard]] const UpstreamConfig& config() const noexcept { return config_; }
  /// How losers of hedged reads are ended.
  [[nodiscard]] const policy::CancelPaceRules& cancel_pace() const noexcept { return cancel_pace_; }
  [[nodiscard]] Protocol protocol() const noexcept { return config_.protocol; }
  [[nodiscard]] UpstreamTimeouts timeouts() const noexcept;
  void set_timeouts(const UpstreamTimeouts& timeouts) noexcept;
  [[nodiscard]] io::TlsContext::Ptr tls() const;
  void set_tls(io::TlsContext::Ptr context);
  [[nodiscard]] control::RedundancyBudget& budget() noexcept { return budget_; }
  /// For the shared budget and those of all endpoints, also of those that join later.
  void set_budget_rules(const policy::RedundancyBudgetRules& rules);

  // ---- hedging
  [[nodiscard]] policy::HedgeConfig hedge() const;
  /// Holds for calls that start from the next turn of their loop on. Off until it is set.
  void set_hedge(const policy::HedgeConfig& config);
  [[nodiscard]] std::uint32_t read_classes() const noexcept { return read_classes_; }
  /// What EndpointWatch found about the reads of a class at all endpoints.
  [[nodiscard]] policy::HedgeCohort hedge_cohort(ReadClass of) const noexcept;
  void publish(ReadClass of, const policy::HedgeCohort& cohort) noexcept;
  /// That of the slowest class that is not hedged for it; otherwise of the first one.
  [[nodiscard]] policy::HedgeCohort slowest_cohort() const noexcept;
  /// Whether the upstream's scope is overloaded, or its queues are: then nothing is hedged.
  void set_overloaded(bool overloaded) noexcept {
    overloaded_.store(overloaded, std::memory_order_relaxed);
  }
  [[nodiscard]] bool overloaded() const noexcept {
    return overloaded_.load(std::memory_order_relaxed) || queues_overflow();
  }
  /// The queues to all open endpoints overflow; as EndpointWatch found at its last tick.
  [[nodiscard]] bool queues_overflow() const noexcept {
    return queues_overflow_.load(std::memory_order_relaxed);
  }

  // ---- endpoints
  [[nodiscard]] std::shared_ptr<const EndpointSet> endpoints() const;
  /// The complete list. Endpoints whose address stays are the same objects as before.
  void set_endpoints(std::vector<DiscoveredEndpoint> all, TimePoint now);
  /// These drain, too, besides those whose source says so, until the next call. An address that is
  /// not in the set drains when it joins.
  void set_drained(std::vector<io::SocketName> names, TimePoint now);
  /// Tells an endpoint's state machine, and the observer if it changed.
  void note_health(Endpoint& endpoint, policy::HealthEvent event, TimePoint now);
  /// The same for kAnswered, kConnected and kHeard: costs nothing while the endpoint is well.
  void note_good(Endpoint& endpoint, policy::HealthEvent event, TimePoint now) {
    if (!endpoint.quiet()) note_health(endpoint, event, now);
  }
  void note_tls_failure(const PoolEndpoint& endpoint, std::string_view why);
  /// Its sources have answered or failed for the first time: an empty set is news from now on.
  void set_discovered() noexcept { discovered_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool discovered() const noexcept {
    return discovered_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool any_open() const;
  /// No endpoint is known to be well: all are out, or on trial.
  [[nodiscard]] bool all_failing() const;

  // ---- what was counted
  /// Of all endpoints that the upstream ever had: counters never go backwards when one leaves.
  [[nodiscard]] EndpointTotals totals();
  [[nodiscard]] CallCounters& counters(std::uint32_t loop) noexcept { return counters_[loop]; }
  [[nodiscard]] std::uint32_t loops() const noexcept { return loops_; }
  /// The sum of a counter over all loops.
  template <class Value>
  [[nodiscard]] std::uint64_t sum(Value value) const noexcept {
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < loops_; ++i) total += value(counters_[i]);
    return total;
  }
  /// How often an endpoint was ejected or found hung for this reason.
  [[nodiscard]] std::uint64_t ejections(policy::HealthReason reason) const noexcept {
    return ejections_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }

  // ---- what choices need of all endpoints together, published by EndpointWatch
  struct Published {
    policy::Cohort cohort;
    policy::CohortLatency latency;
  };
  [[nodiscard]] Published published() const noexcept;
  void publish(const Published& now) noexcept;
  /// A loop has a tick, `lateness` after its time. What a late loop waits for says nothing about an
  /// endpoint: it has not read yet what arrived.
  void note_tick(std::uint32_t loop, TimePoint now, Duration lateness) noexcept;
  /// Whether a loop did not tick in time lately. Loops that never ticked are not late.
  [[nodiscard]] bool is_late(std::uint32_t loop, TimePoint now) const noexcept;
  /// The limit in force of the upstream's scope; 0: unknown.
  void set_limit(std::uint32_t limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t limit() const noexcept {
    return limit_.load(std::memory_order_relaxed);
  }

  // ---- connections: the bound is shared by all loops; each loop keeps its own idle connections
  [[nodiscard]] bool try_add_connection(io::Access access) noexcept;
  /// Counts one fewer and wakes the pools whose requests wait for a connection.
  void drop_connection() noexcept;
  /// The same for one that could not be opened because descriptors or memory are short: that would
  /// hinder the others too, and to wake them would let them try without end.
  void return_connection() noexcept { connections_.sub(1); }
  /// An ordinary request that needs another connection must wait for one.
  [[nodiscard]] bool full() const noexcept {
    return connections() >= config_.max_connections - reserved_;
  }
  [[nodiscard]] std::uint32_t connections() const noexcept { return connections_.held(); }
  /// Critical requests hold reserved connections: a connection that becomes idle is closed, not
  /// kept, so that the next critical request finds room.
  [[nodiscard]] bool reserve_in_use() const noexcept {
    return connections() > config_.max_connections - reserved_;
  }
  void add_pool(ConnectionPool& pool);
  void remove_pool(ConnectionPool& pool) noexcept;
  [[nodiscard]] std::uint64_t idle() const noexcept;
  [[nodiscard]] std::uint32_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  void add_waiting(std::int32_t change) noexcept {
    waiting_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_seq_cst);
  }
  /// The bounds of the queues to its endpoints.
  [[nodiscard]] const control::OutgoingConfig& outgoing() const noexcept { return outgoing_; }
  /// Asks each other loop to close an idle connection.
  void ask_for_idle(const ConnectionPool& asker) noexcept;

  // ---- requests that wait for an endpoint
  [[nodiscard]] bool try_hold() noexcept { return held_.try_add(1, config_.hold_requests_max); }
  void drop_held() noexcept { held_.sub(1); }
  [[nodiscard]] std::uint32_t held() const noexcept { return held_.held(); }

  void add_dispatcher(Dispatcher& dispatcher);
  void remove_dispatcher(Dispatcher& dispatcher) noexcept;
  /// Asks every loop to look at the endpoints again: one can be reached, or one is silent.
  void post_review() noexcept;

 private:
  [[nodiscard]] std::shared_ptr<EndpointSet> make_set(std::vector<DiscoveredEndpoint>& all,
                                                      const EndpointSet& before, bool first,
                                                      TimePoint now);
  struct Changed {
    std::shared_ptr<Endpoint> endpoint;
    policy::HealthChange change;
  };
  /// Tells it whether it drains, by its source or by set_drained(). Under mutex_.
  void note_drain(const std::shared_ptr<Endpoint>& endpoint, bool by_source, TimePoint now);
  void report(const Endpoint& endpoint, const policy::HealthChange& change);
  /// Endpoints that nobody uses any more are only numbers from now on. Under mutex_.
  void settle_left();

  const UpstreamConfig config_;
  const std::uint32_t loops_;
  const std::uint32_t read_classes_;
  const std::uint32_t reserved_;
  UpstreamObserver* const observer_;
  const policy::CancelPaceRules cancel_pace_;
  const std::unique_ptr<CallCounters[]> counters_;
  const std::unique_ptr<std::atomic<std::int64_t>[]> ticked_ns_;  // by loop; 0: never
  std::array<std::atomic<std::uint64_t>, policy::kHealthReasonCount> ejections_{};
  control::RedundancyBudget budget_;
  const control::OutgoingConfig outgoing_;
  control::OutgoingTotals outgoing_totals_;
  std::array<std::atomic<Duration::rep>, 7> timeouts_ns_{};
  BoundedCount<std::uint32_t> connections_;
  BoundedCount<std::uint32_t> held_;
  std::atomic<bool> discovered_{false};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint32_t> limit_{0};
  std::atomic<bool> overloaded_{false};
  std::atomic<bool> queues_overflow_{false};

  std::atomic<std::uint64_t> cohort_counts_{0};  // endpoints, open, returning: 21 bits each
  std::atomic<double> open_weight_{0};
  std::atomic<double> weight_max_{1};
  std::atomic<std::int64_t> median_ns_{0};
  std::atomic<std::int64_t> p99_ns_{0};
  struct Cohort {
    std::atomic<Duration::rep> delay_ns{0};
    std::atomic<Duration::rep> median_ns{0};
    std::atomic<bool> slow{false};
  };
  std::array<Cohort, kReadClassesMax> cohorts_;

  mutable std::mutex mutex_;
  std::shared_ptr<const EndpointSet> set_;       // under mutex_, as all below
  std::vector<io::SocketName> drained_;          // by set_drained()
  std::vector<Changed> changed_;                 // by the set that is being made
  std::vector<std::shared_ptr<Endpoint>> left_;  // not in the set, and perhaps still in use
  EndpointTotals gone_;                          // of those that nobody uses any more
  io::TlsContext::Ptr tls_;
  policy::HedgeConfig hedge_;
  Rng rng_;
  std::vector<ConnectionPool*> pools_;
  std::vector<Dispatcher*> dispatchers_;
  std::size_t next_pool_ = 0;
};

}  // namespace weir::inline v0::upstream
