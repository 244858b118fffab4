#pragma once

// A sender of messages over UDP with a queue per destination. The other side acknowledges a message
// by sending its number back.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "weir/base/intrusive_list.h"
#include "weir/control/outgoing_queues.h"
#include "weir/embed/clock.h"
#include "weir/experimental/io/fd.h"

/// A datagram socket on a loopback port that the system chooses; an empty Fd on failure.
inline weir::io::Fd datagram_socket(sockaddr_in& name) {
  weir::io::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  name.sin_family = AF_INET;
  name.sin_port = 0;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  const bool ok =
      ::bind(socket.get(), address, size) == 0 && ::getsockname(socket.get(), address, &size) == 0;
  return ok ? std::move(socket) : weir::io::Fd();
}

class DatagramSender {
 public:
  struct Rules {
    weir::Duration ack_timeout = std::chrono::seconds(1);    // then a message has failed
    weir::Duration useless_after = std::chrono::seconds(3);  // in the queue
  };
  /// What became of the messages of one class to one destination.
  struct ClassCounts {
    std::uint64_t offered = 0;
    std::uint64_t refused = 0;
    std::uint64_t sent = 0;
  };
  struct Seen {
    weir::OutgoingState worst = weir::OutgoingState::kHealthy;
    std::array<ClassCounts, weir::kPriorityCount> classes{};
    std::vector<weir::Duration> took;  // from offer to acknowledgement
  };

  DatagramSender(const std::vector<sockaddr_in>& to, const Rules& rules)
      : rules_(rules), queues_(directory_), unanswered_(to.size()), seen_(to.size()) {
    for (const sockaddr_in& name : to) {
      sockaddr_in own{};
      weir::io::Fd& socket = sockets_.emplace_back(datagram_socket(own));
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
      polled_.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
    }
  }

  // [fan out]
  /// Offers one message; the queue never blocks and says what to do next.
  weir::OutgoingPut offer(std::size_t destination, weir::Priority priority, weir::TimePoint now) {
    Message& message = take_free();
    message.destination = destination;
    message.number = next_number_++;
    message.made_at = now;
    message.item.priority = priority;
    message.item.bytes = sizeof message.number;
    message.item.deadline = now + rules_.useless_after;
    const weir::OutgoingPut put = queues_.put(destination, message.item, now);
    note(message, put);
    if (!put.accepted()) free_.push_back(message);  // it has ended already
    return put;
  }

  /// Sends what the queues allow: a destination whose window is full is passed over.
  void pump(weir::TimePoint now) {
    queues_.expire(now);
    while (weir::OutgoingItem* item = queues_.next(now)) {
      Message& message = *static_cast<Message*>(item->context());
      message.sent_at = now;
      ::send(sockets_[message.destination].get(), &message.number, sizeof message.number, 0);
      unanswered_[message.destination].push_back(message);
    }
  }
  // [end]

  /// Waits up to a millisecond, and ends messages that were acknowledged, or not in time.
  void take_answers() {
    ::poll(polled_.data(), polled_.size(), 1);
    const weir::TimePoint now = weir::embed::now();
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      std::uint64_t number = 0;
      while (polled_[i].revents != 0 &&
             ::recv(sockets_[i].get(), &number, sizeof number, 0) == sizeof number) {
        acknowledged(i, number, now);
      }
      while (Message* oldest = unanswered_[i].front()) {
        if (oldest->sent_at + rules_.ack_timeout > now) break;
        fail(*oldest);
      }
    }
  }
  void close() {
    queues_.close();
    for (Messages& messages : unanswered_) {
      while (Message* message = messages.front()) fail(*message);
    }
  }
  [[nodiscard]] bool idle() const {
    const weir::OutgoingStats stats = queues_.stats();
    return stats.queued + stats.in_flight == 0;
  }
  [[nodiscard]] weir::OutgoingStats stats(std::size_t destination) const {
    const weir::OutgoingQueue* queue = queues_.find(destination);
    return queue != nullptr ? queue->stats() : weir::OutgoingStats{};
  }
  [[nodiscard]] const Seen& seen(std::size_t destination) const { return seen_[destination]; }

 private:
  /// The queues hold nothing but the item in it.
  struct Message {
    explicit Message(DatagramSender& owner) : item(&Message::on_end, this), sender(owner) {}
    static void on_end(weir::OutgoingItem& ended, weir::OutgoingEnd) noexcept {
      Message& message = *static_cast<Message*>(ended.context());
      message.sender.free_.push_back(message);
    }
    weir::OutgoingItem item;
    DatagramSender& sender;
    std::size_t destination = 0;
    std::uint64_t number = 0;
    weir::TimePoint made_at{};
    weir::TimePoint sent_at{};
    weir::ListHook<Message> hook;  // free, or not acknowledged
  };
  using Messages = weir::IntrusiveList<Message, &Message::hook>;

  Message& take_free() {
    if (free_.empty()) free_.push_back(*messages_.emplace_back(std::make_unique<Message>(*this)));
    Message& message = *free_.front();
    free_.remove(message);
    return message;
  }
  void note(const Message& message, const weir::OutgoingPut& put) {
    Seen& seen = seen_[message.destination];
    seen.worst = std::max(seen.worst, put.state);
    ClassCounts& counts = seen.classes[index_of(message.item.priority)];
    ++counts.offered;
    if (!put.accepted()) ++counts.refused;
  }
  void acknowledged(std::size_t from, std::uint64_t number, weir::TimePoint now) {
    for (Message& message : unanswered_[from]) {
      if (message.number != number) continue;
      seen_[from].took.push_back(now - message.made_at);
      ++seen_[from].classes[index_of(message.item.priority)].sent;
      unanswered_[from].remove(message);
      queues_.finish(message.item, weir::OutgoingEnd::kSent);
      return;
    }
  }
  void fail(Message& message) {
    unanswered_[message.destination].remove(message);
    queues_.finish(message.item, weir::OutgoingEnd::kFailed);
  }

  const Rules rules_;
  weir::OutgoingDirectory directory_{weir::OutgoingConfig{}};
  weir::OutgoingQueues queues_;
  std::vector<std::unique_ptr<Message>> messages_;
  Messages free_;
  std::vector<weir::io::Fd> sockets_;
  std::vector<pollfd> polled_;
  std::vector<Messages> unanswered_;  // of each destination, oldest first
  std::vector<Seen> seen_;
  std::uint64_t next_number_ = 0;
};
