#include "weir/control/outgoing_queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <deque>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "outgoing_testing.h"

namespace weir::inline v0::inline control {
namespace {

using policy::OutgoingState;
using std::chrono::milliseconds;

TEST(OutgoingQueue, AnItemThatIsSentComesBackOnce) {
  SmallQueue small;
  const OutgoingPut put = small.put(1);
  EXPECT_TRUE(put.accepted());
  EXPECT_EQ(put.state, OutgoingState::kHealthy);
  EXPECT_EQ(put.advice, policy::OutgoingAdvice{});
  EXPECT_EQ(small.get(), 1);
  EXPECT_EQ(small.get(), -1);
  EXPECT_FALSE(small.queue.idle());
  small.finish(OutgoingEnd::kSent);
  EXPECT_EQ(small.message(1).end, OutgoingEnd::kSent);
  EXPECT_EQ(small.message(1).ends, 1);
  EXPECT_TRUE(small.queue.idle());
  EXPECT_EQ(small.counts.bytes.held(), 0U);
  EXPECT_EQ(small.totals.bytes.held(), 0U);
}

TEST(OutgoingQueue, ShowsTheItemThatComesNextWithoutTakingIt) {
  SmallQueue small;
  EXPECT_EQ(small.queue.front(), nullptr);
  small.put(1, Priority::kLow);
  small.put(2, Priority::kHigh);
  EXPECT_EQ(id_of(small.queue.front()), 2);
  EXPECT_EQ(small.queue.queued(), 2U);
  for (const int next : {2, 1}) {
    EXPECT_EQ(id_of(small.queue.front()), next);
    EXPECT_EQ(small.get(), next);
  }
  EXPECT_EQ(small.queue.front(), nullptr);
}

TEST(OutgoingQueue, AnItemThatItsOwnerHasNoPlaceForIsCounted) {
  SmallQueue small;
  const Message ordinary;
  const Message critical(2, Priority::kCritical);
  small.queue.refuse(ordinary);
  small.queue.refuse(critical);
  const OutgoingStats stats = small.queue.stats();
  EXPECT_EQ(stats.offered, 2U);
  EXPECT_EQ(stats.refused, 2U);
  EXPECT_EQ(stats.critical_refused, 1U);
  EXPECT_EQ(ordinary.ends, 0);
  EXPECT_TRUE(conserved(stats));
}

TEST(OutgoingQueue, OrderIsClassThenAgeAlsoOverTheRing) {
  SmallQueue small(4, 4);
  for (const int id : {1, 2}) EXPECT_FALSE(small.put(id, Priority::kLow).in_ring);
  for (const int id : {3, 4}) EXPECT_FALSE(small.put(id, Priority::kNormal).in_ring);
  EXPECT_TRUE(small.put(5, Priority::kNormal).in_ring);
  EXPECT_TRUE(small.put(6, Priority::kHigh).in_ring);
  EXPECT_TRUE(small.put(7, Priority::kLow).in_ring);
  EXPECT_TRUE(small.put(8, Priority::kHigh).in_ring);
  for (const int id : {6, 8, 3, 4, 5, 1, 2, 7}) EXPECT_EQ(small.get(), id);
}

TEST(OutgoingQueue, FirstInFirstOutThroughTheRing) {
  // Where the ring was drained first, 3 and 4 came before 0.
  SmallQueue small(3, 2);
  for (int id = 0; id < 5; ++id) EXPECT_TRUE(small.put(id).accepted());
  for (int id = 0; id < 5; ++id) EXPECT_EQ(small.get(), id);
}

TEST(OutgoingQueue, NewItemsGoBehindTheRingWhileItHoldsAnything) {
  SmallQueue small(2, 2);
  for (int id = 0; id < 4; ++id) EXPECT_EQ(small.put(id).in_ring, id >= 2);
  EXPECT_EQ(small.get(), 0);  // 2 moves up; the ring still holds 3
  EXPECT_EQ(small.counts.ring.held(), 1U);
  EXPECT_TRUE(small.put(4).in_ring);
  EXPECT_EQ(small.get(), 1);
  EXPECT_EQ(small.get(), 2);
  EXPECT_EQ(small.counts.ring.held(), 0U);
  EXPECT_EQ(small.get(), 3);
  EXPECT_FALSE(small.put(5).in_ring);  // the ring is empty
  for (const int id : {4, 5}) EXPECT_EQ(small.get(), id);
}

TEST(OutgoingQueue, NewItemsStayBehindTheRingIfAnotherLoopFreesAPlace) {
  SmallQueue small(2, 3);
  OutgoingQueue other(small.config, small.counts, small.totals);
  Message of_other(9);
  EXPECT_TRUE(other.put(of_other, kStart).accepted());
  EXPECT_FALSE(small.put(0).in_ring);
  EXPECT_TRUE(small.put(1).in_ring);
  other.withdraw(of_other);
  EXPECT_TRUE(small.put(2).in_ring);
  for (int id = 0; id < 3; ++id) EXPECT_EQ(small.get(), id);
}

TEST(OutgoingQueue, TheOldestOfTheRingMovesUpWhateverItsClass) {
  SmallQueue small(1, 2);
  small.put(0, Priority::kHigh);
  small.put(1, Priority::kLow);
  small.put(2, Priority::kNormal);
  EXPECT_EQ(small.get(), 0);  // 1 moves up, where nothing can drop it
  small.put(3, Priority::kNormal);
  EXPECT_EQ(small.put(4, Priority::kNormal).dropped, 1U);
  EXPECT_EQ(small.message(2).end, OutgoingEnd::kDropped);
  EXPECT_EQ(small.message(1).ends, 0);
}

TEST(OutgoingQueue, SeedOverflowPreservesNewestMessages) {
  SmallQueue small(4, 3);
  for (int id = 0; id < 20; ++id) EXPECT_TRUE(small.put(id).accepted());
  for (const int id : {0, 1, 2, 3, 17, 18, 19}) EXPECT_EQ(small.get(), id);
  EXPECT_EQ(small.get(), -1);
  for (int id = 4; id < 17; ++id) EXPECT_EQ(small.message(id).end, OutgoingEnd::kDropped) << id;
}

TEST(OutgoingQueue, AFullRingDropsTheOldestOfTheLowestClassAndNoneAbove) {
  SmallQueue small(1, 3);
  EXPECT_TRUE(small.put(0, Priority::kHigh).accepted());
  small.put(1, Priority::kNormal);
  small.put(2, Priority::kLow);
  small.put(3, Priority::kLow);
  EXPECT_EQ(small.put(4, Priority::kNormal).dropped, 1U);
  EXPECT_EQ(small.message(2).end, OutgoingEnd::kDropped);  // not 1, which is older
  EXPECT_TRUE(small.put(5, Priority::kHigh).accepted());   // 3 goes
  EXPECT_TRUE(small.put(6, Priority::kHigh).accepted());   // 1 goes
  EXPECT_EQ(small.message(1).end, OutgoingEnd::kDropped);
  EXPECT_EQ(small.put(7, Priority::kLow).refusal, OutgoingRefusal::kFull);
  EXPECT_EQ(small.queue.state(), OutgoingState::kSaturated);
  EXPECT_TRUE(small.put(8, Priority::kNormal).accepted());  // 4, of its own class
  EXPECT_EQ(small.message(4).end, OutgoingEnd::kDropped);
  EXPECT_EQ(small.message(7).ends, 0);  // a refused one is told by put() alone
}

TEST(OutgoingQueue, CriticalNeverWaitsBehindAnything) {
  SmallQueue small(4, 2);
  small.config.in_flight_max = 1;
  for (int id = 0; id < 6; ++id) small.put(id);
  EXPECT_EQ(small.get(), 0);
  EXPECT_EQ(small.get(), -1);  // in_flight_max
  EXPECT_TRUE(small.put(100, Priority::kCritical).accepted());
  EXPECT_TRUE(small.put(101, Priority::kCritical).accepted());
  EXPECT_EQ(small.get(), 100);
  EXPECT_EQ(small.get(), 101);
  EXPECT_EQ(small.get(), -1);
  small.finish(OutgoingEnd::kSent);
  EXPECT_EQ(small.get(), 1);  // critical ones in flight do not count
}

TEST(OutgoingQueue, CriticalHasPlacesAndBytesOfItsOwn) {
  SmallQueue small(1, 0);
  small.put(0, Priority::kHigh, 1000);  // all bytes of the destination
  EXPECT_EQ(small.put(1, Priority::kHigh).refusal, OutgoingRefusal::kFull);
  EXPECT_TRUE(small.put(2, Priority::kCritical, 900).accepted());
  EXPECT_EQ(small.put(3, Priority::kCritical, 200).refusal, OutgoingRefusal::kBytes);
  EXPECT_TRUE(small.put(4, Priority::kCritical, 100).accepted());
  EXPECT_EQ(small.put(5, Priority::kCritical, 0).refusal, OutgoingRefusal::kFull);
  EXPECT_EQ(small.queue.stats().critical_refused, 2U);
  EXPECT_EQ(small.queue.fill().ring, 0U);
}

TEST(OutgoingQueue, SeveralItemsAreInFlight) {
  SmallQueue small;
  small.config.in_flight_max = 3;
  for (int id = 0; id < 4; ++id) small.put(id);
  for (int id = 0; id < 3; ++id) EXPECT_EQ(small.get(), id);
  EXPECT_EQ(small.get(), -1);
  EXPECT_FALSE(small.queue.ready());
  small.finish(OutgoingEnd::kFailed);
  EXPECT_EQ(small.message(0).end, OutgoingEnd::kFailed);
  EXPECT_EQ(small.get(), 3);
}

TEST(OutgoingQueue, BytesAreBoundedPerDestinationAndInTotal) {
  SmallQueue small(10, 2);
  EXPECT_EQ(small.put(0, Priority::kHigh, 1001).refusal, OutgoingRefusal::kTooLarge);
  EXPECT_TRUE(small.put(1, Priority::kNormal, 600).accepted());
  EXPECT_EQ(small.put(2, Priority::kHigh, 401).refusal, OutgoingRefusal::kBytes);
  EXPECT_TRUE(small.put(3, Priority::kNormal, 400).accepted());
  EXPECT_EQ(small.queue.state(), OutgoingState::kOverflow);  // bytes are full
  OutgoingCounts other_counts;
  OutgoingQueue other(small.config, other_counts, small.totals);
  Message message(4, Priority::kNormal, 501);
  EXPECT_EQ(other.put(message, kStart).refusal, OutgoingRefusal::kTotalBytes);
  EXPECT_EQ(other_counts.bytes.held(), 0U);
  EXPECT_EQ(other_counts.primary.held(), 0U);
  EXPECT_EQ(small.get(), 1);
  EXPECT_EQ(other.put(message, kStart).refusal, OutgoingRefusal::kTotalBytes);  // still in flight
  small.finish(OutgoingEnd::kSent);
  EXPECT_TRUE(other.put(message, kStart).accepted());
  other.close();
}

TEST(OutgoingQueue, ANewcomerDropsAsManyBytesAsItNeedsOrNone) {
  SmallQueue small(1, 5);
  small.put(0, Priority::kNormal, 100);
  for (int id = 1; id <= 5; ++id) small.put(id, Priority::kLow, 180);  // 1000 in all
  const OutgoingPut large = small.put(6, Priority::kNormal, 500);
  EXPECT_TRUE(large.accepted());
  EXPECT_EQ(large.dropped, 3U);
  EXPECT_EQ(small.counts.bytes.held(), 100U + 2 * 180U + 500U);
  EXPECT_EQ(small.counts.ring.held(), 3U);
  EXPECT_EQ(small.put(7, Priority::kLow, 500).refusal, OutgoingRefusal::kBytes);
  EXPECT_EQ(small.message(4).ends, 0);  // dropping 4 and 5 would not have been enough
  EXPECT_EQ(small.message(5).ends, 0);
  EXPECT_EQ(small.totals.bytes.held(), small.counts.bytes.held());
}

TEST(OutgoingQueue, SeedBackpressureSignalsPropagate) {
  SmallQueue small(20, 2);
  std::vector<Duration> delays;
  for (int id = 0; id < 23; ++id) {
    const OutgoingPut put = small.put(id);
    if (delays.empty() || delays.back() != put.advice.delay) delays.push_back(put.advice.delay);
    EXPECT_EQ(put.advice.batch_only, put.state >= OutgoingState::kBatching);
  }
  EXPECT_EQ(delays, (std::vector<Duration>{milliseconds(0), milliseconds(50), milliseconds(200),
                                           milliseconds(500)}));
  EXPECT_EQ(small.queue.state(), OutgoingState::kSaturated);
  std::vector<OutgoingState> states;  // judged after each get too, with hysteresis
  while (small.get() != -1) {
    if (states.empty() || states.back() != small.queue.state()) {
      states.push_back(small.queue.state());
    }
  }
  EXPECT_EQ(states,
            (std::vector<OutgoingState>{OutgoingState::kOverflow, OutgoingState::kBatching,
                                        OutgoingState::kThrottled, OutgoingState::kHealthy}));
}

TEST(OutgoingQueue, AnItemWhoseDeadlineHasPassedIsNotSent) {
  SmallQueue small;
  for (int id = 0; id < 3; ++id) {
    small.messages.emplace_back(id);
    if (id < 2) small.messages.back().deadline = after_ms(10 + id);
    EXPECT_TRUE(small.queue.put(small.messages.back(), kStart).accepted());
  }
  EXPECT_EQ(small.queue.next_expiry(), after_ms(10));
  small.queue.expire(after_ms(10));
  EXPECT_EQ(small.message(0).end, OutgoingEnd::kExpired);
  EXPECT_EQ(small.queue.next_expiry(), after_ms(11));
  EXPECT_EQ(small.get(after_ms(11)), 2);  // at the latest when its turn comes
  EXPECT_EQ(small.message(1).end, OutgoingEnd::kExpired);
  small.messages.emplace_back(3);
  small.messages.back().deadline = after_ms(11);
  EXPECT_EQ(small.queue.put(small.messages.back(), after_ms(11)).refusal,
            OutgoingRefusal::kDeadline);
  EXPECT_TRUE(conserved(small.queue.stats()));
}

TEST(OutgoingQueue, AWithdrawnItemIsGoneAndMakesRoom) {
  SmallQueue small(2, 2);
  for (int id = 0; id < 4; ++id) small.put(id);
  small.queue.withdraw(small.messages[0]);
  EXPECT_EQ(small.messages[0].ends, 0);
  EXPECT_EQ(small.counts.ring.held(), 1U);  // 2 moved up
  for (const int id : {1, 2, 3}) EXPECT_EQ(small.get(), id);
  EXPECT_EQ(small.queue.stats().withdrawn, 1U);
  EXPECT_EQ(small.queue.stats().failed, 1U);
  EXPECT_TRUE(conserved(small.queue.stats()));
}

TEST(OutgoingQueue, ClosingDropsWhatIsQueuedAndTellsEveryOwner) {
  SmallQueue small(2, 2);
  for (int id = 0; id < 4; ++id) small.put(id);
  small.put(9, Priority::kCritical);
  EXPECT_EQ(small.get(), 9);
  small.queue.close();
  for (int id = 0; id < 4; ++id) EXPECT_EQ(small.message(id).end, OutgoingEnd::kDropped);
  EXPECT_EQ(small.message(9).ends, 0);
  EXPECT_EQ(small.queue.stats().queued, 0U);
}

/// An owner that offers its item again as soon as it was dropped.
struct Stubborn : OutgoingItem {
  explicit Stubborn(OutgoingQueue& its_queue) : OutgoingItem(&Stubborn::again), queue(its_queue) {}
  OutgoingQueue& queue;
  int offers = 0;

