#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/base/thread_slot.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

#include "control/latency_histogram.h"
#include "policy/overload_share.h"

namespace weir::inline v0::inline control {

/// One counter per bucket of every dimension of sources.
template <class Count>
using SourceCounters =
    std::array<Count, policy::OutcomeSources::kDimensions * policy::OutcomeSources::kBuckets>;

[[nodiscard]] constexpr std::size_t source_index(policy::OutcomeSources::Dimension dimension,
                                                 std::size_t key) noexcept {
  return static_cast<std::size_t>(dimension) * policy::OutcomeSources::kBuckets +
         key % policy::OutcomeSources::kBuckets;
}

[[nodiscard]] constexpr std::size_t refused_index(Reason reason, Priority priority) noexcept {
  return index_of(reason) * kPriorityCount + index_of(priority);
}

/// What one thread has counted for one scope since the start. Values only grow: readers subtract
/// two readings, and no counter is reset while a thread writes it.
struct alignas(64) ScopeCounters {
  std::atomic<std::uint64_t> finished{0};  // permits given back, with any outcome
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> latency_ns{0};  // sum over samples
  std::atomic<std::uint64_t> abandoned{0};   // samples whose client left
  std::atomic<std::uint64_t> answered{0};    // with Outcome::kOk, while OutcomeEvidence watches
  std::atomic<std::uint64_t> overloads{0};
  std::atomic<std::uint64_t> errors{0};
  std::atomic<std::uint64_t> limit_hits{0};  // refused or made to wait by the limit
  std::array<std::atomic<std::uint64_t>, kPriorityCount> acquired{};
  std::array<std::atomic<std::uint64_t>, kPriorityCount> shed{};
  /// By reason and class: refused_index().
  std::array<std::atomic<std::uint64_t>, kReasonCount * kPriorityCount> refused{};
  std::array<std::atomic<std::uint64_t>, kReasonCount> would_refuse{};
  std::array<std::atomic<std::uint32_t>, LatencyBuckets::kCount> histogram{};  // wraps, by design
  SourceCounters<std::atomic<std::uint32_t>> answered_from{};                  // wraps
  SourceCounters<std::atomic<std::uint32_t>> overloads_from{};                 // wraps
};

/// One ScopeCounters per thread slot.
///
/// Thread-safety: each thread adds through mine(); any may sum. Cost: adding is a plain store.
class ScopeCounterSlots {
 public:
  template <class Member>
  void add(Member member, std::uint64_t delta = 1) noexcept {
    const std::uint32_t slot = this_thread_slot();
    slot_add(slots_[slot].*member, delta, slot);
  }
  template <class Member>
  void add_at(Member member, std::size_t index) noexcept {
    const std::uint32_t slot = this_thread_slot();
    slot_add((slots_[slot].*member)[index], std::uint64_t{1}, slot);
  }
  /// Returns how many samples this thread's slot holds now.
  std::uint64_t add_sample(Duration latency) noexcept {
    const std::uint32_t slot = this_thread_slot();
    ScopeCounters& mine = slots_[slot];
    slot_add(mine.latency_ns, static_cast<std::uint64_t>(latency.count()), slot);
    slot_add(mine.histogram[LatencyBuckets::index(latency)], std::uint32_t{1}, slot);
    slot_add(mine.samples, std::uint64_t{1}, slot);
    return mine.samples.load(std::memory_order_relaxed);
  }

  template <class Member>
  void add_from(Member member, std::size_t index) noexcept {
    const std::uint32_t slot = this_thread_slot();
    slot_add((slots_[slot].*member)[index], std::uint32_t{1}, slot);
  }

  template <class Member>
  [[nodiscard]] std::uint64_t sum(Member member) const noexcept {
    std::uint64_t total = 0;
    for (const ScopeCounters& s : slots_) total += (s.*member).load(std::memory_order_relaxed);
    return total;
  }
  template <class Member>
  [[nodiscard]] std::uint64_t sum_at(Member member, std::size_t index) const noexcept {
    std::uint64_t total = 0;
    for (const ScopeCounters& s : slots_) {
      total += (s.*member)[index].load(std::memory_order_relaxed);
    }
    return total;
  }
  template <class Member>
  void sum_sources(Member member, SourceCounters<std::uint32_t>& into) const noexcept {
    into.fill(0);
    for (const ScopeCounters& s : slots_) {
      if (s.finished.load(std::memory_order_relaxed) == 0) continue;
      for (std::size_t i = 0; i < into.size(); ++i) {
        into[i] += (s.*member)[i].load(std::memory_order_relaxed);
      }
    }
  }
  void sum_histogram(std::array<std::uint32_t, LatencyBuckets::kCount>& into) const noexcept {
    into.fill(0);
    for (const ScopeCounters& s : slots_) {
      if (s.samples.load(std::memory_order_relaxed) == 0) continue;
      for (std::size_t i = 0; i < into.size(); ++i) {
        into[i] += s.histogram[i].load(std::memory_order_relaxed);
      }
    }
  }

 private:
  std::array<ScopeCounters, kThreadSlots> slots_{};
};

}  // namespace weir::inline v0::inline control
