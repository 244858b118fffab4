#include "policy/peak_ewma.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CohortLatency kCohort{.median = milliseconds(5), .p99 = milliseconds(17)};

constexpr TimePoint score_time(std::int64_t ms) {
  return TimePoint{} + seconds(1000) + milliseconds(ms);
}

double ms_of(double ns) {
  return ns / 1e6;
}

PeakEwma after(const PeakEwma& old, std::int64_t sample_ms, std::int64_t now_ms) {
  return with_sample(old, {.latency = milliseconds(sample_ms)}, kCohort, {}, score_time(now_ms));
}

double projected_ms(const PeakEwma& score, std::int64_t now_ms) {
  return ms_of(projected_ns(score, kCohort, {}, score_time(now_ms)));
}

TEST(PeakEwma, RisesAtOnceAndFallsSlowly) {
  PeakEwma score = after({}, 5, 0);
  EXPECT_DOUBLE_EQ(ms_of(score.ns), 5);
  score = after(score, 80, 100);
  EXPECT_DOUBLE_EQ(ms_of(score.ns), 80);
  score = after(score, 5, 5100);  // one time constant later
  EXPECT_NEAR(ms_of(score.ns), 5 + 75 * std::exp(-1), 0.1);
}

TEST(PeakEwma, ASampleCountsForTwentyMediansAtMost) {
  EXPECT_DOUBLE_EQ(ms_of(after({}, 5000, 0).ns), 100);
  const PeakEwma unknown = with_sample({}, {.latency = seconds(5)}, {}, {}, score_time(0));
  EXPECT_DOUBLE_EQ(ms_of(unknown.ns), 5000);  // no cohort, no clip
}

TEST(PeakEwma, FastErrorsAreNotFast) {
  const LatencySample error{.latency = std::chrono::microseconds(100), .error = true};
  EXPECT_DOUBLE_EQ(ms_of(with_sample({}, error, kCohort, {}, score_time(0)).ns), 17);
  PeakEwma score = after({}, 3, 0);
  score = with_sample(score, error, kCohort, {}, score_time(1));
  EXPECT_DOUBLE_EQ(ms_of(score.ns), 17);
}

TEST(PeakEwma, ACancelledAttemptCanOnlyRaiseIt) {
  const auto cancelled = [](const PeakEwma& old, std::int64_t ms) {
    const LatencySample sample{.latency = milliseconds(ms), .censored = true};
    return with_sample(old, sample, kCohort, {}, score_time(100));
  };
  const PeakEwma score = after({}, 30, 0);
  EXPECT_DOUBLE_EQ(cancelled(score, 29).ns, score.ns);  // decayed to 29.4
  EXPECT_EQ(cancelled(score, 29).updated_at, score.updated_at);
  EXPECT_DOUBLE_EQ(ms_of(cancelled(score, 80).ns), 80);
  EXPECT_DOUBLE_EQ(cancelled({}, 4).ns, 0);
  EXPECT_DOUBLE_EQ(ms_of(cancelled({}, 1000).ns), 100);
  // An endpoint that never answers in time keeps its score by its cancelled attempts alone.
  PeakEwma slow;
  for (std::int64_t ms = 0; ms < 60'000; ms += 500) {
    const LatencySample sample{.latency = seconds(1), .censored = true};
    slow = with_sample(slow, sample, kCohort, {}, score_time(ms));
    EXPECT_DOUBLE_EQ(projected_ms(slow, ms), 100);
  }
}

