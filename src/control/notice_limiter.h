#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// Passes one notice per kind and second and counts the others, so that many refusals cause only
/// one log line per second.
/// Thread-safety: any member, any thread. Cost: one add, one load.
template <std::size_t Kinds>
class NoticeLimiterOf {
 public:
  static constexpr std::int64_t kQuietNs = 1'000'000'000;

  /// The number of events that the notice due now stands for; 0: none is due.
  [[nodiscard]] std::uint64_t note(std::size_t kind, TimePoint now) noexcept {
    Kind& k = kinds_[kind];
    k.pending.fetch_add(1, std::memory_order_relaxed);
    std::int64_t last = k.last_ns.load(std::memory_order_relaxed);
    if (last != 0 && to_ns(now) - last < kQuietNs) return 0;
    if (!k.last_ns.compare_exchange_strong(last, to_ns(now), std::memory_order_relaxed)) return 0;
    return k.pending.exchange(0, std::memory_order_relaxed);
  }

 private:
  struct Kind {
    std::atomic<std::int64_t> last_ns{0};
    std::atomic<std::uint64_t> pending{0};
  };
  std::array<Kind, Kinds> kinds_{};
};

/// One kind per reason, and one per class for "near its bound".
struct NoticeLimiter {
  NoticeLimiterOf<kReasonCount> refusals;
  NoticeLimiterOf<kPriorityCount> warnings;
};

}  // namespace weir::inline v0::inline control
