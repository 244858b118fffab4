#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_queue.h"
#include "weir/experimental/io/address.h"

#include "control/redundancy_budget.h"
#include "policy/endpoint_health.h"
#include "policy/peak_ewma.h"
#include "upstream/endpoint_counters.h"
#include "upstream/read_class.h"

namespace weir::inline v0::upstream {

/// How latencies make an endpoint's score.
inline constexpr policy::PeakEwmaRules kScoreRules;

/// One replica, shared by all loops: its address, its health, its load, and what was counted.
///
/// Three kinds of state, by how often they change. In flight, score and the last byte heard are
/// atomics that every request touches: a choice needs them from all loops at once. Health changes
/// rarely; it is a state machine under a lock, and what a choice needs of it is published in
/// atomics. Counters and queues belong to loops; what the queues hold together is shared.
///
/// Thread-safety: any member, any thread; counters(i) is written and queue(i) used by loop i only.
/// Cost: atomics; note() takes a lock unless the event cannot change anything.
/// Lifetime: shared; an endpoint that left its set lives until its last attempt has ended, and an
/// address that comes back is the same Endpoint while anybody still holds it.
class Endpoint {
 public:
  struct Identity {
    io::SocketName name;
    std::string host;  // as the operator wrote it, for TLS
    policy::EndpointHealthRules rules{};
    std::uint32_t read_classes = 1;
  };
  /// What its queues share with those of the upstream's other endpoints. Must outlive their use.
  struct Outgoing {
    const control::OutgoingConfig& config;
    control::OutgoingTotals& totals;
  };
  Endpoint(Identity identity, std::uint32_t loops, const policy::EndpointHealth& health,
           const policy::RedundancyBudgetRules& budget, const Outgoing& outgoing, Rng rng);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] const io::SocketName& name() const noexcept { return identity_.name; }
  [[nodiscard]] const std::string& host() const noexcept { return identity_.host; }
  [[nodiscard]] const std::string& label() const noexcept { return label_; }
  /// Distinguishes it from other endpoints of this process; never 0.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  // ---- load
  [[nodiscard]] std::uint32_t in_flight() const noexcept {
    return in_flight_.load(std::memory_order_relaxed);
  }
  void add_in_flight() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void sub_in_flight() noexcept { in_flight_.fetch_sub(1, std::memory_order_relaxed); }

  [[nodiscard]] TimePoint last_heard() const noexcept {
    return time_from_ns(heard_ns_.load(std::memory_order_relaxed));
  }
  /// A byte arrived. Stored once per millisecond at most, so that loops seldom share the line.
  void heard(TimePoint now) noexcept {
    const std::int64_t before = heard_ns_.load(std::memory_order_relaxed);
    if (to_ns(now) - before < 1'000'000) return;
    heard_ns_.store(to_ns(now), std::memory_order_relaxed);
  }

  [[nodiscard]] policy::PeakEwma score() const noexcept {
    return {.ns = score_ns_.load(std::memory_order_relaxed),
            .updated_at = time_from_ns(scored_at_ns_.load(std::memory_order_relaxed))};
  }
  void set_score(const policy::PeakEwma& score) noexcept {
    score_ns_.store(score.ns, std::memory_order_relaxed);
    scored_at_ns_.store(to_ns(score.updated_at), std::memory_order_relaxed);
  }
  /// When the last suspicion ended, or `now` while it lasts; zero: never suspected.
  [[nodiscard]] TimePoint suspected_until(TimePoint now) const noexcept;

