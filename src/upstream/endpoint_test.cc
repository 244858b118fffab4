#include "upstream/endpoint.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using policy::EndpointState;
using policy::HealthEvent;
using policy::Openness;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct EndpointTest : ::testing::Test {
  control::OutgoingConfig config;
  control::OutgoingTotals totals;
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  Endpoint endpoint{{.name = *io::parse_socket_name("127.0.0.1:1"), .host = "a"},
                    2,
                    policy::EndpointHealth(now),
                    policy::RedundancyBudgetRules{},
                    {.config = config, .totals = totals},
                    Rng(1)};
};

TEST_F(EndpointTest, PublishesWhatItsStateMachineSays) {
  EXPECT_TRUE(endpoint.quiet());
  EXPECT_EQ(endpoint.openness(), Openness::kOpen);
  const auto change = endpoint.note(HealthEvent::kConnectFailed, now);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, EndpointState::kEjected);
  EXPECT_EQ(endpoint.openness(), Openness::kClosed);
  EXPECT_FALSE(endpoint.open());
  EXPECT_FALSE(endpoint.quiet());
  EXPECT_FALSE(endpoint.note(HealthEvent::kConnectFailed, now).has_value());
  endpoint.note(HealthEvent::kTick, now + seconds(1));
  EXPECT_EQ(endpoint.openness(), Openness::kTrial);
  EXPECT_TRUE(endpoint.open());
  endpoint.note(HealthEvent::kAnswered, now + seconds(1));
  EXPECT_EQ(endpoint.openness(), Openness::kOpen);
  EXPECT_TRUE(endpoint.quiet());
  EXPECT_TRUE(endpoint.returning());
}

TEST_F(EndpointTest, ThePublishedRampIsThatOfTheStateMachine) {
  const auto same = [&](TimePoint at) {
    return endpoint.return_ratio(at) == endpoint.health().return_ratio(at, {});
  };
  EXPECT_TRUE(same(now));
  endpoint.note(HealthEvent::kOperatorDrain, now);
  now += seconds(4);
  endpoint.note(HealthEvent::kOperatorUndrain, now);
  for (int ms = -100; ms <= 4200; ms += 50) EXPECT_TRUE(same(now + milliseconds(ms))) << ms;
  EXPECT_EQ(endpoint.return_ratio(now + seconds(5)), 1);
  now += seconds(20);
  endpoint.note(HealthEvent::kTick, now);
  endpoint.note(HealthEvent::kConnectFailed, now);
  now += milliseconds(100);
  endpoint.note(HealthEvent::kTick, now);  // on trial
  for (int ms = 0; ms <= 300; ms += 20) EXPECT_TRUE(same(now + milliseconds(ms))) << ms;
  endpoint.note(HealthEvent::kTrialStarted, now);
  for (int ms = 0; ms <= 300; ms += 20) EXPECT_TRUE(same(now + milliseconds(ms))) << ms;
  now += milliseconds(50);
  endpoint.note(HealthEvent::kConnected, now);
  for (int ms = 0; ms <= 300; ms += 20) EXPECT_TRUE(same(now + milliseconds(ms))) << ms;
}

TEST_F(EndpointTest, RemembersWhenItsLastSuspicionEnded) {
  EXPECT_EQ(endpoint.suspected_until(now), TimePoint{});
  endpoint.note(HealthEvent::kSuspected, now);
  EXPECT_EQ(endpoint.suspected_until(now + seconds(3)), now + seconds(3)) << "it lasts";
  endpoint.note(HealthEvent::kHung, now + seconds(1));
  EXPECT_EQ(endpoint.suspected_until(now + seconds(3)), now + seconds(3));
  endpoint.note(HealthEvent::kHeard, now + seconds(4));
  EXPECT_EQ(endpoint.suspected_until(now + seconds(9)), now + seconds(4));
}

TEST_F(EndpointTest, AnEjectionIsNoSuspicion) {
  endpoint.note(HealthEvent::kConnectFailed, now);
  EXPECT_EQ(endpoint.suspected_until(now), TimePoint{});
}

TEST_F(EndpointTest, KeepsTheScore) {
  endpoint.set_score({.ns = 1.5e6, .updated_at = now});
  EXPECT_EQ(endpoint.score().ns, 1.5e6);
  EXPECT_EQ(endpoint.score().updated_at, now);
}

TEST_F(EndpointTest, TheLastByteHeardIsKnownToAMillisecond) {
  endpoint.heard(now);
  EXPECT_EQ(endpoint.last_heard(), now);
  endpoint.heard(now + std::chrono::microseconds(999));
  EXPECT_EQ(endpoint.last_heard(), now);
  endpoint.heard(now + milliseconds(1));
  EXPECT_EQ(endpoint.last_heard(), now + milliseconds(1));
}

TEST_F(EndpointTest, AddsUpWhatLoopsCounted) {
  endpoint.counters(0).attempts.add(3);
  endpoint.counters(1).attempts.add(4);
  EXPECT_EQ(endpoint.sum([](const EndpointCounters& c) { return c.attempts.get(); }), 7U);
  EXPECT_EQ(endpoint.label(), "127.0.0.1:1");
  EXPECT_EQ(endpoint.host(), "a");
}

}  // namespace
}  // namespace weir::upstream
