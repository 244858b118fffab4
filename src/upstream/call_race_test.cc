#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "weir/experimental/io/syscalls.h"

#include "call_race_testing.h"
#include "upstream/call.h"

// Reads with two attempts at once, over real connections.

namespace weir::upstream {
namespace {

using policy::LoserEnd;
using policy::NoHedge;
using std::chrono::milliseconds;

TEST_F(CallRaceTest, AReplicaAnswersForOneThatIsLate) {
  make_two(soon());
  Asked asked;
  FakeOrigin& late = start(asked);
  FakeOrigin& replica = other_than(late);
  EXPECT_EQ(replica.read_head(loop), "GET / HTTP/1.1\r\nhost: x\r\nx-weir-attempt: 2\r\n\r\n");
  EXPECT_EQ(endpoint_of(late).in_flight() + endpoint_of(replica).in_flight(), 2U);
  replica.write(kOk);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.call.endpoint(), &endpoint_of(replica));
  EXPECT_EQ(asked.call.attempts(), 2U);
  EXPECT_TRUE(asked.call.hedged());
  run_until([&] { return late.ended(); });  // the endpoint learns that it may stop
  EXPECT_EQ(sum(&CallCounters::hedges), 1U);
  EXPECT_EQ(sum(&CallCounters::hedges_won), 1U);
  EXPECT_EQ(losers(LoserEnd::kClose), 1U);
  EXPECT_EQ(endpoint_of(replica).counters(0).hedge_wins.get(), 1U);
  EXPECT_EQ(tokens(), 1U) << "of two";
  EXPECT_GT(endpoint_of(late).score().ns, 0) << "a loser teaches, too";
}

TEST_F(CallRaceTest, APrimaryInTimeIsNotHedged) {
  make_two(never());
  Asked asked;
  FakeOrigin& primary = start(asked);
  primary.write(kOk);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(no_hedge(NoHedge::kNotNeeded), 1U);
  EXPECT_EQ(sum(&CallCounters::hedges), 0U);
  EXPECT_EQ(tokens(), 2U);
  EXPECT_EQ(dispatcher->idle_connections(), 2U);
}

TEST_F(CallRaceTest, EdgeCase8AReplicaWhoseClockIsWrongWinsLikeAnyOther) {
  make_two(soon());
  Asked asked;
  FakeOrigin& late = start(asked);
  other_than(late).read_head(loop);
  other_than(late).write(
      "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 2\r\n\r\nok");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(sum(&CallCounters::hedges_won), 1U);
  EXPECT_LT(endpoint_of(other_than(late)).score().ns, 1e9);
}

TEST_F(CallRaceTest, EachClassOfReadsHasItsOwnDelay) {
  read_classes = 2;
  make_two(soon());
  policy::HedgeConfig hedge;
  hedge.max_delay = milliseconds(400);
  upstream->set_hedge(hedge);
  loop.run_once();
  for (std::size_t i = 0; i < 2; ++i) {
    for (int n = 0; n < 20; ++n) {
      endpoint(i).reads(0).tracker.record(
          {.latency = milliseconds(2), .end = control::AttemptEnd::kAnswered}, loop.now());
      endpoint(i).reads(1).tracker.record(
          {.latency = milliseconds(300), .end = control::AttemptEnd::kAnswered}, loop.now());
    }
  }
  Asked slow;
  ASSERT_TRUE(get(slow.call, {.reads = 1}));
  FakeOrigin& first = asked_one();
  stay_alone(first);
  first.write(kOk);
  run_until([&] { return slow.seen.complete; });
  Asked fast;
  FakeOrigin& late = start(fast);
  other_than(late).read_head(loop);
  EXPECT_EQ(sum(&CallCounters::hedges), 1U);
  fast.call.cancel();
}

TEST_F(CallRaceTest, AClassThatIsTooSlowToBeHedgedDoesNotStopTheOthers) {
  read_classes = 2;
  make_two(soon());
  upstream->publish(1, policy::HedgeCohort{.delay = milliseconds(20), .slow = true});
  EXPECT_TRUE(upstream->slowest_cohort().slow);
  Asked slow;
  ASSERT_TRUE(get(slow.call, {.reads = 7}));  // the last class stands for those beyond it
  FakeOrigin& first = asked_one();
  run_until([&] { return no_hedge(NoHedge::kCohortSlow) == 1; });
  first.write(kOk);
  run_until([&] { return slow.seen.complete; });
  Asked fast;
  FakeOrigin& late = start(fast);
  other_than(late).read_head(loop);
  EXPECT_EQ(sum(&CallCounters::hedges), 1U);
  fast.call.cancel();
}

TEST_F(CallRaceTest, ThePrimaryCanStillWin) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  primary.write(kOk);
  run_until([&] { return asked.seen.complete && hedge.ended(); });
  EXPECT_EQ(asked.call.endpoint(), &endpoint_of(primary));
  EXPECT_EQ(sum(&CallCounters::hedges_lost), 1U);
  EXPECT_EQ(asked.seen.ends, 1);
}

