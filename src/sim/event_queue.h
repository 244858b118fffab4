#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/time.h"

namespace weir::inline v0::sim {

/// An event: a kind, its subject, and a token by which the subject recognises whether the event is
/// still valid (to cancel an event, change the token).
struct SimEvent {
  TimePoint at{};
  std::uint8_t kind = 0;
  std::uint32_t subject = 0;
  std::uint32_t token = 0;
};

/// The pending events in order: a 4-ary heap by (time, order of scheduling), so that events of the
/// same instant always happen in the order in which they were scheduled.
///
/// Promises: a total, replayable order. Memory grows with the pending events, not with time.
/// Thread-safety: none. Cost: O(log n) each, 24 bytes per event; amortised no allocation.
class EventQueue {
 public:
  EventQueue() { heap_.reserve(1024); }

  void push(const SimEvent& event) {
    const Entry entry{to_ns(event.at), (next_order_++ << 8U) | event.kind, event.subject,
                      event.token};
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// The instant of the next event. Must not be empty.
  [[nodiscard]] TimePoint next_at() const noexcept { return time_from_ns(heap_.front().at_ns); }

  SimEvent pop() {
    WEIR_ASSERT(!heap_.empty());
    const Entry top = heap_.front();
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return {time_from_ns(top.at_ns), static_cast<std::uint8_t>(top.order_and_kind & 0xFFU),
            top.subject, top.token};
  }

 private:
  struct Entry {
    std::int64_t at_ns;
    std::uint64_t order_and_kind;  // 56 bits of order: enough for centuries of events
    std::uint32_t subject;
    std::uint32_t token;
  };
  static bool before(const Entry& a, const Entry& b) noexcept {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.order_and_kind < b.order_and_kind;
  }

  void sift_up(std::size_t hole, const Entry& entry) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!before(entry, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  void sift_down(const Entry& entry) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * 4 + 1;
      if (first >= size) break;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], entry)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = entry;
  }

  std::vector<Entry> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace weir::inline v0::sim