  // ---- its queues: attempts that wait for a connection, one queue per loop
  [[nodiscard]] control::OutgoingQueue& queue(std::uint32_t loop) noexcept { return queues_[loop]; }
  /// How full they are together.
  [[nodiscard]] policy::OutgoingState queue_state() const noexcept {
    return queued_.state.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const control::OutgoingCounts& queued() const noexcept { return queued_; }
  /// The sum over all loops.
  [[nodiscard]] control::OutgoingStats queue_stats() const noexcept;

  // ---- health
  [[nodiscard]] policy::Openness openness() const noexcept {
    return openness_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool open() const noexcept { return openness() <= policy::Openness::kTrial; }
  /// The factor of its weight during a slow return; as policy::EndpointHealth::return_ratio().
  [[nodiscard]] double return_ratio(TimePoint now) const noexcept;
  [[nodiscard]] bool returning() const noexcept {
    return ramp_ends_ns_.load(std::memory_order_relaxed) != 0;
  }
  /// Tells the state machine. Returns the change that this event caused.
  std::optional<policy::HealthChange> note(policy::HealthEvent event, TimePoint now);
  /// kAnswered, kConnected and kHeard would change nothing now.
  [[nodiscard]] bool quiet() const noexcept { return quiet_.load(std::memory_order_relaxed); }
  [[nodiscard]] policy::EndpointHealth health() const;

  [[nodiscard]] EndpointCounters& counters(std::uint32_t loop) noexcept { return counters_[loop]; }
  /// The sum of a counter over all loops: `sum([](const EndpointCounters& c) { … })`.
  template <class Value>
  [[nodiscard]] std::uint64_t sum(Value value) const noexcept {
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < loops_; ++i) total += value(counters_[i]);
    return total;
  }
  [[nodiscard]] std::uint32_t loops() const noexcept { return loops_; }
  /// Of the last window in which it answered; published by EndpointWatch.
  [[nodiscard]] LatencySummary recent_latency() const;
  void set_recent_latency(const LatencySummary& summary);
  /// Of the requests that were sent to it first; retries of what failed here take from it.
  [[nodiscard]] control::RedundancyBudget& budget() noexcept { return budget_; }

  // ---- hedging
  /// It asked for fewer requests: it gets no hedge for some time.
  void push_back(Duration period, TimePoint now) noexcept {
    pushed_back_until_ns_.store(to_ns(now + period), std::memory_order_relaxed);
  }
  [[nodiscard]] bool pushed_back(TimePoint now) const noexcept {
    return to_ns(now) < pushed_back_until_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t read_classes() const noexcept { return identity_.read_classes; }
  /// The latencies of reads that may be hedged; `of` is below read_classes().
  [[nodiscard]] ReadLatency& reads(ReadClass of) noexcept { return reads_[of]; }
  void set_hedge(const policy::HedgeConfig& config) noexcept {
    for (std::uint32_t i = 0; i < read_classes(); ++i) reads_[i].tracker.set_config(config);
  }
  /// The class with most samples.
  [[nodiscard]] ReadClass busiest_reads(TimePoint now) noexcept;

 private:
  void publish() noexcept;

  const Identity identity_;
  const std::string label_;
  const std::uint32_t number_;
  const std::uint32_t loops_;
  const std::unique_ptr<EndpointCounters[]> counters_;
  control::RedundancyBudget budget_;
  const std::unique_ptr<ReadLatency[]> reads_;
  control::OutgoingCounts queued_;
  std::deque<control::OutgoingQueue> queues_;  // by loop; over queued_

  alignas(64) std::atomic<std::uint32_t> in_flight_{0};
  std::atomic<double> score_ns_{0};
  std::atomic<std::int64_t> scored_at_ns_{0};
  alignas(64) std::atomic<std::int64_t> heard_ns_{0};
  std::atomic<policy::Openness> openness_{policy::Openness::kOpen};
  std::atomic<bool> quiet_{true};
  std::atomic<bool> on_trial_{false};
  std::atomic<std::int64_t> ramp_began_ns_{0};
  std::atomic<std::int64_t> ramp_ends_ns_{0};
  std::atomic<std::int64_t> suspicion_ended_ns_{0};
  std::atomic<std::int64_t> pushed_back_until_ns_{0};

  mutable std::mutex mutex_;
  policy::EndpointHealth health_;  // under mutex_
  Rng rng_;                        // under mutex_
  LatencySummary recent_;          // under mutex_
};

}  // namespace weir::inline v0::upstream