// Otherwise the hedges would make a slow endpoint look fast, and it would be chosen for that.
TEST_F(CallRaceTest, AnEndpointThatIsBeatenByAHedgeCountsAsSlower) {
  make_two(soon());
  const double before = give_scores(std::chrono::seconds(10));
  Asked asked;
  FakeOrigin& late = start(asked);
  FakeOrigin& replica = other_than(late);
  replica.read_head(loop);
  replica.write(kOk);
  run_until([&] { return asked.seen.complete && late.ended(); });
  EXPECT_GT(endpoint_of(late).score().ns, before);
}

TEST_F(CallRaceTest, AHedgeThatThePrimaryBeatsSaysNothingAboutItsEndpoint) {
  make_two(soon());
  const double before = give_scores(std::chrono::seconds(10));
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  primary.write(kOk);
  run_until([&] { return asked.seen.complete && hedge.ended(); });
  EXPECT_EQ(endpoint_of(hedge).score().ns, before);
}

TEST_F(CallRaceTest, OnlyReadsAreSentTwice) {
  struct Case {
    Request request;
    NoHedge reason;
  };
  const std::array cases = {
      Case{{.method = http::Method::kPost, .framing = RequestFraming::kNone}, NoHedge::kUnsafe},
      Case{{.method = http::Method::kPut, .framing = RequestFraming::kNone}, NoHedge::kUnsafe},
      Case{{.method = http::Method::kGet, .framing = RequestFraming::kLength, .length = 0},
           NoHedge::kBody},
      Case{{.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true},
           NoHedge::kUpgrade}};
  for (const Case& one : cases) {
    make_two(soon());
    Asked asked;
    ASSERT_TRUE(ask(asked.call, one.request));
    if (one.request.framing != RequestFraming::kNone) {
      static_cast<void>(asked.call.send_body({}, true));
    }
    FakeOrigin& primary = asked_one();
    stay_alone(primary);
    EXPECT_EQ(no_hedge(one.reason), 1U) << name_of(one.reason);
    asked.call.cancel();
    TearDown();
  }
}

TEST_F(CallRaceTest, ARouteCanSayThatAPostIsARead) {
  make_two(soon());
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.method = http::Method::kPost, .framing = RequestFraming::kNone},
                  {.idempotent = true}));
  FakeOrigin& late = asked_one();
  FakeOrigin& replica = other_than(late);
  EXPECT_EQ(replica.read_head(loop).substr(0, 6), "POST /");
  replica.write(kOk);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRaceTest, ARouteCanSayThatNothingIsHedged) {
  make_two(soon());
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.hedge = false}));
  stay_alone(asked_one());
  EXPECT_EQ(no_hedge(NoHedge::kDisabled), 1U);
  asked.call.cancel();
}

