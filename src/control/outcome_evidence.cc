#include "outcome_evidence.h"

#include <optional>

namespace weir::inline v0::inline control {

OutcomeEvidence::Reading OutcomeEvidence::read() const noexcept {
  Reading out;
  out.answered = counters_.sum(&ScopeCounters::answered);
  out.overloads = counters_.sum(&ScopeCounters::overloads);
  counters_.sum_sources(&ScopeCounters::answered_from, out.answered_from);
  counters_.sum_sources(&ScopeCounters::overloads_from, out.overloads_from);
  return out;
}

policy::OutcomeSources OutcomeEvidence::since_judged(const Reading& now) const noexcept {
  policy::OutcomeSources out;
  out.total = {.good = now.answered - judged_.answered,
               .overloaded = now.overloads - judged_.overloads};
  for (std::size_t d = 0; d < out.buckets.size(); ++d) {
    for (std::size_t b = 0; b < out.buckets[d].size(); ++b) {
      const std::size_t i = source_index(static_cast<policy::OutcomeSources::Dimension>(d), b);
      // Modulo 2^32, as intended.
      const std::uint32_t good = now.answered_from[i] - judged_.answered_from[i];
      const std::uint32_t overloaded = now.overloads_from[i] - judged_.overloads_from[i];
      out.buckets[d][b] = {.good = good, .overloaded = overloaded};
    }
  }
  return out;
}

std::uint32_t OutcomeEvidence::counted(const LimitSample& window) noexcept {
  if (!watching()) {
    judged_at_ = window.closed_at;
    return 0;
  }
  const Reading now = read();
  const policy::OutcomeSources outcomes = since_judged(now);
  const Duration age = window.closed_at - judged_at_;
  const std::optional<double> share = policy::OverloadShare::of(outcomes, age < kOthersWait);
  if (!share && age < kAgeMax) return 0;
  if (outcomes.total.overloaded == 0) watching_.store(false, std::memory_order_relaxed);
  judged_ = now;
  judged_at_ = window.closed_at;
  if (!share) return 0;
  return policy::overloads_for_share(*share, window.sample_count, window.overload_count);
}

}  // namespace weir::inline v0::inline control
