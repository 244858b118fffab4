#include "tls/handshake_slots.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline server {
namespace {

using Left = HandshakeSlots::Left;
using std::chrono::milliseconds;

constexpr TimePoint kOpened = TimePoint{} + std::chrono::hours(1);

struct Guest final : HandshakeSlots::Entrant {
  explicit Guest(std::string given, bool critical = false, std::vector<std::string>* into = nullptr,
                 std::uint64_t source = 1)
      : Entrant({.loop = 0, .source = source, .critical = critical}),
        name(std::move(given)),
        log(into) {}
  void on_slot() override {
    told = true;
    if (log != nullptr) log->push_back(name);
  }
  void on_lost() override { lost = true; }
  std::string name;
  std::vector<std::string>* log;
  bool told = false;
  bool lost = false;
};

struct ListenerSink {
  explicit ListenerSink(HandshakeSlots::Shape shape) : slots(shape) {
    slots.attach(0, loop, task);
    task.on_run(io::Callback<>::to<&ListenerSink::tell>(*this));
  }
  void tell() { slots.tell(0); }
  void turn() {
    for (int i = 0; i < 3; ++i) loop.run_once();
  }
  io::Loop loop;
  io::Task task;
  HandshakeSlots slots;
};

TEST(HandshakeSlots, NeverMoreThanThereAre) {
  ListenerSink door({.count = 3, .reserved = 0, .loops = 1});
  std::vector<std::unique_ptr<Guest>> guests;
  int inside = 0;
  for (int i = 0; i < 10; ++i) {
    guests.push_back(std::make_unique<Guest>(std::to_string(i)));
    inside += door.slots.enter(*guests.back(), kOpened) ? 1 : 0;
  }
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(door.slots.waiting(), 7U);
  EXPECT_EQ(door.slots.stats().exhausted, 7U);
  for (auto& guest : guests) door.slots.leave(*guest, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_EQ(door.slots.stats().used, 0U);
  EXPECT_EQ(door.slots.stats().peak, 3U);
  EXPECT_EQ(door.slots.waiting(), 0U);
}

TEST(HandshakeSlots, ThoseWhoWaitGetThemInOrder) {
  std::vector<std::string> order;
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1});
  Guest a("a", false, &order);
  Guest b("b", false, &order);
  Guest c("c", false, &order);
  EXPECT_TRUE(door.slots.enter(a, kOpened));
  EXPECT_FALSE(door.slots.enter(b, kOpened));
  EXPECT_FALSE(door.slots.enter(c, kOpened));
  door.slots.leave(a, Left::kNotDone, kOpened);
  Guest late("late", false, &order);
  EXPECT_FALSE(door.slots.enter(late, kOpened)) << "nobody overtakes";
  door.turn();
  door.slots.leave(b, Left::kNotDone, kOpened);
  door.turn();
  door.slots.leave(c, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_EQ(order, (std::vector<std::string>{"b", "c", "late"}));
  door.slots.leave(late, Left::kNotDone, kOpened);
}

TEST(HandshakeSlots, SomeAreKeptForCriticalPeersWhoAlsoGoFirst) {
  std::vector<std::string> order;
  ListenerSink door({.count = 2, .reserved = 1, .loops = 1});
  Guest a("a");
  Guest b("b", false, &order);
  Guest critical("critical", true);
  Guest waiting("waiting", true, &order);
  EXPECT_TRUE(door.slots.enter(a, kOpened));
  EXPECT_FALSE(door.slots.enter(b, kOpened));
  EXPECT_TRUE(door.slots.enter(critical, kOpened));
  EXPECT_FALSE(door.slots.enter(waiting, kOpened));
  door.slots.leave(a, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_EQ(order, (std::vector<std::string>{"waiting"}));
  door.slots.leave(critical, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_FALSE(b.told) << "one must stay free";
  door.slots.leave(waiting, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_TRUE(b.told);
  door.slots.leave(b, Left::kNotDone, kOpened);
}

TEST(HandshakeSlots, OneWhoLeavesBeforeItIsToldPassesItsSlotOn) {
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1});
  Guest a("a");
  Guest b("b");
  Guest c("c");
  EXPECT_TRUE(door.slots.enter(a, kOpened));
  EXPECT_FALSE(door.slots.enter(b, kOpened));
  EXPECT_FALSE(door.slots.enter(c, kOpened));
  door.slots.leave(a, Left::kNotDone, kOpened);  // b has it now, but on_slot() was not called
  door.slots.leave(b, Left::kNotDone, kOpened);
  door.turn();
  EXPECT_FALSE(b.told);
  EXPECT_TRUE(c.told);
  door.slots.leave(c, Left::kNotDone, kOpened);
  door.slots.leave(c, Left::kNotDone, kOpened);  // a second call has no effect
  EXPECT_EQ(door.slots.stats().used, 0U);
}

/// Sockets that have sent a ClientHello and then nothing.
struct Stalled {
  Stalled(ListenerSink& at, int count, std::uint64_t first_source, std::uint64_t step) : door(at) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t source = first_source + static_cast<std::uint64_t>(i) * step;
      guests.push_back(std::make_unique<Guest>(std::to_string(i), false, nullptr, source));
      if (door.slots.enter(*guests.back(), kOpened))
        door.slots.wait_for_client(*guests.back(), kOpened);
    }
  }
  ~Stalled() {
    for (auto& guest : guests) door.slots.leave(*guest, Left::kNotDone, kOpened);
  }
  /// Those that were told to give up do so, as a TlsEntry whose client has sent nothing.
  int give_up(TimePoint now) {
    door.turn();
    int gone = 0;
    for (auto& guest : guests) {
      if (!guest->lost) continue;
      guest->lost = false;
      ++gone;
      door.slots.leave(*guest, Left::kNotDone, now);
    }
    return gone;
  }
  [[nodiscard]] int told() const {
    int count = 0;
    for (const auto& guest : guests) count += guest->told ? 1 : 0;
    return count;
  }
  ListenerSink& door;
  std::vector<std::unique_ptr<Guest>> guests;
};

