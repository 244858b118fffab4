#pragma once

#include <atomic>
#include <cstdint>

#include "weir/policy/memory_shedding.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline control {

/// The memory rule for all threads: the owner stores readings, decisions read one byte.
/// Thread-safety: sheds() and the getters from any thread; set() and set_rules() are serialised by
/// the owner. Cost: one load per decision, unless memory is short.
class MemoryGate {
 public:
  void set_rules(const MemoryRules& rules) noexcept {
    rules_ = rules;
    share_.store(ShedShare(rules.low_priority_shed_ratio), std::memory_order_relaxed);
    set(usage(), readable());
  }

  void set(double usage, bool readable) noexcept {
    const double counted = readable ? usage : 0.0;
    usage_.store(counted, std::memory_order_relaxed);
    readable_.store(readable, std::memory_order_relaxed);
    level_.store(next_memory_level(level_.load(std::memory_order_relaxed), counted, rules_),
                 std::memory_order_relaxed);
  }

  /// Requests that are shed and those that a rule in shadow mode only counts have each the share of
  /// their own number: otherwise the order in which they come would change the share of both.
  [[nodiscard]] bool sheds(Priority priority, bool enforced) noexcept {
    const MemoryLevel level = level_.load(std::memory_order_relaxed);
    if (level == MemoryLevel::kNormal) return false;
    std::atomic<std::uint64_t>& count = enforced ? low_requests_ : low_requests_in_shadow_;
    return decide(
        level, priority,
        counts_low_request(level, priority) ? count.fetch_add(1, std::memory_order_relaxed) : 0);
  }
  /// What sheds() would return; counts nothing.
  [[nodiscard]] bool would_shed(Priority priority, bool enforced) const noexcept {
    const std::atomic<std::uint64_t>& count = enforced ? low_requests_ : low_requests_in_shadow_;
    return decide(level(), priority, count.load(std::memory_order_relaxed));
  }

  [[nodiscard]] MemoryLevel level() const noexcept {
    return level_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] double usage() const noexcept { return usage_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool readable() const noexcept { return readable_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool decide(MemoryLevel level, Priority priority,
                            std::uint64_t ordinal) const noexcept {
    return decide_memory(level, priority, ordinal, share_.load(std::memory_order_relaxed)) !=
           Reason::kAdmitted;
  }

  MemoryRules rules_;
  std::atomic<ShedShare> share_{};
  std::atomic<MemoryLevel> level_{MemoryLevel::kNormal};
  std::atomic<double> usage_{0};
  std::atomic<bool> readable_{true};
  std::atomic<std::uint64_t> low_requests_{0};
  std::atomic<std::uint64_t> low_requests_in_shadow_{0};
};

}  // namespace weir::inline v0::inline control
