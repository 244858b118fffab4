#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "policy/recorded_decision.h"

namespace weir::inline v0::inline control {

/// The newest decisions of one thread, in memory of a fixed size; an old one is overwritten by a
/// new one.
///
/// Promises: put() never waits, and never for a reader. A reader gets whole decisions only, in
/// order: those that may have been overwritten while it copied them are left out.
/// Thread-safety: put() by one thread; copy() and put_count() by any.
/// Cost: put() is seven plain stores on x86; 40 bytes each.
class DecisionRing {
 public:
  explicit DecisionRing(std::size_t capacity)
      : capacity_(capacity), slots_(std::make_unique<Slot[]>(capacity)) {}

  void put(const policy::DecisionWords& words) noexcept {
    const std::uint64_t number = begun_.load(std::memory_order_relaxed);
    begun_.store(number + 1, std::memory_order_relaxed);
    // Release: a reader that sees one of these words also sees that the slot is being overwritten.
    for (std::size_t i = 0; i < words.size(); ++i) {
      slots_[at_][i].store(words[i], std::memory_order_release);
    }
    if (++at_ == capacity_) at_ = 0;
    done_.store(number + 1, std::memory_order_release);
  }

  /// Appends the decisions that are still there from number `from` on, the first ever being 0.
  /// Returns the number of the next one, for the next call. `lost`: those that were overwritten.
  std::uint64_t copy(std::uint64_t from, std::vector<policy::DecisionWords>& out,
                     std::uint64_t* lost = nullptr) const {
    const std::uint64_t end = done_.load(std::memory_order_acquire);
    const std::uint64_t first = oldest(end) > from ? oldest(end) : from;
    const std::size_t before = out.size();
    for (std::uint64_t n = first; n < end; ++n) {
      policy::DecisionWords words;
      const Slot& slot = slots_[n % capacity_];
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = slot[i].load(std::memory_order_acquire);
      }
      out.push_back(words);
    }
    // Those whose slots the writer has begun to use again while they were copied.
    const std::uint64_t whole = oldest(begun_.load(std::memory_order_relaxed));
    const std::uint64_t gone = whole > first ? (whole < end ? whole : end) - first : 0;
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(before);
    out.erase(begin, begin + static_cast<std::ptrdiff_t>(gone));
    if (lost != nullptr) *lost += first - from + gone;
    return end > from ? end : from;
  }

  /// Since the start.
  [[nodiscard]] std::uint64_t put_count() const noexcept {
    return done_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  using Slot = std::array<std::atomic<std::uint64_t>, std::tuple_size_v<policy::DecisionWords>>;

  [[nodiscard]] std::uint64_t oldest(std::uint64_t count) const noexcept {
    return count > capacity_ ? count - capacity_ : 0;
  }

  const std::size_t capacity_;
  const std::unique_ptr<Slot[]> slots_;
  std::size_t at_ = 0;  // the writer's
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace weir::inline v0::inline control
