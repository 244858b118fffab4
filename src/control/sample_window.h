#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "weir/base/bounded_count.h"
#include "weir/base/time.h"
#include "weir/policy/limit_policy.h"

#include "scope_counters.h"

namespace weir::inline v0::inline control {

/// Divides the stream of finished requests into windows for a LimitPolicy.
///
/// Recording takes no lock: each thread adds to its own counters, which only grow, and a window is
/// the difference of two readings of their sums. So no sample is lost or counted twice under any
/// interleaving. A window closes by time, or earlier by sample count; exactly one thread closes it.
/// Thread-safety: record(), note_in_flight() and is_due() from any thread; close() by one at a time
/// (the caller holds the scope's limiter claim).
class SampleWindow {
 public:
  explicit SampleWindow(ScopeCounterSlots& counters) noexcept : counters_(counters) {}

  /// Applies to this window and later ones. The first window opens at the first close().
  void set_rules(const WindowRules& rules) noexcept;

  /// Records one latency; `abandoned` if the client left before the end. Requests granted before
  /// ignore_before() are left out. Returns true if the caller should check is_due().
  bool record(TimePoint granted_at, TimePoint now, bool abandoned = false) noexcept;
  void ignore_before(TimePoint instant) noexcept {
    samples_from_ns_.store(to_ns(instant), std::memory_order_relaxed);
  }

  void note_in_flight(std::uint32_t units) noexcept { raise_to(in_flight_max_, units); }

  [[nodiscard]] bool is_due(TimePoint now) const noexcept;
  /// Ends the window and starts the next.
  [[nodiscard]] LimitSample close(TimePoint now, std::uint32_t in_flight) noexcept;

 private:
  // After how many samples a thread sums all threads' samples to check for an early close.
  static constexpr std::uint64_t kEarlyCheckEvery = 16;

  struct Totals {
    std::uint64_t samples = 0;
    std::uint64_t latency_ns = 0;
    std::uint64_t abandoned = 0;
    std::uint64_t overloads = 0;
    std::uint64_t limit_hits = 0;
    std::array<std::uint32_t, LatencyBuckets::kCount> histogram{};
  };
  [[nodiscard]] Totals read() const noexcept;

  ScopeCounterSlots& counters_;
  std::atomic<std::int64_t> opened_ns_{0};  // 0: not opened yet
  std::atomic<std::int64_t> duration_ns_{1'000'000'000};
  std::atomic<std::int64_t> duration_min_ns_{100'000'000};
  std::atomic<std::uint32_t> early_samples_{0};
  std::atomic<std::int64_t> samples_from_ns_{0};
  std::atomic<std::uint32_t> in_flight_max_{0};
  std::atomic<std::uint64_t> samples_at_open_{0};
  Totals at_open_;  // used by the closing thread only
};

inline bool SampleWindow::record(TimePoint granted_at, TimePoint now, bool abandoned) noexcept {
  if (to_ns(granted_at) < samples_from_ns_.load(std::memory_order_relaxed)) return false;
  if (abandoned) counters_.add(&ScopeCounters::abandoned);
  const std::uint64_t mine = counters_.add_sample(std::max(now - granted_at, Duration(1)));
  if (mine % kEarlyCheckEvery == 0) return true;
  return to_ns(now) - opened_ns_.load(std::memory_order_relaxed) >=
         duration_ns_.load(std::memory_order_relaxed);
}

}  // namespace weir::inline v0::inline control