TEST(HandshakeSlots, NobodyLosesASlotWhileNobodyWaits) {
  ListenerSink door({.count = 4, .reserved = 0, .loops = 1});
  Stalled stalled(door, 4, 7, 0);
  door.slots.reclaim(kOpened + std::chrono::minutes(1));
  EXPECT_EQ(stalled.give_up(kOpened), 0);
}

TEST(HandshakeSlots, OneThatWaitsForItsClientTooLongLosesItsSlotToAnother) {
  ListenerSink door({.count = 4, .reserved = 0, .loops = 1});
  Stalled stalled(door, 4, 7, 0);
  Guest honest("honest", false, nullptr, 8);
  EXPECT_FALSE(door.slots.enter(honest, kOpened));
  // Two sources: twice its share, so half of the second that holds while nothing is known.
  door.slots.reclaim(kOpened + milliseconds(499));
  EXPECT_EQ(stalled.give_up(kOpened + milliseconds(499)), 0);
  door.slots.reclaim(kOpened + milliseconds(500));
  EXPECT_EQ(stalled.give_up(kOpened + milliseconds(500)), 1) << "one waits, so one loses";
  door.turn();
  EXPECT_TRUE(honest.told);
  door.slots.leave(honest, Left::kDone, kOpened);
}

TEST(HandshakeSlots, TheGraceIsShortWhereClientsAreFast) {
  ListenerSink door({.count = 4, .reserved = 0, .loops = 1});
  for (int i = 0; i < 20; ++i) {
    Guest fast("fast");
    ASSERT_TRUE(door.slots.enter(fast, kOpened));
    door.slots.wait_for_client(fast, kOpened);
    door.slots.leave(fast, Left::kDone, kOpened + milliseconds(2));
  }
  Stalled stalled(door, 4, 7, 0);
  Guest honest("honest", false, nullptr, 8);
  EXPECT_FALSE(door.slots.enter(honest, kOpened));
  door.slots.reclaim(kOpened + milliseconds(50));
  EXPECT_EQ(stalled.give_up(kOpened + milliseconds(50)), 1);
  door.turn();
  EXPECT_TRUE(honest.told);
  door.slots.leave(honest, Left::kDone, kOpened);
}

TEST(HandshakeSlots, TheNextTurnIsOfAnotherSourceHoweverManyOneHasQueued) {
  ListenerSink door({.count = 4, .reserved = 0, .loops = 1});
  Stalled stalled(door, 100, 7, 0);
  Guest honest("honest", false, nullptr, 8);
  EXPECT_FALSE(door.slots.enter(honest, kOpened));
  const TimePoint later = kOpened + std::chrono::seconds(2);
  door.slots.reclaim(later);
  EXPECT_EQ(stalled.give_up(later), 4);
  door.turn();
  EXPECT_TRUE(honest.told);
  EXPECT_EQ(stalled.told(), 3) << "and the others of that source have the rest";
  door.slots.leave(honest, Left::kDone, later);
}

