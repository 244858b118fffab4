#include "policy/check_schedule.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0::inline policy {
namespace {

Duration part_of(Duration whole, double share) noexcept {
  return Duration(static_cast<std::int64_t>(static_cast<double>(whole.count()) * share));
}

}  // namespace

CheckSchedule::CheckSchedule(TimePoint now, const CheckScheduleRules& rules, Rng& rng) noexcept
    : next_(now + part_of(rules.interval, rng.unit())) {}

void CheckSchedule::sent() noexcept {
  WEIR_ASSERT(!outstanding_);
  outstanding_ = true;
  hurried_ = false;
}

void CheckSchedule::finished(TimePoint now, bool suspect, const CheckScheduleRules& rules,
                             Rng& rng) noexcept {
  WEIR_ASSERT(outstanding_);
  outstanding_ = false;
  const double stretch = 1 + rules.jitter * (2 * rng.unit() - 1);
  if (hurried_) {
    next_ = now;
  } else if (suspect) {
    next_ = now + std::min(rules.interval_suspect, rules.interval);
  } else {
    next_ = now + part_of(rules.interval, stretch);
  }
  hurried_ = false;
}

void CheckSchedule::hurry(TimePoint now) noexcept {
  next_ = std::min(next_, now);
  hurried_ = outstanding_;
}

}  // namespace weir::inline v0::inline policy
