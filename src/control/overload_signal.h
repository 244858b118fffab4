#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/time.h"

namespace weir::inline v0::inline control {

/// True if waiting or refusals by the limit persist: events at most 100 ms apart, for at least 100
/// ms, the last at most 100 ms ago. One burst is not overload.
/// Thread-safety: any member, any thread; concurrent writers may shift an edge by one event, and a
/// delayed writer cannot set the time back.
class OverloadSignal {
 public:
  static constexpr std::int64_t kPersistNs = 100'000'000;

  void note(TimePoint now) noexcept {
    const std::int64_t at = to_ns(now);
    std::int64_t last = last_ns_.load(std::memory_order_relaxed);
    if (at <= last) return;
    if (last == 0 || at - last > kPersistNs) since_ns_.store(at, std::memory_order_relaxed);
    last_ns_.compare_exchange_strong(last, at, std::memory_order_relaxed);
  }

  [[nodiscard]] bool persists(TimePoint now) const noexcept {
    const std::int64_t last = last_ns_.load(std::memory_order_relaxed);
    const std::int64_t since = since_ns_.load(std::memory_order_relaxed);
    return last != 0 && to_ns(now) - last <= kPersistNs && last - since >= kPersistNs;
  }

 private:
  std::atomic<std::int64_t> since_ns_{0};
  std::atomic<std::int64_t> last_ns_{0};
};

}  // namespace weir::inline v0::inline control