TEST(HandshakeSlots, ANewcomerAmongManySourcesWaitsForOneRoundOfTurnsAtMost) {
  ListenerSink door({.count = 64, .reserved = 0, .loops = 1});
  Stalled stalled(door, 1000, 1000, 0x9E3779B97F4A7C15);
  Guest honest("honest", false, nullptr, 8);
  EXPECT_FALSE(door.slots.enter(honest, kOpened));
  TimePoint now = kOpened;
  int rounds = 0;
  for (; !honest.told && rounds < 10; ++rounds) {
    now += std::chrono::seconds(2);
    for (auto& guest : stalled.guests) {  // on_slot(): the handshake begins, and its client stalls
      if (std::exchange(guest->told, false)) door.slots.wait_for_client(*guest, now);
    }
    now += std::chrono::seconds(2);
    door.slots.reclaim(now);
    static_cast<void>(stalled.give_up(now));
    door.turn();
  }
  EXPECT_LE(rounds, 3) << "128 flows, 64 slots";
  door.slots.leave(honest, Left::kDone, now);
}

TEST(HandshakeSlots, AFullQueueLosesTheOldestOfTheSourceWithMost) {
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1, .waiting_max = 4});
  Stalled stalled(door, 5, 7, 0);  // one inside, four queued
  Guest honest("honest", false, nullptr, 8);
  EXPECT_FALSE(door.slots.enter(honest, kOpened));
  EXPECT_EQ(door.slots.waiting(), 4U);
  door.turn();
  EXPECT_FALSE(honest.lost);
  EXPECT_TRUE(stalled.guests[1]->lost);
  EXPECT_EQ(stalled.give_up(kOpened), 1);
  door.slots.leave(honest, Left::kNotDone, kOpened);
}

TEST(HandshakeSlots, ASourceThatStalledLatelyWaitsBehindOthers) {
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1});
  std::vector<std::string> order;
  TimePoint now = kOpened;
  {
    Stalled bad(door, 2, 7, 0);  // one inside, one queued
    now += std::chrono::seconds(2);
    door.slots.reclaim(now);
    EXPECT_EQ(bad.give_up(now), 1);
  }
  Guest inside("inside", false, nullptr, 9);
  ASSERT_TRUE(door.slots.enter(inside, now));
  Guest again("again", false, &order, 7);
  Guest other("other", false, &order, 8);
  EXPECT_FALSE(door.slots.enter(again, now));
  EXPECT_FALSE(door.slots.enter(other, now));
  door.slots.leave(inside, Left::kNotDone, now);
  door.turn();
  door.slots.leave(other, Left::kNotDone, now);
  door.turn();
  EXPECT_EQ(order, (std::vector<std::string>{"other", "again"}));
  door.slots.leave(again, Left::kNotDone, now);
}

TEST(HandshakeSlots, CriticalOnesNeverLose) {
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1, .waiting_max = 1});
  Guest critical("critical", true);
  ASSERT_TRUE(door.slots.enter(critical, kOpened));
  door.slots.wait_for_client(critical, kOpened);
  Guest queued("queued", true);
  EXPECT_FALSE(door.slots.enter(queued, kOpened));
  Stalled others(door, 3, 7, 0);
  door.slots.reclaim(kOpened + std::chrono::minutes(1));
  door.turn();
  EXPECT_FALSE(critical.lost);
  EXPECT_FALSE(queued.lost);
  door.slots.leave(queued, Left::kNotDone, kOpened);
  door.slots.leave(critical, Left::kNotDone, kOpened);
}

TEST(HandshakeSlots, SlotsAndQueueAreBackAtZeroAfterAnyOrderOfEvents) {
  Rng rng(5);
  ListenerSink door({.count = 8, .reserved = 2, .loops = 1, .waiting_max = 20});
  std::vector<std::unique_ptr<Guest>> guests;
  TimePoint now = kOpened;
  for (int i = 0; i < 20'000; ++i) {
    now += milliseconds(rng.below(40));
    if (guests.size() < 60 && rng.chance(0.5)) {
      guests.push_back(std::make_unique<Guest>("", rng.chance(0.1), nullptr, 1 + rng.below(30)));
      guests.back()->told = door.slots.enter(*guests.back(), now);
    } else if (!guests.empty()) {
      const std::size_t at = rng.below(guests.size());
      Guest& guest = *guests[at];
      if (guest.told && !guest.lost && rng.chance(0.5)) {
        door.slots.wait_for_client(guest, now);
      } else {
        door.slots.leave(guest, rng.chance(0.5) ? Left::kDone : Left::kNotDone, now);
        guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    if (rng.chance(0.1)) door.slots.reclaim(now);
    if (rng.chance(0.3)) door.turn();
    EXPECT_LE(door.slots.stats().used, 8U);
  }
  for (auto& guest : guests) door.slots.leave(*guest, Left::kNotDone, now);
  EXPECT_EQ(door.slots.stats().used, 0U);
  EXPECT_EQ(door.slots.waiting(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