TEST_F(CallRaceTest, WhatForbidsAHedgeIsAskedWhenItIsDue) {
  struct Case {
    std::function<void(FakeOrigin&)> before_due;
    NoHedge reason;
  };
  const auto health = [this](policy::HealthEvent event) {
    return [this, event](FakeOrigin& replica) {
      upstream->note_health(endpoint_of(replica), event, loop.now());
    };
  };
  config.outgoing_queue_size = 10;
  QueueFiller full;
  const std::array cases = {
      Case{[this](FakeOrigin&) { upstream->set_overloaded(true); }, NoHedge::kOverload},
      Case{[this](FakeOrigin&) {
             upstream->publish(0, policy::HedgeCohort{.delay = milliseconds(20), .slow = true});
           },
           NoHedge::kCohortSlow},
      Case{[&](FakeOrigin& replica) { full.fill(endpoint_of(replica), 7); }, NoHedge::kTargetQueue},
      Case{[&](FakeOrigin& replica) {
             full.fill(endpoint_of(replica), 10);
             full.fill(endpoint_of(other_than(replica)), 10);
             run_until([&] { return upstream->overloaded(); });
           },
           NoHedge::kOverload},
      Case{[this](FakeOrigin& replica) {
             endpoint_of(replica).push_back(std::chrono::hours(1), loop.now());
           },
           NoHedge::kPushback},
      Case{health(policy::HealthEvent::kTooSlow), NoHedge::kTargetOut},
      Case{health(policy::HealthEvent::kSuspected), NoHedge::kTargetOut},
      Case{health(policy::HealthEvent::kOperatorDrain), NoHedge::kTargetOut},
      Case{[this](FakeOrigin& replica) {
             while (upstream->budget().try_take()) static_cast<void>(replica);
           },
           NoHedge::kBudget},
      Case{[this](FakeOrigin& replica) {
             while (endpoint_of(other_than(replica)).budget().try_take()) continue;
             while (upstream->budget().may_lend()) static_cast<void>(upstream->budget().try_take());
           },
           NoHedge::kDestinationBudget},
      Case{[this](FakeOrigin&) {
             policy::HedgeConfig off = soon();
             off.enabled = false;
             upstream->set_hedge(off);
             loop.run_once();
           },
           NoHedge::kDisabled}};
  for (const Case& one : cases) {
    make_two(later());
    Asked asked;
    FakeOrigin& primary = start(asked);
    one.before_due(other_than(primary));
    run_until([&] { return no_hedge(one.reason) == 1; });
    EXPECT_EQ(sum(&CallCounters::hedges), 0U) << name_of(one.reason);
    primary.write(kOk);
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(no_hedge(NoHedge::kNotNeeded), 0U) << "one reason per call";
    full.clear();
    TearDown();
  }
}

TEST_F(CallRaceTest, AHedgeStaysInItsZone) {
  config.zone = "a";
  std::vector<DiscoveredEndpoint> both = found({a.name(), b.name()});
  both[0].zone = "a";
  both[1].zone = "b";
  make_two(soon(), both);
  Asked asked;
  FakeOrigin& primary = start(asked);
  EXPECT_EQ(&primary, &a);
  stay_alone(primary);
  EXPECT_EQ(no_hedge(NoHedge::kOtherZone), 1U);
  asked.call.cancel();
}

TEST_F(CallRaceTest, AHedgeNeverLeavesItsZoneHoweverLateThePrimaryIs) {
  config.zone = "a";
  std::vector<DiscoveredEndpoint> both = found({a.name(), b.name()});
  both[0].zone = "b";
  both[1].zone = "c";
  make_two(soon(), both);  // no endpoint is in our zone: requests go there, hedges do not
  for (int i = 0; i < 3; ++i) {
    Asked asked;
    FakeOrigin& primary = start(asked);
    stay_alone(primary);
    EXPECT_EQ(no_hedge(NoHedge::kOtherZone), static_cast<std::uint64_t>(i) + 1);
    primary.write(kOk);
    run_until([&] { return asked.seen.complete; });
  }
}

