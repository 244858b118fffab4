#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "upstream/dispatcher_testing.h"

// Outgoing queues over real connections: one endpoint takes no connections, the others go on.

namespace weir::upstream {
namespace {

using policy::OutgoingState;
using std::chrono::milliseconds;

/// A listener whose backlog is full: connects to it neither succeed nor fail.
class SilentOrigin {
 public:
  SilentOrigin() {
    origin_.open_with_backlog(0);
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(std::move(io::connect_to(origin_.name(), {}).value()));
    }
  }
  [[nodiscard]] io::SocketName name() const { return origin_.name(); }

 private:
  FakeOrigin origin_{FakeOrigin::Refusing::kYes};
  std::vector<io::Fd> fillers_;
};

class OutgoingTest : public DispatcherTest {
 protected:
  static UpstreamConfig small() {
    UpstreamConfig config = plain();
    config.outgoing_queue_size = 4;
    config.outgoing_overflow_size = 2;
    config.connect_timeout = std::chrono::seconds(20);
    config.hold_max = Duration(0);
    return config;
  }
  void set_draining(std::size_t index, bool draining) {
    upstream->note_health(
        endpoint(index),
        draining ? policy::HealthEvent::kOperatorDrain : policy::HealthEvent::kOperatorUndrain,
        loop.now());
    loop.run_once();
  }
};

TEST_F(OutgoingTest, AnEndpointThatTakesNoConnectionsDelaysNoOther) {
  SilentOrigin silent;
  FakeOrigin origin;
  make({silent.name(), origin.name()}, small());
  set_draining(1, true);
  std::deque<Asked> stuck(6);
  for (Asked& one : stuck) ASSERT_TRUE(get(one.call));
  EXPECT_EQ(endpoint(0).queue_state(), OutgoingState::kSaturated);
  EXPECT_FALSE(upstream->overloaded());
  set_draining(1, false);
  keep_one_idle(origin);
  for (int i = 0; i < 20; ++i) {
    Asked asked;
    ASSERT_TRUE(get(asked.call));
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write(kNoContent);
    run_until([&] { return asked.seen.complete; });
  }
  EXPECT_EQ(endpoint(0).queue_stats().offered, stuck.size());
  EXPECT_EQ(endpoint(0).queue_stats().dropped, 0U);
  for (Asked& one : stuck) {
    EXPECT_FALSE(one.seen.ended());
    one.call.cancel();
  }
}

TEST_F(OutgoingTest, IfAllQueuesAreFullTheNewestRequestsWait) {
  SilentOrigin silent;
  make({silent.name()}, small());
  std::deque<Asked> asked(8);
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  run_until([&] { return asked[5].seen.ended(); });
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bool dropped = i == 4 || i == 5;  // the oldest of the ring
    EXPECT_EQ(asked[i].seen.failure,
              dropped ? UpstreamFailure::kNoConnection : UpstreamFailure::kNone)
        << i;
  }
  EXPECT_TRUE(endpoint().open()) << "the bound is ours";
  Asked low;
  EXPECT_EQ(get(low.call, {.priority = Priority::kLow}).error(), UpstreamFailure::kNoConnection);
  run_until([&] { return upstream->overloaded(); });
  for (Asked& one : asked) one.call.cancel();
  run_until([&] { return !upstream->overloaded(); });
}

TEST_F(OutgoingTest, ACriticalRequestPassesASaturatedQueue) {
  FakeOrigin origin;
  UpstreamConfig config = small();
  config.max_connections = 4;
  make({origin.name()}, config, 1);
  std::deque<Asked> served(3);
  for (Asked& one : served) ASSERT_TRUE(get(one.call));
  for (int i = 0; i < 3; ++i) origin.accept_another(loop);
  run_until([&] { return upstream->waiting() == 0; });
  std::deque<Asked> waiting(6);
  for (Asked& one : waiting) ASSERT_TRUE(get(one.call));
  EXPECT_EQ(endpoint().queue_state(), OutgoingState::kSaturated);
  Asked critical;
  ASSERT_TRUE(get(critical.call, {}, io::Access::kCritical));
  origin.accept_another(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return critical.seen.complete; });
  EXPECT_EQ(endpoint().queue_stats().critical_refused, 0U);
  for (Asked& one : served) one.call.cancel();
  for (Asked& one : waiting) one.call.cancel();
}

TEST_F(OutgoingTest, RequestsAreServedByClass) {
  FakeOrigin origin;
  UpstreamConfig config = small();
  config.max_connections = 1;
  make({origin.name()}, config);
  Asked busy;
  get_from(origin, busy.call);
  constexpr std::array kClasses = {Priority::kLow, Priority::kNormal, Priority::kHigh,
                                   Priority::kNormal};
  constexpr std::array<std::size_t, 4> kServed = {2, 1, 3, 0};
  std::deque<Asked> asked(kClasses.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ASSERT_TRUE(get(asked[i].call, {.priority = kClasses[i]}));
  }
  origin.write(kNoContent);
  run_until([&] { return busy.seen.complete; });
  for (const std::size_t next : kServed) {
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write(kNoContent);
    run_until([&] { return asked[next].seen.complete; });
  }
}

TEST_F(OutgoingTest, ADeadlineThatPassesInTheQueueIsTheCallersNotTheEndpoints) {
  SilentOrigin silent;
  make({silent.name()}, small());
  Asked asked;
  Asked overall;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(5)}));
  ASSERT_TRUE(get(overall.call, {.overall = milliseconds(5)}));
  run_until_ended(asked.seen);
  run_until_ended(overall.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  EXPECT_EQ(overall.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_TRUE(endpoint().open());
}

TEST_F(OutgoingTest, AnotherEndpointIsBetterThanOneWithAQueueThatFills) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()}, small());
  QueueFiller full;
  full.fill(endpoint(0), 3);
  EXPECT_EQ(endpoint(0).queue_state(), OutgoingState::kThrottled);
  std::deque<Asked> asked(2);
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  Asked critical;
  ASSERT_TRUE(get(critical.call, {}, io::Access::kCritical));
  EXPECT_EQ(endpoint(0).in_flight(), 0U);
  EXPECT_EQ(endpoint(1).in_flight(), 3U);
  full.clear();
  critical.call.cancel();
  for (Asked& one : asked) one.call.cancel();
}

}  // namespace
}  // namespace weir::upstream