 private:
  static void again(OutgoingItem& item, OutgoingEnd how) noexcept {
    auto& self = static_cast<Stubborn&>(item);
    if (how == OutgoingEnd::kDropped && ++self.offers < 5) self.queue.put(self, kStart);
  }
};

TEST(OutgoingQueue, ACallbackMayOfferTheItemAgain) {
  SmallQueue small(1, 1);
  small.put(0);
  Stubborn first(small.queue);
  Stubborn second(small.queue);
  EXPECT_TRUE(small.queue.put(first, kStart).accepted());
  EXPECT_TRUE(small.queue.put(second, kStart).accepted());  // they drop each other in turn
  EXPECT_EQ(first.offers + second.offers, 9);
  EXPECT_EQ(small.queue.stats().queued, 2U);
  EXPECT_TRUE(conserved(small.queue.stats()));
  small.queue.close();
}

TEST(OutgoingQueue, EveryItemEndsOnceAndNothingIsLostUnderRandomSchedules) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    SmallQueue small(static_cast<std::uint32_t>(1 + rng.below(8)),
                     static_cast<std::uint32_t>(rng.below(5)));
    small.config.in_flight_max = static_cast<std::uint32_t>(1 + rng.below(6));
    TimePoint now = kStart;
    std::uint64_t refused = 0;
    for (int i = 0; i < 2000; ++i) {
      now += milliseconds(rng.below(3));
      const std::uint64_t what = rng.below(10);
      if (what < 5) {
        small.messages.emplace_back(i, kPriorities[rng.below(4)], rng.below(300));
        if (rng.chance(0.4)) small.messages.back().deadline = now + milliseconds(rng.below(40));
        refused += small.queue.put(small.messages.back(), now).accepted() ? 0U : 1U;
      } else if (what < 8) {
        static_cast<void>(small.get(now));
      } else if (!small.flying.empty()) {
        small.finish(rng.chance(0.5) ? OutgoingEnd::kSent : OutgoingEnd::kFailed);
      } else if (rng.chance(0.3)) {
        small.queue.expire(now);
      }
      const OutgoingStats stats = small.queue.stats();
      ASSERT_TRUE(conserved(stats)) << "seed " << seed << " step " << i;
      ASSERT_LE(small.counts.primary.held(), small.config.queue_size);
      ASSERT_LE(small.counts.ring.held(), small.config.overflow_size);
      ASSERT_LE(small.counts.bytes.held(), 1000U);
      ASSERT_EQ(stats.refused, refused);
      const policy::OutgoingState state = small.queue.state();
      ASSERT_EQ(policy::outgoing_state(state, small.queue.fill()), state);
    }
    small.queue.close();
    while (!small.flying.empty()) small.finish(OutgoingEnd::kSent);
    std::uint64_t told = 0;
    for (const Message& message : small.messages) {
      ASSERT_LE(message.ends, 1);
      told += static_cast<std::uint64_t>(message.ends);
    }
    ASSERT_EQ(told + refused, small.messages.size());
    ASSERT_EQ(small.counts.bytes.held() + small.counts.critical_bytes.held(), 0U);
    ASSERT_EQ(small.totals.bytes.held() + small.totals.critical_bytes.held(), 0U);
    ASSERT_EQ(small.counts.primary.held() + small.counts.ring.held(), 0U);
    ASSERT_EQ(small.counts.critical.held(), 0U);
  }
}

