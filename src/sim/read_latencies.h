#pragma once

#include <cstdint>
#include <vector>

#include "weir/base/time.h"
#include "weir/policy/hedge_config.h"

#include "control/latency_tracker.h"
#include "policy/hedge_delay.h"

namespace weir::inline v0::sim {

/// What a gateway knows of the latencies of reads at its replicas: when a read is hedged.
/// Production's trackers and rules; its EndpointWatch judges the cohort as often.
///
/// Promises: deterministic for equal calls. Thread-safety: none. Cost: record() and delay() as
/// LatencyTracker; judge() a scan per replica.
class ReadLatencies {
 public:
  static constexpr Duration kJudgeEvery = std::chrono::milliseconds(100);

  ReadLatencies(const policy::HedgeConfig& config, std::size_t replicas);

  void record(std::uint32_t replica, const control::AttemptLatency& sample, TimePoint now) {
    trackers_[replica].record(sample, now);
  }
  /// How long to wait for this replica before a read is sent to another one.
  [[nodiscard]] Duration delay(std::uint32_t replica, TimePoint now) {
    return policy::capped_by(cohort_, trackers_[replica].hedge_delay(now), config_).delay;
  }
  /// Zero: unknown.
  [[nodiscard]] Duration median(std::uint32_t replica) const noexcept { return medians_[replica]; }
  [[nodiscard]] bool cohort_slow() const noexcept { return cohort_.slow; }
  /// Time passes: judges the cohort every kJudgeEvery.
  void tick(TimePoint now);

 private:
  policy::HedgeConfig config_;
  std::vector<control::LatencyTracker> trackers_;
  std::vector<Duration> medians_;
  std::vector<policy::CohortMember> members_;
  policy::HedgeCohort cohort_{};
  TimePoint judge_at_{};
};

}  // namespace weir::inline v0::sim
