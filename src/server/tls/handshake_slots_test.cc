#include "tls/handshake_slots.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

struct Guest final : HandshakeSlots::Entrant {
  explicit Guest(std::string given, bool critical = false, std::vector<std::string>* into = nullptr)
      : Entrant(0, critical), name(std::move(given)), log(into) {}
  void on_slot() override {
    told = true;
    if (log != nullptr) log->push_back(name);
  }
  std::string name;
  std::vector<std::string>* log;
  bool told = false;
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
    inside += door.slots.enter(*guests.back()) ? 1 : 0;
  }
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(door.slots.waiting(), 7U);
  EXPECT_EQ(door.slots.stats().exhausted, 7U);
  for (auto& guest : guests) door.slots.leave(*guest);
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
  EXPECT_TRUE(door.slots.enter(a));
  EXPECT_FALSE(door.slots.enter(b));
  EXPECT_FALSE(door.slots.enter(c));
  door.slots.leave(a);
  Guest late("late", false, &order);
  EXPECT_FALSE(door.slots.enter(late)) << "nobody overtakes";
  door.turn();
  door.slots.leave(b);
  door.turn();
  door.slots.leave(c);
  door.turn();
  EXPECT_EQ(order, (std::vector<std::string>{"b", "c", "late"}));
  door.slots.leave(late);
}

TEST(HandshakeSlots, SomeAreKeptForCriticalPeersWhoAlsoGoFirst) {
  std::vector<std::string> order;
  ListenerSink door({.count = 2, .reserved = 1, .loops = 1});
  Guest a("a");
  Guest b("b", false, &order);
  Guest critical("critical", true);
  Guest waiting("waiting", true, &order);
  EXPECT_TRUE(door.slots.enter(a));
  EXPECT_FALSE(door.slots.enter(b));
  EXPECT_TRUE(door.slots.enter(critical));
  EXPECT_FALSE(door.slots.enter(waiting));
  door.slots.leave(a);
  door.turn();
  EXPECT_EQ(order, (std::vector<std::string>{"waiting"}));
  door.slots.leave(critical);
  door.turn();
  EXPECT_FALSE(b.told) << "one must stay free";
  door.slots.leave(waiting);
  door.turn();
  EXPECT_TRUE(b.told);
  door.slots.leave(b);
}

TEST(HandshakeSlots, OneWhoLeavesBeforeItIsToldPassesItsSlotOn) {
  ListenerSink door({.count = 1, .reserved = 0, .loops = 1});
  Guest a("a");
  Guest b("b");
  Guest c("c");
  EXPECT_TRUE(door.slots.enter(a));
  EXPECT_FALSE(door.slots.enter(b));
  EXPECT_FALSE(door.slots.enter(c));
  door.slots.leave(a);  // b has it now, but on_slot() was not called
  door.slots.leave(b);
  door.turn();
  EXPECT_FALSE(b.told);
  EXPECT_TRUE(c.told);
  door.slots.leave(c);
  door.slots.leave(c);  // a second call has no effect
  EXPECT_EQ(door.slots.stats().used, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
