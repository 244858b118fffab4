#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/base/time.h"

namespace weir::inline v0::sim {

/// Timeouts of equal length: they expire in the order in which they began, so a queue holds them
/// and only its head needs an event. Most attempts end in time; at the head, theirs are skipped.
///
/// Promises: first in, first out. Cost: O(1), 16 bytes per attempt begun within one timeout.
class TimeoutLane {
 public:
  struct Entry {
    TimePoint at{};
    std::uint32_t attempt = 0;
    std::uint32_t life = 0;
  };

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Entry& front() const noexcept { return ring_[head_ & (ring_.size() - 1)]; }
  void pop() noexcept {
    ++head_;
    --size_;
  }
  void push(const Entry& entry) {
    if (size_ == ring_.size()) grow();
    ring_[(head_ + size_) & (ring_.size() - 1)] = entry;
    ++size_;
  }

  bool scheduled = false;  // an event for the head is pending

 private:
  void grow() {
    std::vector<Entry> larger(ring_.empty() ? 64 : ring_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
    ring_.swap(larger);
    head_ = 0;
  }

  std::vector<Entry> ring_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0::sim
