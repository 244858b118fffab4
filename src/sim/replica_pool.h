#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"

#include "control/compared_latency.h"
#include "control/hedge_executor.h"
#include "control/redundancy_budget.h"
#include "control/scope_seconds.h"
#include "latency_histogram.h"
#include "policy/endpoint_health.h"
#include "policy/latency_ejection.h"
#include "policy/peak_ewma.h"
#include "policy/replica_choice.h"
#include "policy/silence.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// How an attempt at a replica ended, as the gateway sees it.
enum class ReplicaEnd : std::uint8_t {
  kOk,
  kBadAnswer,       // an error answer
  kLost,            // the connection was lost
  kConnectRefused,  // there was none
  kTimedOut,
  kCancelled,  // by the gateway or its client; says nothing about the replica
  kBeaten,     // by the gateway, because an attempt that began later was answered before it
};

struct ReplicaCounts {
  std::uint64_t ejections = 0;   // by failures, latency or checks
  std::uint64_t suspicions = 0;  // available -> suspect
};

/// Where the next attempt of a read could be sent, best first.
struct ReplicaCandidates {
  std::array<control::HedgeCandidate, control::HedgeExecutor::kCandidatesMax> targets{};
  std::array<std::uint32_t, control::HedgeExecutor::kCandidatesMax> replicas{};
  std::size_t count = 0;
};

/// What a gateway knows of the replicas of a service, and decides about them with the policies of
/// production: choice, score, health, silence, latency ejection, redundancy budgets.
///
/// Promises: deterministic for equal calls and draws.
/// Thread-safety: none. Cost: choose() as choose_replica(); tick() O(replicas), every kTickEvery.
class ReplicaPool {
 public:
  static constexpr Duration kTickEvery = std::chrono::milliseconds(20);

  ReplicaPool(const ReplicasSpec& spec, Rng rng);

  /// A request arrives: the budgets grow.
  void deposit() noexcept { shared_budget_.deposit(); }
  [[nodiscard]] policy::Choice choose(std::span<const std::uint32_t> tried, TimePoint now);
  /// Whether a replica that was not tried is open.
  [[nodiscard]] bool other_open(std::span<const std::uint32_t> tried) const;
  void sent(std::uint32_t replica, TimePoint now);
  /// The same for a hedge: it deposits nothing.
  void sent_again(std::uint32_t replica, TimePoint now);
  void ended(std::uint32_t replica, ReplicaEnd end, TimePoint sent_at, TimePoint now);
  /// A request waits because no replica can be used.
  void wanted(TimePoint now);
  /// Takes a token for another attempt after one at `replica` failed.
  [[nodiscard]] bool take_budget(std::uint32_t replica) noexcept;

  /// For control::HedgeExecutor: the budgets, and where an attempt could go, best first.
  [[nodiscard]] control::RedundancyBudget& budget() noexcept { return shared_budget_; }
  [[nodiscard]] control::RedundancyBudget& budget(std::uint32_t replica) noexcept {
    return replicas_[replica].budget;
  }
  [[nodiscard]] ReplicaCandidates candidates(std::span<const std::uint32_t> tried, TimePoint now);
  /// The latency of an attempt says nothing: the replica was silent meanwhile.
  [[nodiscard]] bool caught_in_silence(std::uint32_t replica, TimePoint sent_at,
                                       TimePoint now) const noexcept;

  /// Time passes. `alive(i)`: replica i would answer a probe. Returns the replicas that have become
  /// suspect or hung: attempts at them may be sent elsewhere.
  std::span<const std::uint32_t> tick(TimePoint now,
                                      const std::function<bool(std::uint32_t)>& alive);
  /// The limit of the gateway; 0: none.
  void set_limit(std::uint32_t limit) noexcept { limit_ = limit; }

  /// What a diagnosis needs to know, as of the last window.
  [[nodiscard]] control::ReplicaSpread spread() const noexcept;

  [[nodiscard]] const ReplicaCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] policy::EndpointState state(std::uint32_t replica) const noexcept {
    return replicas_[replica].health.state();
  }

 private:
  struct Replica {
    control::RedundancyBudget budget{};
    double weight = 1;
    policy::EndpointHealth health{TimePoint{}};
    policy::PeakEwma score{};
    std::uint32_t in_flight = 0;
    std::deque<TimePoint> unanswered{};  // when they were sent, oldest first
    TimePoint last_heard{};
    TimePoint probe_sent{};
    TimePoint suspected_until{};
    LatencyHistogram window{};
    LatencyHistogram compared_window{};
    control::ComparedLatency compared{};
  };
  /// What choose_replica() sees.
  struct View {
    const ReplicaPool& pool;
    TimePoint now;
    [[nodiscard]] std::uint32_t size() const noexcept {
      return static_cast<std::uint32_t>(pool.replicas_.size());
    }
    [[nodiscard]] policy::ReplicaView view(std::uint32_t i) const noexcept;
  };

  bool apply(Replica& replica, policy::HealthEvent event, TimePoint now,
             policy::SilenceEnd end = policy::SilenceEnd::kResponse);
  void learn(Replica& replica, ReplicaEnd end, TimePoint sent_at, TimePoint now);
  void note_health(Replica& replica, ReplicaEnd end, TimePoint now);
  [[nodiscard]] static bool silent(const Replica& replica) noexcept;
  bool watch_silence(std::uint32_t index, TimePoint now, bool alive);
  void refresh_latency();
  void refresh_cohort(TimePoint now);
  void close_window(TimePoint now);
  [[nodiscard]] policy::EjectionCounts ejection_counts() const noexcept;
  [[nodiscard]] double effective_weight(const Replica& replica, TimePoint now) const noexcept;
  [[nodiscard]] TimePoint others_heard(std::uint32_t index) const noexcept;

  control::RedundancyBudget shared_budget_;
  const ReplicasSpec& spec_;
  Rng rng_;
  policy::EndpointHealthRules health_rules_{};
  std::vector<Replica> replicas_;
  policy::HashRing ring_;
  policy::Cohort cohort_{};
  policy::CohortLatency latency_{};
  LatencyHistogram recent_{};   // answers of all replicas since the last change of histograms
  LatencyHistogram earlier_{};  // and in the period before
  std::vector<policy::SlowWindows> slow_;
  std::vector<std::uint32_t> silent_;
  std::uint64_t cursor_ = 0;
  std::uint32_t limit_ = 0;
  std::uint32_t windows_ = 0;
  TimePoint window_ends_{};
  double worst_ = 0;  // of control::worst_of()
  ReplicaCounts counts_{};
};

}  // namespace weir::inline v0::sim
