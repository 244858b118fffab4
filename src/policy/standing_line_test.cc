#include "policy/standing_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTier = milliseconds(50);
constexpr TimePoint kLineBegin = time_from_ns(1'000'000'000);

constexpr TimePoint at_ms(std::int64_t ms) {
  return kLineBegin + milliseconds(ms);
}

/// Somebody waits all the time and somebody is refused every `step`, until `to`.
void overload(StandingLine& line, TimePoint from, TimePoint to, Duration step = milliseconds(20)) {
  line.set_occupied(true, from);
  for (TimePoint now = from; now < to; now += step) line.note_refused(now, now);
}

StandingLine standing_line() {
  StandingLine line;
  overload(line, kLineBegin, at_ms(2400));
  return line;
}

TEST(StandingLine, AFreshLineHasTheTiersPatience) {
  StandingLine line;
  EXPECT_EQ(line.patience(kTier, kLineBegin), kTier);
  EXPECT_FALSE(line.standing(kLineBegin));
  EXPECT_EQ(line.served_within(kLineBegin), Duration::max());
}

TEST(StandingLine, StandsWhenNineTenthsOfTheFadingSecondWereOverloaded) {
  StandingLine line;
  overload(line, kLineBegin, at_ms(2280));  // 1 - e^-2.28 = 0.898
  EXPECT_EQ(line.patience(kTier, at_ms(2280)), kTier);
  overload(line, at_ms(2280), at_ms(2340));
  EXPECT_TRUE(line.standing(at_ms(2340)));
  EXPECT_EQ(line.patience(kTier, at_ms(2340)), milliseconds(10));
  EXPECT_EQ(line.patience(milliseconds(4), at_ms(2340)), milliseconds(4)) << "never more";
  EXPECT_EQ(line.served_within(at_ms(2340)), milliseconds(10));
}

struct Pattern {
  const char* what;
  Duration occupied, empty, refused_every;  // refused_every zero: nobody is refused
  bool stands;
};
class StandingLinePatterns : public ::testing::TestWithParam<Pattern> {};

TEST_P(StandingLinePatterns, StandOnlyIfSomebodyWaitsAndSomebodyIsRefused) {
  const Pattern& p = GetParam();
  StandingLine line;
  bool stood = false;
  TimePoint refuse_at = kLineBegin;
  for (TimePoint now = kLineBegin; now < kLineBegin + seconds(20);) {
    const TimePoint leaves = now + p.occupied;
    line.set_occupied(true, now);
    for (; now < leaves; now += milliseconds(1)) {
      if (p.refused_every > Duration(0) && now >= refuse_at) {
        line.note_refused(now, now);
        refuse_at = now + p.refused_every;
      }
      stood = stood || line.standing(now);
    }
    line.set_occupied(false, now);
    now += p.empty;
  }
  EXPECT_EQ(stood, p.stands) << p.what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, StandingLinePatterns,
    ::testing::Values(
        Pattern{"all the time", seconds(1), Duration(0), milliseconds(5), true},
        Pattern{"a cluster of completions empties it", milliseconds(95), milliseconds(5),
                milliseconds(5), true},
        Pattern{"clients that wait and are all served", seconds(1), Duration(0), Duration(0),
                false},
        Pattern{"a refusal now and then", seconds(1), Duration(0), milliseconds(500), false},
        Pattern{"spikes of half a second", milliseconds(500), milliseconds(1500), milliseconds(5),
                false},
        Pattern{"half of the time", milliseconds(100), milliseconds(100), milliseconds(5), false}));

TEST(StandingLine, StopsWhenItFallsBelowAHalf) {
  StandingLine line = standing_line();
  line.set_occupied(false, at_ms(2400));
  EXPECT_TRUE(line.standing(at_ms(2900)));   // 0.91 × e^-0.5 = 0.55
  EXPECT_FALSE(line.standing(at_ms(3050)));  // 0.91 × e^-0.65 = 0.475
  EXPECT_EQ(line.patience(kTier, at_ms(3050)), kTier);
}

TEST(StandingLine, APauseWithoutEventsIsCountedUntilTheRefusalIsOld) {
  StandingLine line;
  line.set_occupied(true, kLineBegin);
  line.note_refused(kLineBegin, kLineBegin);
  line.note_refused(at_ms(1000), at_ms(1000));  // only the first 100 ms of that second count
  const double expected = (1 - std::exp(-0.1)) * std::exp(-0.9);
  EXPECT_NEAR(line.share(), expected, 0.01);
}

// ---- the way out

TEST(StandingLine, TriesTheFullPatienceAfterOneTwoFourUpToThirtyTwoSeconds) {
  StandingLine line = standing_line();
  TimePoint now = at_ms(2400);
  std::vector<std::int64_t> pauses;
  TimePoint failed = at_ms(2320);  // when it began to stand
  while (pauses.size() < 8) {
    if (line.patience(kTier, now) == kTier) {
      pauses.push_back((now - failed + milliseconds(500)) / seconds(1));
      now += milliseconds(30);
      line.note_refused(now, now);
      EXPECT_EQ(line.patience(kTier, now), milliseconds(10)) << "the first refusal ends the trial";
      failed = now;
    }
    now += milliseconds(20);
    line.note_refused(now, now);
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 32, 32}));
}

