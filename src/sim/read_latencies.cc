#include "read_latencies.h"

namespace weir::inline v0::sim {

ReadLatencies::ReadLatencies(const policy::HedgeConfig& config, std::size_t replicas)
    : config_(config), trackers_(replicas), medians_(replicas) {
  for (control::LatencyTracker& tracker : trackers_) tracker.set_config(config);
}

void ReadLatencies::tick(TimePoint now) {
  if (now < judge_at_) return;
  judge_at_ = now + kJudgeEvery;
  members_.clear();
  for (std::size_t i = 0; i < trackers_.size(); ++i) {
    const control::LatencyReading reading = trackers_[i].reading(now);
    medians_[i] = reading.known() ? reading.median : Duration(0);
    if (reading.known()) members_.push_back({reading.delay.delay, reading.median});
  }
  cohort_ = policy::judge_cohort(members_, cohort_, config_);
}

}  // namespace weir::inline v0::sim
