#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/time.h"

#include "policy/overload_share.h"
#include "scope_counters.h"

namespace weir::inline v0::inline control {

/// How many of a window's overload answers count for the limit (OverloadShare).
///
/// Answers are collected over windows until there are enough of them to tell: for at most 10 s, and
/// at most 1 s if only the answers of other sources are too few. Like a SampleWindow it takes
/// differences of counters that only grow.
///
/// Answers are counted by source only from the first overload answer on, until a judgement without
/// any: a service that reports no overload pays for one load per answer.
/// Thread-safety: counted() by one caller at a time (the scope's limiter claim); the others from
/// any thread. Cost: counted() reads all counters, if there was an overload answer.
class OutcomeEvidence {
 public:
  static constexpr Duration kAgeMax = std::chrono::seconds(10);
  static constexpr Duration kOthersWait = std::chrono::seconds(1);

  explicit OutcomeEvidence(const ScopeCounterSlots& counters) noexcept : counters_(counters) {}

  /// Whether answers have to be counted.
  [[nodiscard]] bool watching() const noexcept { return watching_.load(std::memory_order_relaxed); }
  void watch() noexcept { watching_.store(true, std::memory_order_relaxed); }

  /// For a window that closes now: the overload answers that its limiter should see.
  [[nodiscard]] std::uint32_t counted(const LimitSample& window) noexcept;

 private:
  struct Reading {
    std::uint64_t answered = 0;
    std::uint64_t overloads = 0;
    SourceCounters<std::uint32_t> answered_from{};
    SourceCounters<std::uint32_t> overloads_from{};
  };
  [[nodiscard]] Reading read() const noexcept;
  [[nodiscard]] policy::OutcomeSources since_judged(const Reading& now) const noexcept;

  const ScopeCounterSlots& counters_;
  std::atomic<bool> watching_{false};
  Reading judged_;
  TimePoint judged_at_{};
};

}  // namespace weir::inline v0::inline control
