#pragma once

#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

struct CheckScheduleRules {
  Duration interval = std::chrono::seconds(2);
  double jitter = 0.2;  // each interval is longer or shorter by up to this share
  Duration interval_suspect = std::chrono::milliseconds(500);  // while suspect or hung; no jitter
};

/// When the next active check of one endpoint is due.
///
/// The first one comes after U(0, interval), so that many endpoints, or many gateways that start
/// together, do not check in step. At most one check is outstanding: an endpoint that answers
/// slowly gets fewer checks, not more.
/// Thread-safety: none; one loop owns the checks of an endpoint. Cost: O(1).
class CheckSchedule {
 public:
  CheckSchedule(TimePoint now, const CheckScheduleRules& rules, Rng& rng) noexcept;

  /// A check should be sent now. Follow it with sent().
  [[nodiscard]] bool due(TimePoint now) const noexcept { return !outstanding_ && now >= next_; }
  void sent() noexcept;
  /// The check passed, failed or timed out.
  void finished(TimePoint now, bool suspect, const CheckScheduleRules& rules, Rng& rng) noexcept;
  /// The endpoint became suspect: the next check is due now (or, if one is outstanding, after it).
  void hurry(TimePoint now) noexcept;

  [[nodiscard]] bool outstanding() const noexcept { return outstanding_; }
  [[nodiscard]] TimePoint next() const noexcept { return next_; }

 private:
  TimePoint next_;
  bool outstanding_ = false;
  bool hurried_ = false;  // hurry() came while a check was outstanding
};

}  // namespace weir::inline v0::inline policy
