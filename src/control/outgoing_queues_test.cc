// The tests named Seed… are those that the first description of outgoing queues asks for.
#include "weir/control/outgoing_queues.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "base/allocation_probe.h"
#include "outgoing_testing.h"

namespace weir::inline v0::inline control {
namespace {

using policy::OutgoingState;
using std::chrono::milliseconds;

OutgoingConfig few_destinations(std::uint32_t max) {
  OutgoingConfig config;
  config.max_destinations = max;
  return config;
}

/// Queues of one loop, and messages that live as long.
struct Sender {
  explicit Sender(const OutgoingConfig& config = {}) : directory(config), queues(directory) {}
  ~Sender() { queues.close(); }
  OutgoingPut put(DestinationKey to, Priority priority = Priority::kNormal,
                  std::uint64_t bytes = 10) {
    messages.emplace_back(static_cast<int>(messages.size()), priority, bytes);
    return queues.put(to, messages.back(), kStart);
  }
  OutgoingDirectory directory;
  OutgoingQueues queues;
  std::deque<Message> messages;
};

TEST(OutgoingQueues, SeedPerDestinationQueueIsolation) {
  Sender sender;
  for (int i = 0; i < 700; ++i) sender.put(1);
  EXPECT_EQ(sender.queues.state(1), OutgoingState::kSaturated);
  const OutgoingPut other = sender.put(2);
  EXPECT_TRUE(other.accepted());
  EXPECT_EQ(other.state, OutgoingState::kHealthy);
  EXPECT_EQ(other.advice.delay, Duration(0));
  EXPECT_EQ(sender.queues.state(3), OutgoingState::kHealthy);  // it has no queue
  EXPECT_EQ(sender.queues.find(2)->stats().offered, 1U);
}

TEST(OutgoingQueues, SeedLruEvictionWhenMaxDestinationsReached) {
  Sender sender(few_destinations(3));
  const auto send = [&](DestinationKey to) {
    ASSERT_TRUE(sender.put(to).accepted());
    OutgoingItem* item = sender.queues.get(to, kStart);
    ASSERT_NE(item, nullptr);
    sender.queues.finish(*item, OutgoingEnd::kSent);
  };
  for (const DestinationKey to : {1U, 2U, 3U, 1U}) send(to);
  send(4);  // 2 is the one that was not used for the longest time
  EXPECT_EQ(sender.queues.find(2), nullptr);
  for (const DestinationKey to : {1U, 3U, 4U}) EXPECT_NE(sender.queues.find(to), nullptr);
  EXPECT_EQ(sender.queues.size(), 3U);
  EXPECT_EQ(sender.queues.stats().sent, 5U);  // what was counted for 2 stays counted
}

TEST(OutgoingQueues, ABusyDestinationIsNeverGivenUp) {
  Sender sender(few_destinations(2));
  EXPECT_TRUE(sender.put(1).accepted());
  EXPECT_TRUE(sender.put(2).accepted());
  OutgoingItem* flying = sender.queues.get(1, kStart);  // empty, but in flight
  const OutgoingPut refused = sender.put(3);
  EXPECT_EQ(refused.refusal, OutgoingRefusal::kNoDestination);
  EXPECT_EQ(refused.state, OutgoingState::kSaturated);
  EXPECT_GT(refused.advice.delay, Duration(0));
  EXPECT_TRUE(conserved(sender.queues.stats()));
  sender.queues.finish(*flying, OutgoingEnd::kSent);
  EXPECT_TRUE(sender.put(3).accepted());
  EXPECT_EQ(sender.queues.find(1), nullptr);
  EXPECT_NE(sender.queues.find(2), nullptr);
}

TEST(OutgoingQueues, NextServesDestinationsInTurn) {
  Sender sender;
  for (int i = 0; i < 3; ++i) sender.put(1);
  sender.put(2);
  sender.put(3);
  std::vector<DestinationKey> order;
  while (OutgoingItem* item = sender.queues.next(kStart)) {
    order.push_back(OutgoingQueues::destination_of(*item));
    sender.queues.finish(*item, OutgoingEnd::kSent);
  }
  EXPECT_EQ(order, (std::vector<DestinationKey>{1, 2, 3, 1, 1}));
}

TEST(OutgoingQueues, ADestinationWithEnoughInFlightHasNoTurnUntilOneIsDone) {
  OutgoingConfig config;
  config.in_flight_max = 1;
  Sender sender(config);
  sender.put(1);
  sender.put(1);
  OutgoingItem* first = sender.queues.next(kStart);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(sender.queues.next(kStart), nullptr);
  sender.put(1, Priority::kCritical);  // has its turn at once
  OutgoingItem* critical = sender.queues.next(kStart);
  ASSERT_NE(critical, nullptr);
  EXPECT_EQ(critical->priority, Priority::kCritical);
  EXPECT_EQ(sender.queues.next(kStart), nullptr);
  sender.queues.finish(*first, OutgoingEnd::kSent);
  OutgoingItem* second = sender.queues.next(kStart);
  ASSERT_NE(second, nullptr);
  sender.queues.finish(*second, OutgoingEnd::kSent);
  sender.queues.finish(*critical, OutgoingEnd::kSent);
}

TEST(OutgoingQueues, ExpiryReachesEveryDestination) {
  Sender sender;
  for (const DestinationKey to : {1U, 2U}) {
    sender.messages.emplace_back(static_cast<int>(to));
    sender.messages.back().deadline = after_ms(static_cast<std::int64_t>(to));
    sender.queues.put(to, sender.messages.back(), kStart);
  }
  sender.queues.expire(after_ms(1));
  EXPECT_EQ(sender.messages[0].end, OutgoingEnd::kExpired);
  EXPECT_EQ(sender.messages[1].ends, 0);
  sender.queues.withdraw(sender.messages[1]);
  EXPECT_TRUE(conserved(sender.queues.stats()));
  EXPECT_EQ(sender.queues.next(after_ms(1)), nullptr);
}

TEST(OutgoingQueues, LoopsCountADestinationOnceAndItsBoundsTogether) {
  OutgoingConfig config = few_destinations(2);
  config.queue_size = 4;
  config.overflow_size = 0;
  OutgoingDirectory directory(config);
  OutgoingQueues a(directory);
  OutgoingQueues b(directory);
  std::deque<Message> messages(6);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE((i % 2 == 0 ? a : b).put(1, messages[i], kStart).accepted());
  }
  EXPECT_EQ(a.put(1, messages[4], kStart).refusal, OutgoingRefusal::kFull);
  EXPECT_EQ(a.state(1), OutgoingState::kSaturated);
  EXPECT_EQ(OutgoingQueues(directory).state(1), OutgoingState::kSaturated);  // of a third loop
  EXPECT_EQ(directory.destinations(), 1U);
  a.close();
  b.close();
}

TEST(OutgoingQueues, AnUnusedQueueMakesRoomInAFullDirectory) {
  OutgoingDirectory directory(few_destinations(2));
  OutgoingQueues a(directory);
  OutgoingQueues b(directory);
  std::deque<Message> messages(3);
  EXPECT_TRUE(a.put(1, messages[0], kStart).accepted());
  a.withdraw(messages[0]);
  EXPECT_TRUE(b.put(2, messages[1], kStart).accepted());
  EXPECT_TRUE(a.put(3, messages[2], kStart).accepted());
  EXPECT_EQ(a.find(1), nullptr);
  EXPECT_EQ(directory.refused(), 0U);
  a.close();
  b.close();
}

TEST(OutgoingQueues, AnUnusedQueueOfAnotherLoopIsGivenUpAtItsNextTick) {
  OutgoingDirectory directory(few_destinations(1));
  OutgoingQueues a(directory);
  OutgoingQueues b(directory);
  Message first(1);
  Message second(2);
  EXPECT_TRUE(a.put(1, first, kStart).accepted());
  a.withdraw(first);
  EXPECT_EQ(b.put(2, second, kStart).refusal, OutgoingRefusal::kNoDestination);
  a.expire(kStart);
  EXPECT_EQ(a.size(), 0U);
  EXPECT_TRUE(b.put(2, second, kStart).accepted());
  b.close();
}

/// Sends to destinations in virtual time: each takes `rtt` per message.
class Network {
 public:
  explicit Network(Sender& sender) : sender_(sender) {}

