#pragma once

#include <atomic>
#include <cstdint>

namespace weir::inline v0 {

/// A number with one writing thread and any number of readers.
///
/// Promises: readers see whole values. Cost: a plain load and store; no locked instruction.
class OwnedCount {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void sub(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weir::inline v0
