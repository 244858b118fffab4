#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

// Calls that wait because no endpoint can be used.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

class HoldTest : public DispatcherTest {
 protected:
  static UpstreamConfig held_for(Duration hold_max) {
    UpstreamConfig config = plain();
    config.hold_max = hold_max;
    return config;
  }
  void until_held(std::uint32_t calls = 1) {
    run_until([&] { return upstream->held() == calls; });
  }
};

TEST_F(HoldTest, ACallIsServedWhenTheOnlyEndpointListensAgain) {
  FakeOrigin origin(FakeOrigin::Refusing::kYes);
  make({origin.name()}, held_for(std::chrono::seconds(20)));
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 2}));
  static_cast<void>(asked.call.send_body({}, false));
  until_held();
  origin.open();
  origin.accept(loop);
  run_until([&] { return asked.seen.writable == 1; });
  EXPECT_TRUE(asked.call.send_body("hi", true));
  const std::string got = origin.read_until(loop, "\r\n\r\nhi");
  EXPECT_EQ(got.find("x-weir-attempt"), std::string::npos) << "nothing reached it before";
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_GT(asked.call.held_for(), Duration(0));
  EXPECT_EQ(asked.call.attempts(), 1U);
}

TEST_F(HoldTest, AllHeldCallsAreServed) {
  FakeOrigin origin(FakeOrigin::Refusing::kYes);
  make({origin.name()}, held_for(std::chrono::seconds(20)));
  Asked asked[5];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  until_held(5);
  origin.open();
  for (Asked& one : asked) {
    static_cast<void>(one);
    origin.accept_another(loop);
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
  }
  for (Asked& one : asked) run_until([&] { return one.seen.complete; });
}

TEST_F(HoldTest, EndsWithTheFailureThatCausedIt) {
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  make({dead.name()}, held_for(milliseconds(100)));
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kConnectRefused);
  EXPECT_GE(asked.call.held_for(), milliseconds(90));
}

TEST_F(HoldTest, WithoutAnyEndpointItWaitsForOne) {
  FakeOrigin origin;
  make({}, held_for(std::chrono::seconds(20)));
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  EXPECT_EQ(upstream->held(), 1U);
  upstream->set_endpoints(found({origin.name()}), loop.now());
  origin.accept(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(HoldTest, WithoutAnyEndpointItEndsInTime) {
  make({}, held_for(milliseconds(60)));
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kNoEndpoint);
}

TEST_F(HoldTest, NothingIsHeldIfTheTimeIsZero) {
  make({}, held_for(Duration(0)));
  Asked asked;
  EXPECT_EQ(get(asked.call).error(), UpstreamFailure::kNoEndpoint);
}

TEST_F(HoldTest, TheNumberOfHeldCallsIsBounded) {
  UpstreamConfig config = held_for(std::chrono::seconds(20));
  config.hold_requests_max = 2;
  make({}, config);
  Asked asked[3];
  EXPECT_TRUE(get(asked[0].call));
  EXPECT_TRUE(get(asked[1].call));
  EXPECT_EQ(get(asked[2].call).error(), UpstreamFailure::kNoEndpoint);
  asked[0].call.cancel();
  EXPECT_TRUE(get(asked[2].call));
  asked[1].call.cancel();
  asked[2].call.cancel();
}

TEST_F(HoldTest, ACallThatItsOwnerKeepsBackLetsOthersPass) {
  FakeOrigin origin;
  make({}, held_for(std::chrono::seconds(20)));
  Asked asked[3];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  EXPECT_EQ(asked[0].seen.held, 1);
  asked[0].seen.leaves_hold = false;
  upstream->set_endpoints(found({origin.name()}), loop.now());
  for (int i = 0; i < 2; ++i) {
    origin.accept_another(loop);
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
  }
  run_until([&] { return asked[1].seen.complete && asked[2].seen.complete; });
  EXPECT_EQ(upstream->held(), 1U);
  asked[0].seen.leaves_hold = true;
  origin.accept_another(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked[0].seen.complete; });
}

TEST_F(HoldTest, TheDeadlineEndsItEarlier) {
  FakeOrigin dead(FakeOrigin::Refusing::kYes);
  make({dead.name()}, held_for(std::chrono::seconds(20)));
  for (int i = 0; i < 4; ++i) {  // the two timers are not in step
    Asked asked;
    ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(40 + 7 * i)}));
    run_until_ended(asked.seen);
    EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  }
}

TEST_F(HoldTest, TheDeadlineIsTheReasonWhicheverTimerIsFirst) {
  make({}, held_for(std::chrono::seconds(20)));
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(1)}));
  ::poll(nullptr, 0, 80);  // the loop is late: both are due in its next turn
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
}

TEST_F(HoldTest, ADrainedEndpointTakesHeldCallsWhenTheDrainIsOver) {
  FakeOrigin origin;
  make({origin.name()}, held_for(std::chrono::seconds(20)));
  std::vector<DiscoveredEndpoint> all = found({origin.name()});
  all[0].draining = true;
  upstream->set_endpoints(all, loop.now());
  loop.run_once();
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  EXPECT_EQ(upstream->held(), 1U);
  all[0].draining = false;
  upstream->set_endpoints(all, loop.now());
  origin.accept(loop);
  origin.read_head(loop);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(HoldTest, ACallWhoseOwnerEndsOthersWhenItFails) {
  make({}, held_for(milliseconds(50)));
  Asked asked[3];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  asked[0].seen.within(CallEvent::kFailed, [&] {
    asked[1].call.cancel();
    EXPECT_TRUE(get(asked[0].call));  // and starts again
  });
  run_until([&] { return asked[0].seen.ends == 2 && asked[2].seen.ended(); });
  EXPECT_FALSE(asked[1].seen.ended());
}

TEST_F(HoldTest, StopEndsHeldCalls) {
  make({}, held_for(std::chrono::seconds(20)));
  Asked asked[2];
  for (Asked& one : asked) ASSERT_TRUE(get(one.call));
  dispatcher->stop();
  for (Asked& one : asked) EXPECT_EQ(one.seen.failure, UpstreamFailure::kNoEndpoint);
  Asked late;
  EXPECT_EQ(get(late.call).error(), UpstreamFailure::kNoEndpoint);
}

}  // namespace
}  // namespace weir::upstream
