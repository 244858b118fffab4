#include "policy/silence.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint silence_time(std::int64_t ms) {
  return TimePoint{} + seconds(1000) + milliseconds(ms);
}

TEST(Silence, TheThresholdIsThreeTailsWithinBounds) {
  EXPECT_EQ(silence_threshold(Duration::zero(), {}), milliseconds(100));
  EXPECT_EQ(silence_threshold(milliseconds(20), {}), milliseconds(100));
  EXPECT_EQ(silence_threshold(milliseconds(50), {}), milliseconds(150));
  EXPECT_EQ(silence_threshold(seconds(30), {}), seconds(2));
}

TEST(Silence, IsCountedFromTheLastByteOrTheOldestUnansweredAttempt) {
  EXPECT_EQ(silence_of({.last_heard = silence_time(0)}, silence_time(500)), Duration::zero());
  EXPECT_EQ(silence_of({.last_heard = silence_time(0), .oldest_unanswered = silence_time(200)},
                       silence_time(500)),
            milliseconds(300));
  EXPECT_EQ(silence_of({.last_heard = silence_time(400), .oldest_unanswered = silence_time(200)},
                       silence_time(500)),
            milliseconds(100));
  EXPECT_EQ(silence_of({.oldest_unanswered = silence_time(600)}, silence_time(500)),
            Duration::zero());
}

TEST(Silence, VerdictsFollowTheTable) {
  struct Row {
    const char* what;
    SilenceFacts facts;
    std::int64_t now_ms;
    SilenceVerdict verdict;
  };
  const SilenceFacts silent{.oldest_unanswered = silence_time(0), .others_heard = silence_time(90)};
  SilenceFacts late = silent;
  late.loop_late = true;
  SilenceFacts alone = silent;
  alone.others_heard = silence_time(0);
  SilenceFacts heard = silent;
  heard.last_heard = silence_time(80);
  SilenceFacts slow_class = silent;
  slow_class.cohort_p99 = milliseconds(60);
  SilenceFacts probed = silent;
  probed.cohort_p99 = milliseconds(400);
  probed.others_heard = silence_time(1900);
  probed.probe_sent = silence_time(1201);
  const Row rows[] = {
      {"at the threshold", silent, 100, SilenceVerdict::kHeard},
      {"above it", silent, 101, SilenceVerdict::kSuspect},
      {"three thresholds", silent, 300, SilenceVerdict::kSuspect},
      {"above three", silent, 301, SilenceVerdict::kHung},
      {"our loop was late", late, 1000, SilenceVerdict::kHeard},
      {"nobody else is heard", alone, 1000, SilenceVerdict::kHeard},
      {"a byte arrived", heard, 180, SilenceVerdict::kHeard},
      {"above it after a byte; others were heard since", heard, 181, SilenceVerdict::kSuspect},
      {"slow operations", slow_class, 180, SilenceVerdict::kHeard},
      {"slow operations, above", slow_class, 181, SilenceVerdict::kSuspect},
      {"probe waits", probed, 1701, SilenceVerdict::kSuspect},
      {"probe unanswered", probed, 1702, SilenceVerdict::kHung},
      {"nothing is sent",
       {.last_heard = silence_time(0), .others_heard = silence_time(9)},
       9000,
       SilenceVerdict::kHeard},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(judge_silence(row.facts, {}, silence_time(row.now_ms)), row.verdict) << row.what;
  }
}

TEST(Silence, NeverGetsLessSevereByWaiting) {
  Rng rng(5);
  for (int i = 0; i < 20'000; ++i) {
    SilenceFacts facts;
    facts.last_heard = silence_time(rng.between(0, 1000));
    if (rng.chance(0.8)) facts.oldest_unanswered = silence_time(rng.between(0, 1000));
    facts.others_heard = silence_time(rng.between(0, 1000));
    if (rng.chance(0.3)) facts.probe_sent = silence_time(rng.between(0, 1000));
    facts.cohort_p99 = milliseconds(rng.between(0, 1000));
    facts.loop_late = rng.chance(0.1);
    SilenceVerdict before = SilenceVerdict::kHeard;
    for (std::int64_t ms = 1000; ms < 8000; ms += 50) {
      const SilenceVerdict verdict = judge_silence(facts, {}, silence_time(ms));
      EXPECT_GE(verdict, before);
      before = verdict;
    }
  }
}

TEST(Silence, OnlyAProbeThatEndsASuspicionShowsASlowEndpoint) {
  EXPECT_TRUE(silence_drops_samples(SilenceVerdict::kSuspect, SilenceEnd::kResponse));
  EXPECT_TRUE(silence_drops_samples(SilenceVerdict::kHung, SilenceEnd::kResponse));
  EXPECT_TRUE(silence_drops_samples(SilenceVerdict::kHung, SilenceEnd::kProbe));
  EXPECT_FALSE(silence_drops_samples(SilenceVerdict::kSuspect, SilenceEnd::kProbe));
}

TEST(Silence, AClientThatWaitedLongHasMissedAnAnswer) {
  EXPECT_FALSE(missing_answer(milliseconds(150), milliseconds(50), {}));
  EXPECT_TRUE(missing_answer(milliseconds(151), milliseconds(50), {}));
  EXPECT_FALSE(missing_answer(milliseconds(100), milliseconds(1), {}));
  EXPECT_FALSE(missing_answer(seconds(60), Duration::zero(), {}));  // nothing to compare with
}

TEST(Silence, DropsSamplesOfAttemptsThatWereCaughtInIt) {
  EXPECT_FALSE(caught_in_silence(silence_time(10), TimePoint{}));
  EXPECT_TRUE(caught_in_silence(silence_time(10), silence_time(5000)));
  EXPECT_TRUE(caught_in_silence(silence_time(5000), silence_time(5000)));
  EXPECT_FALSE(caught_in_silence(silence_time(5001), silence_time(5000)));
}

}  // namespace
}  // namespace weir::inline v0::inline policy