  std::map<DestinationKey, Duration> rtt;
  std::map<DestinationKey, std::vector<Duration>> latencies;

  /// One message to each destination every `every`, for `messages` rounds.
  void run(int messages, Duration every) {
    TimePoint now = kStart;
    for (int i = 0; i < messages; ++i) {
      now += every;
      complete_until(now);
      for (const auto& [to, _] : rtt) {
        sender_.messages.emplace_back(static_cast<int>(sender_.messages.size()));
        offered_[&sender_.messages.back()] = now;
        static_cast<void>(sender_.queues.put(to, sender_.messages.back(), now));
      }
      send(now);
    }
    complete_until(TimePoint::max());
  }

 private:
  void send(TimePoint now) {
    while (OutgoingItem* item = sender_.queues.next(now)) {
      const DestinationKey to = OutgoingQueues::destination_of(*item);
      flying_.emplace(now + rtt[to], std::pair(to, item));
    }
  }
  void complete_until(TimePoint now) {
    while (!flying_.empty() && flying_.begin()->first <= now) {
      const auto [at, sent] = *flying_.begin();
      flying_.erase(flying_.begin());
      latencies[sent.first].push_back(at - offered_[sent.second]);
      sender_.queues.finish(*sent.second, OutgoingEnd::kSent);
      send(at);
    }
  }

