#pragma once

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// The latency score of one endpoint: rises to a higher sample at once, falls to lower ones with a
/// time constant. Plain numbers; shared by loops as two atomics or under a small lock (a lost
/// update costs one sample).
struct PeakEwma {
  double ns = 0;  // 0: no sample yet
  TimePoint updated_at{};
};

/// The latencies of all endpoints of the upstream together; zero: unknown.
struct CohortLatency {
  Duration median{};
  Duration p99{};
};

struct PeakEwmaRules {
  Duration decay = std::chrono::seconds(5);  // the time constant
  double clip_medians = 20;                  // a sample counts for at most this many cohort medians
  double return_medians = 2;                 // the score of an endpoint that returns
};

struct LatencySample {
  Duration latency{};
  bool error = false;     // a bad answer: it enters at not less than the cohort's p99, so that fast
                          // errors do not look like a fast endpoint
  bool censored = false;  // the attempt was cancelled (its client left, or another attempt won): it
                          // took at least this long, so it can raise the score but not lower it
  bool beaten = false;    // censored, because an attempt that began later was answered before it
};

/// The score after one more sample x:
///   x = min(x, clip × median); for an error x = max(x, cohort p99)
///   x >= old: x;   else  old × w + x × (1 - w),  w = e^(-dt / decay)
/// A censored sample that is above the projected old value: x; otherwise it changes nothing. One
/// that was beaten also pulls the score towards clip × median as a sample would: at least
/// old × w + clip × median × (1 - w). How long it would have taken is not known; but an endpoint
/// all of whose attempts are beaten would look as fast as the hedges that hide it, and would be
/// chosen for that.
/// Samples that silence.h says are caught in a silence must not be given.
///
/// Promises: positive; never above max(old, clip × median, p99); a sample never lowers the score
/// below itself. Time that runs backwards (loops read the clock at different moments) counts as no
/// time. Thread-safety: pure. Cost: O(1), no exp(): w is computed with + × ÷ only, so a replay
/// gives equal numbers with every math library.
[[nodiscard]] PeakEwma with_sample(const PeakEwma& old, const LatencySample& sample,
                                   const CohortLatency& cohort, const PeakEwmaRules& rules,
                                   TimePoint now) noexcept;

/// The score to compare with now, in ns: the value decayed to `now`, without a stored change. (If
/// each read folded a zero in, real samples would weigh almost nothing.) The decay stops at half of
/// the cohort's median, so that an endpoint without recent samples is tried again but not flooded.
/// Without a sample: the cohort's median, or 1 ms if that is unknown.
///
/// Promises: positive; does not rise while `now` grows and nothing else changes.
[[nodiscard]] double projected_ns(const PeakEwma& score, const CohortLatency& cohort,
                                  const PeakEwmaRules& rules, TimePoint now) noexcept;

/// The score of an endpoint that becomes available again: return_medians × the cohort's median.
[[nodiscard]] PeakEwma score_on_return(const CohortLatency& cohort, const PeakEwmaRules& rules,
                                       TimePoint now) noexcept;

}  // namespace weir::inline v0::inline policy