TEST(PeakEwma, AnEndpointWhoseAttemptsAreAllBeatenBecomesSlow) {
  // Hedges answer after 12 ms, so it is never seen to take longer. Others are 5 ms.
  const auto beaten_at = [](const PeakEwma& old, std::int64_t ms) {
    const LatencySample sample{.latency = milliseconds(12), .censored = true, .beaten = true};
    return with_sample(old, sample, kCohort, {}, score_time(ms));
  };
  PeakEwma score = after({}, 5, 0);
  std::int64_t now = 0;
  for (int i = 0; i < 100; ++i) score = beaten_at(score, now += 200);
  EXPECT_GT(projected_ms(score, now), 90);
  EXPECT_LE(projected_ms(score, now), 100);
  // A few that are beaten among many answers weigh as little as they are.
  score = after({}, 5, now);
  for (int i = 0; i < 10'000; ++i) {
    now += 1;
    score = i % 100 == 0 ? beaten_at(score, now) : after(score, 5, now);
  }
  EXPECT_LT(projected_ms(score, now), 12.1);
  // A client that left says nothing.
  const LatencySample left{.latency = milliseconds(12), .censored = true};
  const PeakEwma slow = after({}, 30, now);
  EXPECT_DOUBLE_EQ(with_sample(slow, left, kCohort, {}, score_time(now + 100)).ns, slow.ns);
  EXPECT_GT(beaten_at(slow, now + 100).ns, slow.ns);
}

TEST(PeakEwma, WithoutSamplesItCountsAsTheMedian) {
  EXPECT_DOUBLE_EQ(projected_ms({}, 0), 5);
  EXPECT_DOUBLE_EQ(ms_of(projected_ns({}, {}, {}, score_time(0))), 1);
}

TEST(PeakEwma, ReadingDoesNotChangeWhatIsLearnedNext) {
  const PeakEwma score = after({}, 100, 0);
  EXPECT_NEAR(projected_ms(score, 5000), 100 * std::exp(-1), 0.5);
  for (int i = 0; i < 1000; ++i) (void)projected_ms(score, i);
  EXPECT_DOUBLE_EQ(after(score, 5, 1000).ns, after(after({}, 100, 0), 5, 1000).ns);
}

TEST(PeakEwma, AnUnusedEndpointIsTriedAgainButNotFlooded) {
  const PeakEwma slow = after({}, 100, 0);
  EXPECT_GT(projected_ms(slow, 10'000), 5);
  EXPECT_LT(projected_ms(slow, 20'000), 5);
  EXPECT_DOUBLE_EQ(projected_ms(slow, 3'600'000), 2.5);
  const PeakEwma fast = after({}, 1, 0);
  EXPECT_DOUBLE_EQ(projected_ms(fast, 3'600'000), 1);
}

TEST(PeakEwma, ReturnsWithTwoMedians) {
  EXPECT_DOUBLE_EQ(ms_of(score_on_return(kCohort, {}, score_time(0)).ns), 10);
  // Without a cohort it has no sample, and counts as unknown.
  EXPECT_DOUBLE_EQ(
      ms_of(projected_ns(score_on_return({}, {}, score_time(0)), {}, {}, score_time(0))), 1);
}

TEST(PeakEwma, TimeThatRunsBackwardsCountsAsNone) {
  const PeakEwma score = after({}, 50, 1000);
  const PeakEwma next = after(score, 5, 0);
  EXPECT_DOUBLE_EQ(ms_of(next.ns), 50);
  EXPECT_EQ(next.updated_at, score_time(1000));
}

TEST(PeakEwma, StaysWithinItsBoundsForAnySamples) {
  Rng rng(11);
  for (int run = 0; run < 200; ++run) {
    PeakEwma score;
    std::int64_t now_ms = 0;
    for (int i = 0; i < 500; ++i) {
      now_ms += rng.between(-5, 2000);
      const LatencySample sample{.latency = milliseconds(rng.between(0, 500)),
                                 .error = rng.chance(0.1)};
      const PeakEwma next = with_sample(score, sample, kCohort, {}, score_time(now_ms));
      EXPECT_GT(next.ns, 0);
      EXPECT_LE(next.ns, std::max(score.ns, 100e6));
      const auto clipped = std::min(static_cast<double>(sample.latency.count()), 100e6);
      EXPECT_GE(next.ns, clipped * (1 - 1e-12));
      score = next;
      EXPECT_GE(projected_ns(score, kCohort, {}, score_time(now_ms + 100)),
                projected_ns(score, kCohort, {}, score_time(now_ms + 200)));
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
