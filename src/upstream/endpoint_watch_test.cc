#include "endpoint_watch.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "upstream/dispatcher_testing.h"

// Endpoints as all loops measured them: silence, latency, and the sums that choices need.

namespace weir::upstream {
namespace {

using policy::EndpointState;
using std::chrono::milliseconds;
using std::chrono::seconds;

class EndpointWatchTest : public ::testing::Test {
 protected:
  void make(std::size_t endpoints) {
    std::vector<DiscoveredEndpoint> all;
    for (std::size_t i = 0; i < endpoints; ++i) all.push_back(numbered(i));
    upstream = std::make_unique<Upstream>(
        Upstream::Setup{
            .config = {}, .loops = 2, .reserved = 0, .rng = Rng(1), .observer = nullptr, .tls = {}},
        std::move(all), now);
    watch = std::make_unique<EndpointWatch>(*upstream);
    for (std::size_t i = 0; i < endpoints; ++i) endpoint(i).heard(now);
  }
  static DiscoveredEndpoint numbered(std::size_t i) {
    DiscoveredEndpoint one;
    one.address = *io::parse_socket_name("127.0.0.1:" + std::to_string(i + 1));
    return one;
  }
  [[nodiscard]] Endpoint& endpoint(std::size_t i) const {
    return *upstream->endpoints()->members[i].endpoint;
  }
  [[nodiscard]] EndpointState state(std::size_t i) const { return endpoint(i).health().state(); }
  void sent(std::size_t i, TimePoint at, std::uint32_t loop = 0) const {
    endpoint(i).counters(loop).oldest_unanswered_ns.store(to_ns(at));
  }
  void answered(std::size_t i, std::uint32_t loop = 0) const {
    endpoint(i).counters(loop).oldest_unanswered_ns.store(0);
  }
  /// Time passes; all endpoints but `silent` are heard.
  void pass(Duration time, std::size_t silent, Duration lateness = {}) {
    for (const TimePoint until = now + time; now < until;) {
      now += EndpointWatch::kTick;
      for (std::size_t i = 0; i < upstream->endpoints()->members.size(); ++i) {
        if (i != silent) endpoint(i).heard(now);
      }
      watch->tick(now, lateness);
    }
  }
  void record(std::size_t i, int times, Duration latency) const {
    for (int k = 0; k < times; ++k)
      endpoint(i).counters(k % 2 == 0 ? 0 : 1).latency.record(latency);
  }
  void close_window() {
    now += EndpointWatch::kWindow;
    watch->tick(now, {});
  }

