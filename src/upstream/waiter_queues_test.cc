#include "waiter_queues.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "upstream/dispatcher_testing.h"
#include "upstream/upstream.h"

// The queues of those who wait for a connection, without connections.

namespace weir::upstream {
namespace {

using control::OutgoingEnd;
using policy::OutgoingState;
using std::chrono::milliseconds;

/// A waiter that remembers what it was told.
struct Waiter final : ConnectionWaiter {
  explicit Waiter(std::string its_name = {}) : name(std::move(its_name)) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (queues != nullptr) queues->leave(*this);
  }
  void on_connection(ClientStream&) override {}
  void on_no_connection(UpstreamFailure failure) override {
    told = failure;
    ++times;
    if (then) then();
  }
  std::string name;
  UpstreamFailure told = UpstreamFailure::kNone;
  int times = 0;
  std::function<void()> then;
};

struct WaiterQueuesTest : ::testing::Test {
  WaiterQueuesTest() {
    config.name = "u";
    config.outgoing_queue_size = 4;
    config.outgoing_overflow_size = 2;
    config.connection_queue_max = 100;
  }
  void make() {
    std::vector<DiscoveredEndpoint> found(2);
    found[0].address = *io::parse_socket_name("127.0.0.1:1");
    found[1].address = *io::parse_socket_name("127.0.0.1:2");
    upstream = std::make_unique<Upstream>(
        Upstream::Setup{.config = config, .loops = 2, .rng = Rng(1)}, found, loop.now());
    set = upstream->endpoints();
    first = at(0, 0);
    second = at(1, 0);
    queues = std::make_unique<WaiterQueues>(loop, *upstream);
  }
  [[nodiscard]] std::unique_ptr<PoolEndpoint> at(std::size_t endpoint, std::uint32_t loop_index) {
    return std::make_unique<PoolEndpoint>(set->members[endpoint].endpoint, loop_index);
  }
  bool enter(Waiter& waiter, const WaiterQueues::Entry& entry = {}) {
    return queues->enter(*first, waiter, entry);
  }
  void run_until_told(const Waiter& waiter) {
    for (int i = 0; i < 5000 && waiter.times == 0; ++i) {
      loop.run_once();
      ::poll(nullptr, 0, 1);
    }
    ASSERT_EQ(waiter.times, 1);
  }
  void TearDown() override {
    queues->close();
    loop.run_once();
    EXPECT_EQ(upstream->waiting(), 0U);
  }