TEST_F(CallRaceTest, AHedgeDoesNotWaitForAConnection) {
  config.warm_connections = 0;
  make_two(soon());
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  FakeOrigin& primary = accept_at_one(a, b);
  primary.read_head(loop);
  run_until([&] { return no_hedge(NoHedge::kNoConnection) == 1; });
  EXPECT_FALSE(other_than(primary).has_caller());
  asked.call.cancel();
}

/// Sends one byte, and has no room for more.
int bytes_sent = 0;
long send_one_byte(int fd, const void* from, std::size_t) {
  if (bytes_sent++ == 0) return ::send(fd, from, 1, MSG_NOSIGNAL);
  errno = EAGAIN;
  return -1;
}
long send_one_byte_of_pieces(int fd, const void* pieces, std::size_t) {
  return send_one_byte(fd, static_cast<const io::ConstBuffer*>(pieces)->data, 1);
}

TEST_F(CallRaceTest, AHedgeThatWasNotSentWholeCostsItsTokenToo) {
  make_two(later());
  Asked asked;
  FakeOrigin& primary = start(asked);
  io::Syscalls calls = io::system_calls();
  calls.send = send_one_byte;
  calls.send_pieces = send_one_byte_of_pieces;
  bytes_sent = 0;
  loop.use(calls);
  run_until([&] { return sum(&CallCounters::hedges) == 1; });
  EXPECT_EQ(other_than(primary).read(loop, 1), "G");
  asked.call.cancel();
  EXPECT_EQ(tokens(), 1U) << "the endpoint has begun to work on it";
  loop.use(io::system_calls());
}

TEST_F(CallRaceTest, AConnectionThatDiedDoesNotCostAToken) {
  make_two(later());
  Asked asked;
  FakeOrigin& primary = start(asked);
  other_than(primary).close();  // seen only when it is taken: the loop does not run meanwhile
  ::poll(nullptr, 0, 60);
  run_until([&] { return no_hedge(NoHedge::kNoConnection) == 1; });
  EXPECT_EQ(tokens(), 2U);
  primary.write(kOk);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRaceTest, AFailureIsFollowedByAnotherEndpointAtOnce) {
  make_two(never());
  Asked asked;
  FakeOrigin& primary = start(asked);
  primary.reset();
  FakeOrigin& other = other_than(primary);
  EXPECT_NE(other.read_head(loop).find("x-weir-attempt: 2"), std::string::npos);
  other.write(kOk);
  run_until([&] { return asked.seen.complete; });
  EXPECT_FALSE(asked.call.hedged());
  EXPECT_EQ(counters(0).retries.get() + counters(1).retries.get(), 1U);
}

TEST_F(CallRaceTest, ATryLaterAnswerIsSetAsideWhileAnotherMayBeBetter) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  primary.write(kUnavailable);
  let_pass(milliseconds(10));
  EXPECT_EQ(asked.seen.heads, 0);
  hedge.write(kOk);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(losers(LoserEnd::kDrain), 1U) << "four bytes are cheaper than a connection";
  run_until([&] { return dispatcher->idle_connections() == 2; });
}

TEST_F(CallRaceTest, AnAnswerThatWasSetAsideIsUsedIfNoBetterOneComes) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  hedge.write("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone");
  let_pass(milliseconds(10));
  EXPECT_EQ(asked.seen.heads, 0) << "a replica that lags must not hide what the primary has";
  primary.reset();
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 404U);
  EXPECT_EQ(asked.seen.body, "none");
  EXPECT_EQ(asked.seen.ends, 1);
}

TEST_F(CallRaceTest, IfAllFailTheFirstFailureIsReported) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  while (upstream->budget().try_take()) continue;
  primary.write("HTTP/1.1 200 OK\r\nbad header\r\n\r\n");
  run_until([&] { return failures(UpstreamFailure::kBadResponse, index_of(primary)) == 1; });
  EXPECT_FALSE(asked.seen.ended()) << "the hedge goes on";
  hedge.reset();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kBadResponse);
  EXPECT_EQ(sum(&CallCounters::hedges_failed), 1U);
}

