#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "weir/base/time.h"

namespace weir::inline v0::sim {

/// Cores that divide their time equally among all jobs: what a service with threads or coroutines
/// and no queue of its own does.
///
/// Each job needs some work and progresses at min(1, cores / units) of real time, where a job
/// counts as many units as it uses cores. So all jobs progress at the same speed: one sum, the
/// progress of a job that was there from the start, and the value of this sum at which each job
/// ends, are enough. A change of speed costs O(1), a job O(log n).
///
/// Promises: jobs end in the order of the work that was left, then of their arrival.
/// Thread-safety: none. Lifetime: of removed jobs an entry stays until it would have ended.
class ProcessorSharing {
 public:
  struct Job {
    double ends_at = 0;  // in progress
    std::uint64_t order = 0;
    std::uint32_t attempt = 0;
    std::uint32_t token = 0;  // the attempt's; another one means that the job was removed
  };

  /// Accounts for the time since the last call at the speed that held; then `speed` holds.
  void set_speed(TimePoint now, double speed) noexcept {
    progress_ += static_cast<double>((now - updated_at_).count()) * speed_;
    updated_at_ = now;
    speed_ = speed;
  }
  void add(std::uint32_t attempt, std::uint32_t token, Duration work) {
    jobs_.push({progress_ + static_cast<double>(work.count()), ++added_, attempt, token});
  }
  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] const Job& next() const noexcept { return jobs_.top(); }
  void pop() { jobs_.pop(); }
  [[nodiscard]] bool next_has_ended() const noexcept { return jobs_.top().ends_at <= progress_; }
  /// When the next job ends at the current speed, rounded up; never if it is zero.
  [[nodiscard]] TimePoint next_end() const noexcept {
    if (speed_ <= 0) return TimePoint::max();
    const double left = std::max(0.0, jobs_.top().ends_at - progress_) / speed_;
    return updated_at_ + Duration(static_cast<std::int64_t>(left) + 1);
  }

 private:
  struct Later {
    bool operator()(const Job& a, const Job& b) const noexcept {
      return a.ends_at != b.ends_at ? a.ends_at > b.ends_at : a.order > b.order;
    }
  };

  TimePoint updated_at_{};
  double progress_ = 0;
  double speed_ = 0;
  std::uint64_t added_ = 0;
  std::priority_queue<Job, std::vector<Job>, Later> jobs_;
};

}  // namespace weir::inline v0::sim