  io::Loop loop;
  UpstreamConfig config;
  std::unique_ptr<Upstream> upstream;
  std::shared_ptr<const EndpointSet> set;
  std::unique_ptr<PoolEndpoint> first;
  std::unique_ptr<PoolEndpoint> second;
  std::unique_ptr<WaiterQueues> queues;
};

TEST_F(WaiterQueuesTest, CriticalOnesComeFirstThenByClassThenByAge) {
  config.outgoing_queue_size = 2;  // the others are in the ring: the order is the same
  config.outgoing_overflow_size = 10;
  make();
  struct Case {
    const char* name;
    WaiterQueues::Entry entry;
  };
  const auto of = [](Priority priority) { return WaiterQueues::Entry{.priority = priority}; };
  const std::array cases = {
      Case{"low 1", of(Priority::kLow)},
      Case{"normal 1", of(Priority::kNormal)},
      Case{"high 1", of(Priority::kHigh)},
      Case{"low 2", of(Priority::kLow)},
      Case{"critical 1", {.access = io::Access::kCritical, .priority = Priority::kLow}},
      Case{"critical without the right to it", of(Priority::kCritical)},
      Case{"critical 2", {.access = io::Access::kCritical}},
      Case{"normal 2", of(Priority::kNormal)}};
  std::deque<Waiter> waiters;
  for (const Case& one : cases) ASSERT_TRUE(enter(waiters.emplace_back(one.name), one.entry));
  std::vector<std::string> served;
  while (ConnectionWaiter* next = WaiterQueues::first(*first)) {
    EXPECT_EQ(&queues->take_first(*first, OutgoingEnd::kSent), next);
    served.push_back(static_cast<Waiter*>(next)->name);
  }
  EXPECT_EQ(served, (std::vector<std::string>{"critical 1", "critical 2", "high 1",
                                              "critical without the right to it", "normal 1",
                                              "normal 2", "low 1", "low 2"}));
  EXPECT_EQ(first->shared->queue_stats().sent, cases.size());
}

TEST_F(WaiterQueuesTest, TheNewestAreKeptAndTheOthersAreToldLater) {
  make();
  std::deque<Waiter> waiters(7);
  for (std::size_t i = 0; i < 6; ++i) ASSERT_TRUE(enter(waiters[i]));
  EXPECT_EQ(first->shared->queue_state(), OutgoingState::kSaturated);
  ASSERT_TRUE(enter(waiters[6]));
  EXPECT_EQ(waiters[4].times, 0) << "not while another one enters";
  EXPECT_EQ(upstream->waiting(), 6U);
  loop.run_once();
  EXPECT_EQ(waiters[4].times, 1) << "the oldest of the ring";
  EXPECT_EQ(waiters[4].told, UpstreamFailure::kNoConnection);
  EXPECT_EQ(first->shared->queue_stats().dropped, 1U);
}

TEST_F(WaiterQueuesTest, OneThatLeavesBeforeItIsToldIsNotTold) {
  make();
  std::deque<Waiter> waiters(8);
  for (Waiter& waiter : waiters) ASSERT_TRUE(enter(waiter));
  queues->leave(waiters[4]);
  waiters[5].then = [&] { queues->leave(waiters[6]); };
  loop.run_once();
  EXPECT_EQ(waiters[4].times, 0);
  EXPECT_EQ(waiters[5].times, 1);
  EXPECT_EQ(upstream->waiting(), 5U);
  EXPECT_TRUE(queues->all_told());
}

TEST_F(WaiterQueuesTest, LessImportantOnesFindNoPlaceAndDropNobody) {
  make();
  std::deque<Waiter> waiters(6);
  for (Waiter& waiter : waiters) ASSERT_TRUE(enter(waiter));
  Waiter low;
  EXPECT_FALSE(enter(low, {.priority = Priority::kLow}));
  Waiter critical;
  EXPECT_TRUE(enter(critical, {.access = io::Access::kCritical}));
  loop.run_once();
  for (const Waiter& waiter : waiters) EXPECT_EQ(waiter.times, 0);
  EXPECT_EQ(low.times, 0) << "the caller knows";
  EXPECT_EQ(first->shared->queue_stats().refused, 1U);
  queues->leave(low);  // does nothing
}

TEST_F(WaiterQueuesTest, ALoopHasABoundForAllItsEndpointsThatCriticalOnesDoNotHave) {
  config.connection_queue_max = 2;
  make();
  std::deque<Waiter> waiters(5);
  ASSERT_TRUE(enter(waiters[0]));
  ASSERT_TRUE(queues->enter(*second, waiters[1], {}));
  EXPECT_FALSE(queues->enter(*second, waiters[2], {}));
  EXPECT_EQ(second->shared->queue_stats().refused, 1U);
  EXPECT_TRUE(queues->enter(*second, waiters[3], {.access = io::Access::kCritical}));
  queues->leave(waiters[0]);
  EXPECT_TRUE(queues->enter(*second, waiters[4], {}));
}

TEST_F(WaiterQueuesTest, BytesAreBoundedAndNoRequestIsTooLargeToWait) {
  config.outgoing_bytes_max = 100'000;
  make();
  Waiter large;
  Waiter next;
  Waiter critical;
  ASSERT_TRUE(enter(large, {.bytes = 1'000'000}));
  EXPECT_FALSE(enter(next, {.bytes = 1}));
  EXPECT_TRUE(queues->enter(*second, next, {.bytes = 1}));
  EXPECT_TRUE(enter(critical, {.access = io::Access::kCritical, .bytes = 50'000}));
}

TEST_F(WaiterQueuesTest, WhoWaitsTooLongIsToldWhy) {
  config.connect_timeout = milliseconds(5);
  make();
  Waiter connecting;
  Waiter unlucky;
  Waiter impatient;
  Waiter late;
  ASSERT_TRUE(queues->enter(*second, impatient, {.until = loop.now() + milliseconds(1)}));
  ASSERT_TRUE(queues->enter(*second, late, {.until = loop.now() - milliseconds(1)}));
  ASSERT_TRUE(queues->enter(*second, connecting, {.until = loop.now() + std::chrono::hours(1)}));
  ASSERT_TRUE(enter(unlucky));
  second->connecting = 1;
  EXPECT_EQ(late.times, 0);
  for (const Waiter* waiter : {&connecting, &unlucky, &impatient, &late}) run_until_told(*waiter);
  EXPECT_EQ(connecting.told, UpstreamFailure::kConnectTimeout);
  EXPECT_EQ(unlucky.told, UpstreamFailure::kNoConnection) << "the bound is ours";
  EXPECT_EQ(impatient.told, UpstreamFailure::kDeadline);
  EXPECT_EQ(late.told, UpstreamFailure::kDeadline);
  EXPECT_EQ(second->shared->queue_stats().expired, 3U);
}

TEST_F(WaiterQueuesTest, AStreamIsGivenThoughTheTimeIsOver) {
  config.connect_timeout = milliseconds(1);
  make();
  Waiter waiter;
  ASSERT_TRUE(enter(waiter));
  ::poll(nullptr, 0, 5);
  loop.refresh_now();
  EXPECT_EQ(&queues->take_first(*first, OutgoingEnd::kSent), &waiter);
  loop.run_once();
  EXPECT_EQ(waiter.times, 0);
}

TEST_F(WaiterQueuesTest, EndpointsHaveTheirTurns) {
  make();
  Waiter waiters[3];
  EXPECT_EQ(queues->next_wanted(), nullptr);
  ASSERT_TRUE(enter(waiters[0]));
  ASSERT_TRUE(queues->enter(*second, waiters[1], {}));
  ASSERT_TRUE(enter(waiters[2]));
  EXPECT_EQ(queues->wanted(), 2U);
  EXPECT_EQ(queues->next_wanted(), first.get());
  EXPECT_EQ(queues->next_wanted(), second.get());
  EXPECT_EQ(queues->next_wanted(), first.get());
  queues->leave(waiters[1]);
  EXPECT_EQ(queues->wanted(), 1U);
}

TEST_F(WaiterQueuesTest, OneEventMayEndOthersWhenAllEnd) {
  make();
  std::deque<Waiter> waiters(4);
  for (Waiter& waiter : waiters) ASSERT_TRUE(enter(waiter));
  waiters[0].then = [&] { queues->leave(waiters[2]); };
  queues->close();
  EXPECT_EQ(waiters[0].times, 1);
  EXPECT_EQ(waiters[1].times, 1);
  EXPECT_EQ(waiters[2].times, 0);
  EXPECT_EQ(waiters[3].times, 1);
}

/// Random waiters on two loops: every one of them ends once, and nothing is lost.
class WaiterSchedule {
 public:
  WaiterSchedule(WaiterQueues& queues, std::vector<PoolEndpoint*> endpoints, std::uint64_t seed)
      : queues_(queues), endpoints_(std::move(endpoints)), rng_(seed), waiters_(40) {}

  void step() {
    Waiter& waiter = waiters_[rng_.below(waiters_.size())];
    PoolEndpoint& endpoint = *endpoints_[rng_.below(endpoints_.size())];
    switch (rng_.below(4)) {
      case 0:
      case 1:
        if (!free(waiter)) return;
        waiter.times = 0;
        static_cast<void>(queues_.enter(
            endpoint, waiter,
            {.access = rng_.chance(0.1) ? io::Access::kCritical : io::Access::kOrdinary,
             .priority = static_cast<Priority>(rng_.below(kPriorityCount)),
             .bytes = rng_.below(30'000)}));
        break;
      case 2:
        queues_.leave(waiter);
        break;
      default:
        if (WaiterQueues::first(endpoint) == nullptr) return;
        static_cast<void>(queues_.take_first(
            endpoint, rng_.chance(0.5) ? OutgoingEnd::kSent : OutgoingEnd::kFailed));
    }
    for (const Waiter& one : waiters_) ASSERT_LE(one.times, 1);
  }
  [[nodiscard]] std::uint64_t waiting() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(waiters_, [](const Waiter& w) { return w.item.queued(); }));
  }

 private:
  static bool free(const Waiter& w) { return !w.item.queued() && !w.over_hook.linked(); }

  WaiterQueues& queues_;
  std::vector<PoolEndpoint*> endpoints_;
  Rng rng_;
  std::deque<Waiter> waiters_;
};

[[nodiscard]] std::uint64_t ends(const control::OutgoingStats& s) {
  return s.sent + s.failed + s.dropped + s.refused + s.expired;
}

TEST_F(WaiterQueuesTest, NothingIsLostUnderAnySchedule) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    config.outgoing_bytes_max = 100'000;
    config.connection_queue_max = 12;
    make();
    io::Loop other_loop;
    WaiterQueues other(other_loop, *upstream);
    const auto first_of_other = at(0, 1);
    const auto second_of_other = at(1, 1);
    WaiterSchedule one(*queues, {first.get(), second.get()}, seed);
    WaiterSchedule two(other, {first_of_other.get(), second_of_other.get()}, seed + 1000);
    for (int i = 0; i < 2000; ++i) {
      one.step();
      two.step();
      if (i % 7 == 0) loop.run_once();
      if (i % 5 == 0) other_loop.run_once();
      ASSERT_EQ(upstream->waiting(), one.waiting() + two.waiting());
      std::uint64_t queued = 0;
      for (const EndpointSet::Member& member : set->members) {
        const control::OutgoingStats stats = member.endpoint->queue_stats();
        ASSERT_EQ(stats.offered, ends(stats) + stats.queued);
        ASSERT_EQ(stats.in_flight, 0U);
        const control::OutgoingCounts& counts = member.endpoint->queued();
        ASSERT_LE(counts.primary.held(), 4U);
        ASSERT_LE(counts.ring.held(), 2U);
        queued += stats.queued;
      }
      ASSERT_EQ(queued, upstream->waiting());
    }
    const control::OutgoingStats all = upstream->totals().queues;
    EXPECT_GT(std::min({all.sent, all.dropped, all.refused, all.withdrawn}), 0U);
    other.close();
    queues->close();
    other_loop.run_once();
    loop.run_once();
  }
}

TEST_F(WaiterQueuesTest, ThreadsShareTheCountsAndLoseNothing) {
  make();
  std::atomic<int> ready{0};
  const auto run = [&](std::uint32_t index) {
    io::Loop own;
    WaiterQueues at_own(own, *upstream);
    const auto a = at(0, index);
    const auto b = at(1, index);
    WaiterSchedule schedule(at_own, {a.get(), b.get()}, index + 1);
    ready.fetch_add(1);
    while (ready.load() < 2) std::this_thread::yield();
    for (int i = 0; i < 20'000; ++i) {
      schedule.step();
      if (i % 16 == 0) own.run_once();
    }
    at_own.close();
    own.run_once();
  };
  std::thread one(run, 0);
  std::thread two(run, 1);
  one.join();
  two.join();
  for (const EndpointSet::Member& member : set->members) {
    const control::OutgoingStats stats = member.endpoint->queue_stats();
    EXPECT_EQ(stats.offered, ends(stats));
    EXPECT_EQ(stats.queued, 0U);
    const control::OutgoingCounts& counts = member.endpoint->queued();
    EXPECT_EQ(counts.primary.held() + counts.ring.held() + counts.critical.held(), 0U);
    EXPECT_EQ(counts.bytes.held() + counts.critical_bytes.held(), 0U);
    EXPECT_EQ(member.endpoint->queue_state(), OutgoingState::kHealthy);
  }
}

}  // namespace
}  // namespace weir::upstream
