#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline control {

/// How many requests a scope finishes per second (rate), and how many it can finish (capacity). The
/// capacity is known only while at least one request waits all the time. The wait of a new request
/// is estimated from the capacity, because a service that gets ten a second may be able to do a
/// thousand.
///
/// A measurement spans at least 100 ms and is fresh for one second. If it spans more than 300 ms,
/// the process was stalled meanwhile, and the capacity is unknown.
/// Thread-safety: any member, any thread; one of them takes the measurement. Cost: loads only,
/// unless a measurement is due.
class DrainRate {
 public:
  static constexpr std::int64_t kSpanMinNs = 100'000'000;
  static constexpr std::int64_t kSpanMaxNs = 300'000'000;
  static constexpr std::int64_t kFreshNs = 1'000'000'000;

  /// `finished` returns the count of finished requests, which never decreases; `waited` returns
  /// whether there was a waiter all the time since its last call. Called only if a measurement is
  /// due.
  template <class Finished, class Waited>
  void refresh(TimePoint now, Finished&& finished, Waited&& waited) noexcept {
    std::int64_t at = measured_ns_.load(std::memory_order_relaxed);
    const std::int64_t span = to_ns(now) - at;
    if (at != 0 && span < kSpanMinNs) return;
    if (!measured_ns_.compare_exchange_strong(at, to_ns(now), std::memory_order_acq_rel)) return;
    const std::uint64_t count = finished();
    const std::uint64_t before = finished_.exchange(count, std::memory_order_relaxed);
    // After a long pause the span does not describe the present: start over.
    const bool usable = at != 0 && span <= kFreshNs && count >= before;
    const double rate =
        usable ? static_cast<double>(count - before) * 1e9 / static_cast<double>(span) : 0;
    const double old = per_second_.load(std::memory_order_relaxed);
    const bool smooth = usable && old > 0;
    per_second_.store(smooth ? 0.5 * old + 0.5 * rate : rate, std::memory_order_relaxed);
    const bool full = waited() && usable && span <= kSpanMaxNs;
    const double known = capacity_.load(std::memory_order_relaxed);
    capacity_.store(!full       ? 0
                    : known > 0 ? 0.5 * known + 0.5 * rate
                                : rate,
                    std::memory_order_relaxed);
  }

  /// Zero when there is no fresh measurement.
  [[nodiscard]] double per_second(TimePoint now) const noexcept {
    const std::int64_t at = measured_ns_.load(std::memory_order_relaxed);
    if (at == 0 || to_ns(now) - at > kFreshNs) return 0;
    return per_second_.load(std::memory_order_relaxed);
  }
  /// Requests per second that it finishes while it always has work; zero if unknown.
  [[nodiscard]] double capacity(TimePoint now) const noexcept {
    const std::int64_t at = measured_ns_.load(std::memory_order_relaxed);
    if (at == 0 || to_ns(now) - at > kFreshNs) return 0;
    return capacity_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> measured_ns_{0};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<double> per_second_{0};
  std::atomic<double> capacity_{0};
};

}  // namespace weir::inline v0::inline control
