#include <algorithm>
#include <utility>

#include "world.h"

// Messages of senders: they wait in the queue to their destination until it may be sent one.

namespace weir::inline v0::sim {
namespace {

constexpr Duration kSenderTickEvery = std::chrono::milliseconds(20);

}  // namespace

void World::build_senders() {
  for (std::uint32_t i = 0; i < scenario_.senders.size(); ++i) {
    senders_.push_back(std::make_unique<Sender>(scenario_.senders[i]));
    schedule(now_, Kind::kSenderTick, i);
  }
}

World::Sender& World::sender_of(const Attempt& attempt) noexcept {
  return *senders_[*loads_[attempt.load].spec->sender];
}

void World::put_message(Attempt& attempt) {
  Sender& sender = sender_of(attempt);
  const Duration expires = loads_[attempt.load].spec->expires;
  MessageTotals& totals = recorder_.service(attempt.service).messages;
  ++totals.offered;
  attempt.state = AttemptState::kOutgoing;
  const auto message =
      sender.messages.put({.owner = attempt.index,
                           .destination = attempt.service,
                           .priority = attempt.priority,
                           .bytes = attempt.bytes,
                           .deadline = expires.count() > 0 ? now_ + expires : TimePoint{}},
                          now_);
  if (message) {
    attempt.message = *message;
    const auto queued = static_cast<std::uint32_t>(sender.messages.queued(attempt.service));
    totals.queued_max = std::max(totals.queued_max, queued);
  } else {
    ++totals.refused;
    end_call(attempt, CallEnd::kRefused);
  }
  settle_messages(sender);
  pump(sender);
}

// An answer may come at once and make room for the next one.
void World::pump(Sender& sender) {
  if (std::exchange(sender.pumping, true)) return;  // the outer call goes on
  while (const auto owner = sender.messages.next(now_)) send(attempts_[*owner]);
  sender.pumping = false;
  settle_messages(sender);  // expired ones
}

void World::message_ended(Attempt& attempt, CallEnd end) {
  Sender& sender = sender_of(attempt);
  const std::uint32_t message = std::exchange(attempt.message, kNoAttempt);
  sender.messages.finish(message, end == CallEnd::kOk ? OutgoingEnd::kSent : OutgoingEnd::kFailed);
  pump(sender);
}

void World::settle_messages(Sender& sender) {
  for (const MessageSender::Ended& ended : sender.messages.take_ended()) {
    Attempt& attempt = attempts_[ended.owner];
    MessageTotals& totals = recorder_.service(attempt.service).messages;
    const bool expired = ended.how == OutgoingEnd::kExpired;
    ++(expired ? totals.expired : totals.dropped);
    attempt.message = kNoAttempt;
    end_call(attempt, expired ? CallEnd::kTimedOut : CallEnd::kRefused);
  }
}

void World::tick_sender(std::uint32_t index) {
  senders_[index]->messages.expire(now_);
  settle_messages(*senders_[index]);
  pump(*senders_[index]);
  if (now_ < end_) schedule(now_ + kSenderTickEvery, Kind::kSenderTick, index);
}

}  // namespace weir::inline v0::sim
