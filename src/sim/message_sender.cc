#include "message_sender.h"

#include <utility>

namespace weir::inline v0::sim {

MessageSender::MessageSender(const SenderSpec& spec)
    : directory_(spec.queues), queues_(directory_), shared_(spec.shared) {}

MessageSender::~MessageSender() {
  queues_.close();
  for (Message& message : messages_) {
    if (message.in_flight()) queues_.finish(message, OutgoingEnd::kFailed);
  }
}

std::optional<std::uint32_t> MessageSender::put(const Offer& offer, TimePoint now) {
  if (free_.empty()) {
    messages_.emplace_back(*this);
    messages_.back().index = static_cast<std::uint32_t>(messages_.size() - 1);
    free_.push_back(messages_.back().index);
  }
  Message& message = messages_[free_.back()];
  free_.pop_back();
  message.owner = offer.owner;
  message.priority = offer.priority;
  message.bytes = offer.bytes;
  message.deadline = offer.deadline;
  if (queues_.put(key_of(offer.destination), message, now).accepted()) return message.index;
  free_.push_back(message.index);
  return std::nullopt;
}

std::optional<std::uint32_t> MessageSender::next(TimePoint now) {
  const OutgoingItem* item = queues_.next(now);
  if (item == nullptr) return std::nullopt;
  return static_cast<const Message*>(item)->owner;
}

void MessageSender::finish(std::uint32_t message, OutgoingEnd how) {
  queues_.finish(messages_[message], how);
}

void MessageSender::on_end(OutgoingItem& item, OutgoingEnd how) noexcept {
  auto& message = static_cast<Message&>(item);
  auto& sender = *static_cast<MessageSender*>(item.context());
  sender.free_.push_back(message.index);
  const bool was_sent = how == OutgoingEnd::kSent || how == OutgoingEnd::kFailed;
  if (!was_sent) sender.ended_.push_back({message.owner, how});
}

std::vector<MessageSender::Ended> MessageSender::take_ended() {
  return std::exchange(ended_, {});
}

std::uint64_t MessageSender::queued(std::uint32_t destination) const noexcept {
  const OutgoingQueue* queue = queues_.find(key_of(destination));
  return queue == nullptr ? 0 : queue->stats().queued;
}

}  // namespace weir::inline v0::sim