  Sender& sender_;
  std::map<const OutgoingItem*, TimePoint> offered_;
  std::multimap<TimePoint, std::pair<DestinationKey, OutgoingItem*>> flying_;
};

Duration p99(std::vector<Duration> latencies) {
  std::sort(latencies.begin(), latencies.end());
  return latencies.at(latencies.size() * 99 / 100);
}

TEST(OutgoingQueues, SeedSlowDestinationDoesNotBlockFastDestinations) {
  Duration alone{};
  for (const bool with_slow : {false, true}) {
    Sender sender;
    Network network(sender);
    network.rtt = {{1, milliseconds(50)}, {2, milliseconds(50)}};
    if (with_slow) network.rtt[3] = milliseconds(300'000);  // as good as dead
    network.run(3000, milliseconds(1));
    if (!with_slow) alone = p99(network.latencies[1]);
    EXPECT_EQ(p99(network.latencies[1]), alone);
    EXPECT_EQ(p99(network.latencies[2]), alone);
    EXPECT_EQ(network.latencies[1].size(), 3000U);
  }
  EXPECT_EQ(alone, milliseconds(50));
}

TEST(OutgoingQueues, SeveralInFlightCarryTheRateOverALongDistance) {
  // With one message at a time 300 ms allow 3.3 a second; 100 a second are wanted.
  Sender sender;
  Network network(sender);
  network.rtt = {{1, milliseconds(300)}};
  network.run(1000, milliseconds(10));
  EXPECT_EQ(network.latencies[1].size(), 1000U);
  EXPECT_EQ(p99(network.latencies[1]), milliseconds(300));
}

TEST(OutgoingQueues, SeedMemoryBoundedUnderSustainedTraffic) {
  OutgoingConfig config;
  config.destination_bytes_max = kib(64);
  config.total_bytes_max = mib(2);
  Sender sender(config);
  Rng rng(1);
  std::uint64_t peak = 0;
  std::deque<Message> messages(20'000);
  for (int i = 0; i < 200'000; ++i) {
    Message& message = messages[rng.below(messages.size())];
    if (message.queued()) continue;
    message.priority = kPriorities[1 + rng.below(3)];
    message.bytes = rng.below(8192);
    static_cast<void>(sender.queues.put(rng.below(1500), message, kStart));
    peak = std::max(peak, sender.directory.totals().bytes.held());
    ASSERT_LE(sender.queues.size(), config.max_destinations);
  }
  EXPECT_LE(peak, config.total_bytes_max.bytes());
  EXPECT_GT(peak, config.total_bytes_max.bytes() * 9 / 10);
  EXPECT_EQ(sender.queues.size(), config.max_destinations);
  EXPECT_TRUE(conserved(sender.queues.stats()));
  sender.queues.close();
  EXPECT_EQ(sender.directory.totals().bytes.held(), 0U);
}

TEST(OutgoingQueues, NothingIsAllocatedAfterTheStart) {
  if (!allocations_are_counted()) GTEST_SKIP() << "operator new belongs to the sanitizer";
  OutgoingDirectory directory(few_destinations(50));
  OutgoingQueues queues(directory);
  std::deque<Message> messages(500);
  const std::size_t before = allocations_so_far();
  for (std::size_t i = 0; i < 20'000; ++i) {
    Message& message = messages[i % messages.size()];
    if (!message.queued()) static_cast<void>(queues.put(i % 70, message, kStart));
    if (OutgoingItem* item = i % 3 == 0 ? queues.next(kStart) : nullptr) {
      queues.finish(*item, OutgoingEnd::kSent);
    }
  }
  queues.close();
  EXPECT_EQ(allocations_so_far(), before);
}

TEST(OutgoingQueues, RacingLoopsKeepTheDirectoryExact) {
  constexpr std::size_t kLoops = 4;
  OutgoingDirectory directory(few_destinations(8));
  std::atomic<std::uint64_t> offered{0};
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<int> too_many{0};
  run_together(kLoops, [&](std::size_t loop) {
    Rng rng(loop + 1);
    std::deque<Message> messages(64);
    OutgoingQueues queues(directory);
    for (int i = 0; i < rounds(5'000); ++i) {
      Message& message = messages[rng.below(messages.size())];
      if (!message.queued() && !message.in_flight()) {
        static_cast<void>(queues.put(rng.below(12), message, kStart));
      }
      if (OutgoingItem* item = rng.chance(0.3) ? queues.next(kStart) : nullptr) {
        queues.finish(*item, OutgoingEnd::kSent);
      }
      if (rng.chance(0.05)) queues.expire(kStart);
      too_many.fetch_add(directory.destinations() > 8 ? 1 : 0);
    }
    queues.close();
    const OutgoingStats stats = queues.stats();
    offered.fetch_add(stats.offered);
    refused.fetch_add(stats.refused);
    ended.fetch_add(stats.sent + stats.dropped + stats.refused);
  });
  EXPECT_EQ(offered, ended);
  EXPECT_EQ(too_many, 0);
  EXPECT_EQ(directory.destinations(), 0U);
  EXPECT_GT(refused, 0U);  // the bound was reached
  EXPECT_EQ(directory.totals().bytes.held(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
