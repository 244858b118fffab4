#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "weir/control/outgoing_queue.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {

/// A message that remembers how it ended, and how often it was told.
struct Message : OutgoingItem {
  explicit Message(int its_id = 0, Priority its_priority = Priority::kNormal,
                   std::uint64_t its_bytes = 10)
      : OutgoingItem(&Message::told), id(its_id) {
    priority = its_priority;
    bytes = its_bytes;
  }
  int id;
  int ends = 0;
  std::optional<OutgoingEnd> end{};

 private:
  static void told(OutgoingItem& item, OutgoingEnd how) noexcept {
    auto& message = static_cast<Message&>(item);
    message.end = how;
    ++message.ends;
  }
};

[[nodiscard]] inline int id_of(const OutgoingItem* item) {
  return item == nullptr ? -1 : static_cast<const Message*>(item)->id;
}

[[nodiscard]] inline bool conserved(const OutgoingStats& s) {
  return s.offered ==
         s.sent + s.failed + s.dropped + s.refused + s.expired + s.queued + s.in_flight;
}

/// A small queue, and what belongs to it.
struct SmallQueue {
  explicit SmallQueue(std::uint32_t primary = 4, std::uint32_t ring = 2) {
    config.queue_size = primary;
    config.overflow_size = ring;
    config.critical_size = 2;
    config.in_flight_max = 100;
    config.destination_bytes_max = ByteSize(1000);
    config.total_bytes_max = ByteSize(1500);
  }
  ~SmallQueue() {
    queue.close();
    while (!flying.empty()) finish(OutgoingEnd::kSent);
  }
  /// Puts a new message, which lives as long as this.
  OutgoingPut put(int id, Priority priority = Priority::kNormal, std::uint64_t bytes = 10,
                  TimePoint now = kStart) {
    messages.emplace_back(id, priority, bytes);
    return queue.put(messages.back(), now);
  }
  int get(TimePoint now = kStart) {
    OutgoingItem* item = queue.get(now);
    if (item != nullptr) flying.push_back(item);
    return id_of(item);
  }
  void finish(OutgoingEnd how) {
    OutgoingItem* item = flying.front();
    flying.pop_front();
    queue.finish(*item, how);
  }
  [[nodiscard]] const Message& message(int id) const {
    for (const Message& message : messages) {
      if (message.id == id) return message;
    }
    return messages.at(messages.size());
  }

  OutgoingConfig config;
  OutgoingCounts counts;
  OutgoingTotals totals;
  std::deque<Message> messages;
  std::deque<OutgoingItem*> flying;
  OutgoingQueue queue{config, counts, totals};
};

}  // namespace weir::inline v0::inline control