  TimePoint now = TimePoint{} + std::chrono::hours(1);
  std::unique_ptr<Upstream> upstream;
  std::unique_ptr<EndpointWatch> watch;
};

constexpr std::size_t kNobody = 99;

TEST_F(EndpointWatchTest, ALoopThatIsLateHasNotReadWhatTheEndpointSent) {
  make(3);
  upstream->note_tick(1, now, {});
  sent(1, now, 1);
  pass(milliseconds(400), 1);  // the second loop does not tick meanwhile
  EXPECT_EQ(state(1), EndpointState::kAvailable);
  upstream->note_tick(1, now, milliseconds(400));  // it ticks before it reads
  pass(milliseconds(20), 1);
  EXPECT_EQ(state(1), EndpointState::kAvailable);
  for (int i = 0; i < 10; ++i) {
    upstream->note_tick(1, now, {});
    pass(milliseconds(20), 1);
  }
  EXPECT_FALSE(endpoint(1).open()) << "it has read, and the endpoint is silent";
}

TEST_F(EndpointWatchTest, ALateLoopDoesNotExcuseWhatAnotherOneWaitsFor) {
  make(3);
  upstream->note_tick(1, now, {});
  sent(1, now, 0);
  pass(milliseconds(160), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect);
}

TEST_F(EndpointWatchTest, SilenceMakesSuspectThenHungAndAByteEndsBoth) {
  make(3);
  sent(1, now);
  pass(milliseconds(100), 1);
  EXPECT_EQ(state(1), EndpointState::kAvailable);
  pass(milliseconds(40), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect);
  pass(milliseconds(200), 1);
  EXPECT_EQ(state(1), EndpointState::kHung);
  EXPECT_EQ(state(0), EndpointState::kAvailable);
  endpoint(1).heard(now);
  upstream->note_good(endpoint(1), policy::HealthEvent::kHeard, now);
  EXPECT_EQ(state(1), EndpointState::kReturning);
}

TEST_F(EndpointWatchTest, SilenceCountsFromTheOldestAttemptOfAnyLoop) {
  make(2);
  sent(1, now, 1);
  pass(milliseconds(60), 1);
  sent(1, now, 0);
  pass(milliseconds(60), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect);
}

TEST_F(EndpointWatchTest, WithoutAnUnansweredAttemptSilenceIsRest) {
  make(2);
  pass(seconds(10), 1);
  EXPECT_EQ(state(1), EndpointState::kAvailable);
  sent(1, now);
  pass(milliseconds(60), 1);
  answered(1);
  pass(seconds(1), 1);
  EXPECT_EQ(state(1), EndpointState::kAvailable);
}

TEST_F(EndpointWatchTest, ASuspectWhoseRequestsHaveMovedIsHungAndGetsATrial) {
  make(3);
  sent(1, now);
  pass(milliseconds(140), 1);
  ASSERT_EQ(state(1), EndpointState::kSuspect);
  answered(1);  // moved: nothing is left that it could answer
  pass(milliseconds(480), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect);
  pass(milliseconds(100), 1);
  EXPECT_EQ(state(1), EndpointState::kHung);
  pass(milliseconds(1100), 1);
  EXPECT_EQ(endpoint(1).openness(), policy::Openness::kTrial);
}

TEST_F(EndpointWatchTest, IfNobodyIsHeardTheFaultMayBeOurs) {
  make(2);
  sent(0, now);
  sent(1, now);
  for (int i = 0; i < 100; ++i) watch->tick(now += EndpointWatch::kTick, {});
  EXPECT_EQ(state(0), EndpointState::kAvailable);
  EXPECT_EQ(state(1), EndpointState::kAvailable);
}

TEST_F(EndpointWatchTest, ALateLoopSuspectsNobody) {
  make(2);
  sent(1, now);
  pass(milliseconds(200), 1, EndpointWatch::kLate + milliseconds(1));
  EXPECT_EQ(state(1), EndpointState::kAvailable);
  pass(milliseconds(40), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect) << "it is in time again";
}

TEST_F(EndpointWatchTest, TheSilenceThatIsAllowedGrowsWithTheLatencyOfAll) {
  make(2);
  watch->tick(now, {});
  record(0, 100, milliseconds(200));
  close_window();
  endpoint(0).heard(now);
  endpoint(1).heard(now);
  sent(1, now);
  pass(milliseconds(500), 1);
  EXPECT_EQ(state(1), EndpointState::kAvailable) << "3 × p99 is more";
  pass(milliseconds(300), 1);
  EXPECT_EQ(state(1), EndpointState::kSuspect);
}

TEST_F(EndpointWatchTest, AHungEndpointIsTriedAgainAfterAPause) {
  make(2);
  sent(1, now);
  pass(milliseconds(400), 1);
  ASSERT_EQ(state(1), EndpointState::kHung);
  answered(1);  // its attempts were given up
  pass(milliseconds(1100), 1);
  EXPECT_EQ(endpoint(1).openness(), policy::Openness::kTrial);
}

TEST_F(EndpointWatchTest, ASlowEndpointIsEjectedAfterTwoWindows) {
  make(4);
  watch->tick(now, {});
  for (int window = 0; window < 2; ++window) {
    EXPECT_EQ(state(2), EndpointState::kAvailable);
    for (std::size_t i = 0; i < 4; ++i) record(i, 40, milliseconds(i == 2 ? 200 : 5));
    close_window();
  }
  EXPECT_EQ(state(2), EndpointState::kEjected);
  EXPECT_EQ(endpoint(2).health().reason(), policy::HealthReason::kSlow);
  EXPECT_EQ(endpoint(2).recent_latency().samples, 40U);
}

TEST_F(EndpointWatchTest, IfAllAreSlowNoneIsEjected) {
  make(4);
  watch->tick(now, {});
  for (int window = 0; window < 5; ++window) {
    for (std::size_t i = 0; i < 4; ++i) record(i, 40, milliseconds(200));
    close_window();
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(state(i), EndpointState::kAvailable);
}

TEST_F(EndpointWatchTest, OnlyOneOfASmallSetIsEjectedForLatency) {
  make(5);
  watch->tick(now, {});
  for (int window = 0; window < 3; ++window) {
    for (std::size_t i = 0; i < 5; ++i) record(i, 40, milliseconds(i < 2 ? 300 : 5));
    close_window();
  }
  int ejected = 0;
  for (std::size_t i = 0; i < 5; ++i) ejected += state(i) == EndpointState::kEjected ? 1 : 0;
  EXPECT_EQ(ejected, 1);
}

TEST_F(EndpointWatchTest, TheLastMeasuredLatencyStaysWhileAnEndpointIsIdle) {
  make(2);
  watch->tick(now, {});
  record(0, 10, milliseconds(5));
  close_window();
  close_window();
  EXPECT_EQ(endpoint(0).recent_latency().samples, 10U);
}

TEST_F(EndpointWatchTest, PublishesTheCohort) {
  make(4);
  upstream->note_health(endpoint(0), policy::HealthEvent::kOperatorDrain, now);
  upstream->note_health(endpoint(1), policy::HealthEvent::kConnectFailed, now);
  watch->tick(now, {});
  const policy::Cohort cohort = upstream->published().cohort;
  EXPECT_EQ(cohort.endpoints, 3U) << "an endpoint that drains does not count";
  EXPECT_EQ(cohort.open, 2U);
  EXPECT_EQ(cohort.returning, 0U);
  EXPECT_EQ(cohort.open_weight, 2.0);
  EXPECT_EQ(cohort.weight_max, 1.0);
}

TEST_F(EndpointWatchTest, AnEndpointThatReturnsHasASmallerWeight) {
  make(4);
  upstream->note_health(endpoint(0), policy::HealthEvent::kOperatorDrain, now);
  now += seconds(10);
  upstream->note_health(endpoint(0), policy::HealthEvent::kOperatorUndrain, now);
  watch->tick(now, {});
  const policy::Cohort cohort = upstream->published().cohort;
  EXPECT_EQ(cohort.returning, 1U);
  EXPECT_NEAR(cohort.open_weight, 3.1, 1e-9);
}

TEST_F(EndpointWatchTest, PublishesTheLatencyOfAllTogether) {
  make(2);
  watch->tick(now, {});
  record(0, 99, milliseconds(2));
  record(1, 99, milliseconds(8));
  close_window();
  const policy::CohortLatency latency = upstream->published().latency;
  EXPECT_NEAR(to_seconds(latency.median), 0.002, 0.0003);
  EXPECT_NEAR(to_seconds(latency.p99), 0.008, 0.001);
}

TEST_F(EndpointWatchTest, AnEndpointThatIsReplacedLeavesNoLatencyToTheNext) {
  make(2);
  watch->tick(now, {});
  record(0, 1000, milliseconds(5));
  record(1, 1000, milliseconds(5));
  close_window();
  for (std::size_t round = 2; round < 20; ++round) {  // memory is used again
    upstream->set_endpoints({numbered(0), numbered(round)}, now);
    watch->tick(now, {});
  }
  close_window();
  EXPECT_EQ(endpoint(1).recent_latency().samples, 0U);
}

TEST_F(EndpointWatchTest, TimeEndsAnEjection) {
  make(2);
  upstream->note_health(endpoint(0), policy::HealthEvent::kConnectFailed, now);
  pass(milliseconds(60), kNobody);
  EXPECT_FALSE(endpoint(0).open());
  pass(milliseconds(60), kNobody);
  EXPECT_EQ(endpoint(0).openness(), policy::Openness::kTrial);
}

// ---- with calls

class SilentEndpointTest : public DispatcherTest {
 protected:
  /// Somebody else is heard all the time.
  void run_while_others_are_heard(Endpoint& other, const std::function<bool()>& done) {
    run_until([&] {
      other.heard(loop.now());
      return done();
    });
  }
  static std::size_t index_of_silent(const FakeOrigin& first, const FakeOrigin& a) {
    return &first == &a ? 0 : 1;
  }
};

TEST_F(SilentEndpointTest, WhatMayBeSentAgainMovesToAnother) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  Asked asked;
  Asked post;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& silent = accept_at_one(a, b);
  const std::size_t i = index_of_silent(silent, a);
  FakeOrigin& other = i == 0 ? b : a;
  silent.read_head(loop);
  upstream->note_health(endpoint(1 - i), policy::HealthEvent::kOperatorDrain, loop.now());
  ASSERT_TRUE(ask(post.call, {.framing = RequestFraming::kNone}));
  silent.accept_another(loop);
  silent.read_head(loop);
  upstream->note_health(endpoint(1 - i), policy::HealthEvent::kOperatorUndrain, loop.now());
  run_while_others_are_heard(endpoint(1 - i), [&] { return other.has_caller(); });
  other.accept(loop);
  other.read_head(loop);
  other.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(failures(UpstreamFailure::kHung, i), 1U);
  EXPECT_FALSE(post.seen.ended()) << "an answer may still come";
  EXPECT_FALSE(endpoint(i).open());
  silent.write(kNoContent);
  run_until([&] { return post.seen.complete; });
  EXPECT_TRUE(endpoint(i).open());
  EXPECT_EQ(endpoint(i).score().ns, 0) << "a hang does not teach the score";
}

TEST_F(SilentEndpointTest, WithoutATokenAnAttemptStays) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.retry_budget_tokens_max = 1;
  config.retry_budget_pct = 0;
  config.balance = policy::Balance::kLeastRequests;
  make({a.name(), b.name()}, config);
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  Asked asked[3];
  for (Asked& one : asked) {
    ASSERT_TRUE(get(one.call));
    a.accept_another(loop);
    a.read_head(loop);
  }
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  run_while_others_are_heard(endpoint(1), [&] { return !endpoint(0).open() && b.has_caller(); });
  b.accept(loop);
  b.read_head(loop);
  b.write(kNoContent);
  run_until([&] { return asked[0].seen.complete; });
  EXPECT_EQ(failures(UpstreamFailure::kHung, 0), 1U) << "there was one token";
  for (Asked& one : asked) one.call.cancel();
}

TEST_F(SilentEndpointTest, AnOwnerMayEndOtherCallsWhenItsOwnMoves) {
  FakeOrigin a;
  FakeOrigin b;
  make({a.name(), b.name()});
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorDrain, loop.now());
  auto asked = std::make_unique<Asked[]>(4);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(ask(asked[i].call, {.method = http::Method::kPut, .length = 2}));
    static_cast<void>(asked[i].call.send_body({}, false));
    a.accept_another(loop);
    run_until([&] { return asked[i].seen.writable == 1; });
    EXPECT_TRUE(asked[i].call.send_body("hi", true));
  }
  // What is next in line goes away while the first one moves.
  asked[0].seen.within(CallEvent::kBlocked, [&] {
    asked[1].call.cancel();
    asked[2].call.cancel();
  });
  upstream->note_health(endpoint(1), policy::HealthEvent::kOperatorUndrain, loop.now());
  run_while_others_are_heard(endpoint(1), [&] { return counters(1).attempts.get() == 2; });
  EXPECT_EQ(failures(UpstreamFailure::kHung, 0), 2U);
  asked[0].call.cancel();
  asked[3].call.cancel();
}

}  // namespace
}  // namespace weir::upstream
