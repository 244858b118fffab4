#include "loser_watch.h"

#include <chrono>

#include <gtest/gtest.h>

#include "call_race_testing.h"
#include "upstream/call.h"

// How much time a hedge saved is measured by losers that may finish.

namespace weir::upstream {
namespace {

using policy::LoserEnd;
using std::chrono::milliseconds;

class LoserWatchTest : public CallRaceTest {
 protected:
  /// Every loser may finish.
  static policy::HedgeConfig all() {
    policy::HedgeConfig hedge = soon();
    hedge.losers_per_finish = 1;
    return hedge;
  }
  /// A hedge wins; returns the endpoint that was late.
  FakeOrigin& hedge_wins(Asked& asked) {
    FakeOrigin& late = start(asked);
    FakeOrigin& replica = other_than(late);
    replica.read_head(loop);
    replica.write(kOk);
    run_until([&] { return asked.seen.complete; });
    return late;
  }
  [[nodiscard]] metrics::HistogramSnapshot saved() const {
    return upstream->counters(0).hedge_saved.snapshot();
  }
  [[nodiscard]] std::uint64_t samples() const {
    std::uint64_t n = 0;
    for (const std::uint64_t count : saved().counts) n += count;
    return n;
  }
};

TEST_F(LoserWatchTest, ALoserThatMayFinishTellsTheTimeSaved) {
  make_two(all());
  Asked asked;
  FakeOrigin& late = hedge_wins(asked);
  EXPECT_EQ(losers(LoserEnd::kFinish), 1U);
  EXPECT_EQ(endpoint_of(late).in_flight(), 1U) << "its endpoint still works on it";
  let_pass(milliseconds(30));
  EXPECT_EQ(samples(), 0U);
  late.write(kOk);
  run_until([&] { return samples() == 1; });
  EXPECT_GE(saved().sum, 0.030);
  EXPECT_EQ(endpoint_of(late).in_flight(), 0U);
  run_until([&] { return dispatcher->idle_connections() == 2; });  // a short answer is read
  EXPECT_EQ(asked.seen.ends, 1);
  EXPECT_GE(sum(&CallCounters::loser_ns), 30'000'000U);
  EXPECT_EQ(sum(&CallCounters::discarded_bytes), 2U);
}

TEST_F(LoserWatchTest, OneInSoManyMayFinish) {
  policy::HedgeConfig hedge = soon();
  hedge.losers_per_finish = 2;
  config.retry_budget_tokens_max = 10;
  make_two(hedge);
  Asked first;
  FakeOrigin& closed = hedge_wins(first);
  run_until([&] { return closed.ended(); });
  EXPECT_EQ(losers(LoserEnd::kClose), 1U);
  EXPECT_EQ(losers(LoserEnd::kFinish), 0U);
  closed.close();
  run_until([&] { return dispatcher->idle_connections() == 2; });
  closed.accept(loop);
  Asked second;
  hedge_wins(second);
  EXPECT_EQ(losers(LoserEnd::kFinish), 1U);
}

TEST_F(LoserWatchTest, NoneMayFinishWhileTheServiceIsOverloaded) {
  make_two(all());
  Asked asked;
  FakeOrigin& late = start(asked);
  other_than(late).read_head(loop);
  upstream->set_overloaded(true);
  other_than(late).write(kOk);
  run_until([&] { return asked.seen.complete && late.ended(); });
  EXPECT_EQ(losers(LoserEnd::kFinish), 0U);
}

TEST_F(LoserWatchTest, AHedgeThatLosesIsCancelled) {
  make_two(all());
  Asked asked;
  FakeOrigin& primary = start(asked);
  FakeOrigin& hedge = other_than(primary);
  hedge.read_head(loop);
  primary.write(kOk);
  run_until([&] { return asked.seen.complete && hedge.ended(); });
  EXPECT_EQ(losers(LoserEnd::kFinish), 0U);
}

TEST_F(LoserWatchTest, AnEndpointThatFailsSavedNoTime) {
  make_two(all());
  Asked asked;
  FakeOrigin& late = hedge_wins(asked);
  late.close();
  run_until([&] { return endpoint_of(late).in_flight() == 0; });
  EXPECT_EQ(samples(), 0U);
}

TEST_F(LoserWatchTest, ALoserThatIsNotAnsweredIsEndedAfterASecond) {
  make_two(all());
  Asked asked;
  FakeOrigin& late = hedge_wins(asked);
  run_until([&] { return late.ended(); });
  EXPECT_EQ(samples(), 1U);
  EXPECT_GE(saved().sum, to_seconds(LoserWatch::kPatience)) << "a lower bound";
  EXPECT_EQ(endpoint_of(late).in_flight(), 0U);
}

TEST_F(LoserWatchTest, ALoserEndsWithItsDispatcher) {
  make_two(all());
  Asked asked;
  FakeOrigin& late = hedge_wins(asked);
  dispatcher->stop();
  run_until([&] { return dispatcher->stopped() && late.ended(); });
  EXPECT_EQ(samples(), 0U);
}

TEST_F(LoserWatchTest, OnHttp2TheStreamGoesOnUntilItsAnswer) {
  config.protocol = Protocol::kHttp2;
  make_two(all());
  H2Origin at_a(a);
  H2Origin at_b(b);
  at_a.begin(loop.now());
  at_b.begin(loop.now());
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  const auto step_until = [&](auto done) {
    for (int i = 0; i < 3000 && !done(); ++i) {
      at_a.step(loop);
      at_b.step(loop);
    }
    ASSERT_TRUE(done());
  };
  step_until([&] { return at_a.requests.size() == 1 && at_b.requests.size() == 1; });
  const bool a_is_hedge = at_a.requests.begin()->second.fields.contains("x-weir-attempt");
  H2Origin& hedge = a_is_hedge ? at_a : at_b;
  H2Origin& late = a_is_hedge ? at_b : at_a;
  hedge.answer(hedge.requests.begin()->first, 204, true);
  step_until([&] { return asked.seen.complete; });
  EXPECT_EQ(losers(LoserEnd::kFinish), 1U);
  EXPECT_FALSE(late.requests.begin()->second.reset);
  late.answer(late.requests.begin()->first, 204, true);
  step_until([&] { return samples() == 1; });
  EXPECT_FALSE(late.requests.begin()->second.reset);
}

}  // namespace
}  // namespace weir::upstream