TEST_F(CallRaceTest, InterimHeadsAreDroppedWhileAnotherAttemptMayWin) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  primary.write("HTTP/1.1 103 Early Hints\r\n\r\n");
  let_pass(milliseconds(10));
  EXPECT_TRUE(asked.seen.interim.empty());
  hedge.write(kOk);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRaceTest, NothingIsHedgedAfterAByteWentDownstream) {
  make_two(later());
  Asked asked;
  FakeOrigin& primary = start(asked);
  primary.write("HTTP/1.1 103 Early Hints\r\n\r\n");
  run_until([&] { return asked.seen.interim.size() == 1; });
  EXPECT_EQ(no_hedge(NoHedge::kAnswerStarted), 1U);
  stay_alone(primary);
  primary.reset();
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated);
}

TEST_F(CallRaceTest, ACancelledCallEndsBothAttempts) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  asked.call.cancel();
  run_until([&] { return primary.ended() && hedge.ended(); });
  EXPECT_EQ(endpoint(0).in_flight() + endpoint(1).in_flight(), 0U);
  EXPECT_EQ(tokens(), 1U) << "its bytes were sent";
}

TEST_F(CallRaceTest, TheOwnerMayCancelWithinTheAnswer) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  asked.seen.within(CallEvent::kHead, [&] { asked.call.cancel(); });
  hedge.write(kOk);
  run_until([&] { return asked.seen.heads == 1 && primary.ended(); });
  EXPECT_EQ(asked.seen.ends, 0);
}

TEST_F(CallRaceTest, TheDeadlineEndsBothAttempts) {
  make_two(soon());
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + milliseconds(300)}));
  FakeOrigin& primary = asked_one();
  other_than(primary).read_head(loop);
  run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kDeadline);
  EXPECT_FALSE(asked.call.waited_for_owner());
}

TEST_F(CallRaceTest, AnOwnerThatLeavesKeepsOneAttempt) {
  make_two(soon());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  asked.call.finish_alone(loop.now() + std::chrono::seconds(5));
  run_until([&] { return hedge.ended(); });
  primary.write(kOk);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(CallRaceTest, AResponseIsDeliveredOnceToASlowOwner) {
  make_two(soon());
  Asked asked;
  asked.seen.take_heads = false;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  hedge.write(kOk);
  run_until([&] { return asked.seen.heads == 1; });
  primary.close();
  asked.seen.take_heads = true;
  asked.call.resume();
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.heads, 2);
  EXPECT_EQ(asked.seen.body, "ok");
}

TEST_F(CallRaceTest, AnEndpointThatAsksForFewerRequestsGetsNoHedgeForAWhile) {
  struct Case {
    std::string_view answer;
    bool pushed_back;
  };
  for (const Case& one :
       {Case{"HTTP/1.1 503 Busy\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n", true},
        Case{"HTTP/1.1 429 Busy\r\nx-weir-retry-after-ms: 500\r\ncontent-length: 0\r\n\r\n", true},
        Case{"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", false},
        Case{"HTTP/1.1 200 OK\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n", false}}) {
    config.retry_budget_tokens_max = 0;
    make_two(never());
    Asked asked;
    FakeOrigin& primary = start(asked);
    primary.write(one.answer);
    run_until([&] { return asked.seen.complete; });
    Endpoint& endpoint = endpoint_of(primary);
    EXPECT_EQ(endpoint.pushed_back(loop.now()), one.pushed_back) << one.answer;
    EXPECT_FALSE(endpoint.pushed_back(loop.now() + std::chrono::seconds(5)));
    EXPECT_FALSE(endpoint_of(other_than(primary)).pushed_back(loop.now()));
    TearDown();
  }
}

TEST_F(CallRaceTest, ACallerThatRepeatsIsNotHedged) {
  make_two(soon());
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.caller_attempt = 2}));
  FakeOrigin& primary = asked_one();
  run_until([&] { return no_hedge(NoHedge::kCallerRetries) == 1; });
  primary.write(kOk);
  run_until([&] { return asked.seen.complete; });
}

// ---- HTTP/2

}  // namespace
}  // namespace weir::upstream
