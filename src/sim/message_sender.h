#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/outgoing_queues.h"
#include "weir/policy/priority.h"

#include "scenario.h"

namespace weir::inline v0::sim {

/// A node that sends messages: production's outgoing queues, and the messages in them.
///
/// Promises: every accepted message comes back once, by finish() or as one of take_ended().
/// Thread-safety: none. Cost: as OutgoingQueues; memory grows with the messages inside.
class MessageSender {
 public:
  struct Offer {
    std::uint32_t owner = 0;  // the attempt, whose message it is
    std::uint32_t destination = 0;
    Priority priority = Priority::kNormal;
    std::uint64_t bytes = 0;
    TimePoint deadline{};  // zero: none
  };
  struct Ended {
    std::uint32_t owner = 0;
    OutgoingEnd how = OutgoingEnd::kDropped;  // or kExpired
  };

  explicit MessageSender(const SenderSpec& spec);
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;
  ~MessageSender();

  /// The number of the message; nullopt: it was refused.
  [[nodiscard]] std::optional<std::uint32_t> put(const Offer& offer, TimePoint now);
  /// The owner of the next message to send; nullopt: there is none that may be sent now.
  [[nodiscard]] std::optional<std::uint32_t> next(TimePoint now);
  /// The end of a message that was sent: its answer came, or it is given up.
  void finish(std::uint32_t message, OutgoingEnd how);
  void expire(TimePoint now) { queues_.expire(now); }
  /// Messages that left their queue without being sent, since the last call.
  [[nodiscard]] std::vector<Ended> take_ended();

  /// Messages that wait for this destination.
  [[nodiscard]] std::uint64_t queued(std::uint32_t destination) const noexcept;
  [[nodiscard]] OutgoingStats stats() const noexcept { return queues_.stats(); }

 private:
  struct Message : OutgoingItem {
    explicit Message(MessageSender& sender) noexcept
        : OutgoingItem(&MessageSender::on_end, &sender) {}
    std::uint32_t index = 0;
    std::uint32_t owner = 0;
  };

  static void on_end(OutgoingItem& item, OutgoingEnd how) noexcept;
  [[nodiscard]] DestinationKey key_of(std::uint32_t destination) const noexcept {
    return shared_ ? 0 : destination;
  }

  OutgoingDirectory directory_;
  OutgoingQueues queues_;
  std::deque<Message> messages_;
  std::vector<std::uint32_t> free_;
  std::vector<Ended> ended_;
  bool shared_;
};

}  // namespace weir::inline v0::sim