TEST(StandingLine, IsOverWhenNobodyIsRefusedOnTrial) {
  StandingLine line = standing_line();
  overload(line, at_ms(2400), at_ms(3500));
  ASSERT_EQ(line.patience(kTier, at_ms(3500)), kTier);
  EXPECT_TRUE(line.standing(at_ms(3500))) << "on trial";
  EXPECT_TRUE(line.standing(at_ms(3649)));
  EXPECT_FALSE(line.standing(at_ms(3650)));
  EXPECT_EQ(line.patience(kTier, at_ms(3650)), kTier);
  overload(line, at_ms(3650), at_ms(5800));
  EXPECT_FALSE(line.standing(at_ms(5800))) << "and what was before is forgotten";
}

TEST(StandingLine, WhoCameBeforeTheTrialIsNoEvidence) {
  StandingLine line = standing_line();
  overload(line, at_ms(2400), at_ms(3500));
  ASSERT_EQ(line.patience(kTier, at_ms(3500)), kTier);
  line.note_refused(at_ms(3495), at_ms(3505));  // it had 10 ms
  EXPECT_EQ(line.patience(kTier, at_ms(3505)), kTier);
  EXPECT_FALSE(line.standing(at_ms(3650)));
}

TEST(StandingLine, ATrialLastsLongEnoughForALongTier) {
  StandingLine line = standing_line();
  overload(line, at_ms(2400), at_ms(3500));
  ASSERT_EQ(line.patience(seconds(1), at_ms(3500)), seconds(1));
  EXPECT_EQ(line.patience(seconds(1), at_ms(4499)), seconds(1));
  line.note_refused(at_ms(3500), at_ms(4500));  // the first one's second is over
  EXPECT_EQ(line.patience(seconds(1), at_ms(4500)), milliseconds(10));
}

// ---- properties

TEST(StandingLine, UnknownAndEarlierTimesChangeNothing) {
  StandingLine line = standing_line();
  const double share = line.share();
  EXPECT_TRUE(line.standing(TimePoint{}));
  EXPECT_TRUE(line.standing(kLineBegin));
  line.set_occupied(false, TimePoint{});
  line.set_occupied(true, at_ms(10));
  line.note_refused(kLineBegin, at_ms(20));
  EXPECT_EQ(line.share(), share);
}

TEST(StandingLine, TheShareIsAShareAndThePatienceNeverAboveTheTier) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    StandingLine line;
    TimePoint now = kLineBegin;
    for (int i = 0; i < 2000; ++i) {
      now += rng.between(Duration(0), Duration(milliseconds(60)));
      const Duration tier = rng.between(Duration(0), Duration(milliseconds(200)));
      switch (rng.below(3)) {
        case 0:
          line.set_occupied(rng.below(4) != 0, now);
          break;
        case 1:
          line.note_refused(now - rng.between(Duration(0), Duration(milliseconds(50))), now);
          break;
        default: {
          const Duration patience = line.patience(tier, now);
          ASSERT_LE(patience, tier);
          ASSERT_GE(patience, std::min(tier, StandingLine::kShortPatience));
        }
      }
      ASSERT_GE(line.share(), 0);
      ASSERT_LE(line.share(), 1);
    }
  }
}

TEST(StandingLine, HowOftenItIsAskedDoesNotMatter) {
  StandingLine asked;
  StandingLine left_alone;
  for (std::int64_t ms = 0; ms < 2000; ms += 50) {
    for (StandingLine* line : {&asked, &left_alone}) {
      line->set_occupied(ms % 250 != 0, at_ms(ms));
      line->note_refused(at_ms(ms), at_ms(ms));
    }
    for (std::int64_t more = 1; more < 50; ++more) {
      static_cast<void>(asked.standing(at_ms(ms + more)));
    }
  }
  static_cast<void>(asked.standing(at_ms(2000)));
  static_cast<void>(left_alone.standing(at_ms(2000)));
  EXPECT_NEAR(asked.share(), left_alone.share(), 1e-6);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