TEST(OutgoingQueue, LoopsThatShareCountsNeverExceedABoundAndLoseNothing) {
  constexpr std::size_t kLoops = 4;
  OutgoingConfig config;
  config.queue_size = 20;
  config.overflow_size = 8;
  config.critical_size = 3;
  config.in_flight_max = 4;
  config.destination_bytes_max = ByteSize(2000);
  config.total_bytes_max = ByteSize(3000);
  OutgoingCounts counts;
  OutgoingTotals totals;
  std::array<OutgoingStats, kLoops> stats;
  std::atomic<int> exceeded{0};
  std::atomic<std::uint64_t> told{0};
  run_together(kLoops, [&](std::size_t loop) {
    Rng rng(loop + 1);
    std::deque<Message> messages(200);
    OutgoingQueue queue(config, counts, totals);
    std::vector<OutgoingItem*> flying;
    std::uint64_t mine = 0;
    for (int i = 0; i < rounds(20'000); ++i) {
      Message& message = messages[rng.below(messages.size())];
      if (!message.queued() && !message.in_flight()) {
        message.priority = kPriorities[rng.below(4)];
        message.bytes = rng.below(200);
        mine += queue.put(message, kStart).accepted() ? 0U : 1U;
      }
      if (OutgoingItem* item = rng.chance(0.4) ? queue.get(kStart) : nullptr) {
        flying.push_back(item);
      }
      if (!flying.empty() && rng.chance(0.5)) {
        queue.finish(*flying.back(), OutgoingEnd::kSent);
        flying.pop_back();
      }
      const policy::OutgoingFill fill = queue.fill();
      const bool over = fill.primary > 20 || fill.ring > 8 || fill.bytes > 2000 ||
                        totals.bytes.held() > 3000 || counts.critical.held() > 3;
      exceeded.fetch_add(over ? 1 : 0);
    }
    for (OutgoingItem* item : flying) queue.finish(*item, OutgoingEnd::kFailed);
    queue.close();
    stats[loop] = queue.stats();
    for (const Message& message : messages) mine += static_cast<std::uint64_t>(message.ends);
    told.fetch_add(mine);
  });
  EXPECT_EQ(exceeded, 0);
  std::uint64_t offered = 0;
  std::uint64_t dropped = 0;
  for (const OutgoingStats& of_loop : stats) {
    EXPECT_TRUE(conserved(of_loop));
    offered += of_loop.offered;
    dropped += of_loop.dropped;
  }
  EXPECT_EQ(told, offered);
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(counts.primary.held() + counts.ring.held() + counts.critical.held(), 0U);
  EXPECT_EQ(counts.bytes.held() + totals.bytes.held(), 0U);
  EXPECT_EQ(counts.state, OutgoingState::kHealthy);
}

TEST(OutgoingQueue, TheStateNeverStaysBehindTheCounts) {
  // A state that stays "overflow" over an empty queue would keep every sender away for ever.
  OutgoingConfig config;
  config.queue_size = config.overflow_size = 1;
  OutgoingCounts counts;
  OutgoingTotals totals;
  std::atomic<int> together{0};
  int stale = 0;
  std::barrier round(2,
                     [&]() noexcept { stale += counts.state == OutgoingState::kHealthy ? 0 : 1; });
  run_together(2, [&](std::size_t) {
    OutgoingQueue queue(config, counts, totals);
    Message message;
    for (int i = 0; i < rounds(50'000); ++i) {
      static_cast<void>(queue.put(message, kStart));
      together.fetch_add(1);  // both withdraw at the same moment
      for (int spins = 0; together < 2 * (i + 1); ++spins) {
        if (spins > 10'000) std::this_thread::yield();
      }
      queue.withdraw(message);
      round.arrive_and_wait();
    }
  });
  EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace weir::inline v0::inline control
