#include "policy/shared_baseline.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kBegin = time_from_ns(1'000'000'000);

ServiceBaseline of_ms(int avg, TimePoint at) {
  return {milliseconds(avg) / 2, milliseconds(avg), milliseconds(avg) * 2, milliseconds(avg), at};
}

BaselineReport report_of(int avg_ms, TimePoint at) {
  return {.measured = of_ms(avg_ms, at)};
}

/// Every gateway reports one of these, measured at `at`.
void report_all(SharedBaseline& shared, const std::vector<int>& avg_ms, TimePoint at) {
  for (std::uint32_t i = 0; i < avg_ms.size(); ++i) shared.report(i, report_of(avg_ms[i], at), at);
}

int shared_ms(SharedBaseline& shared, TimePoint now) {
  const BaselineNews news = shared.news(now);
  return news.shared ? static_cast<int>(news.shared->avg / milliseconds(1)) : 0;
}

TEST(SharedBaseline, IsTheMedianOfWhatTheGatewaysMeasured) {
  struct Case {
    std::vector<int> reports;
    int expected;
  };
  for (const Case& c : {Case{{}, 0}, Case{{10}, 10}, Case{{12, 10}, 10}, Case{{10, 2, 11}, 10},
                        Case{{10, 90, 11}, 11}, Case{{10, 11, 1, 12}, 10}}) {
    SharedBaseline shared(4, kBegin);
    report_all(shared, c.reports, kBegin);
    EXPECT_EQ(shared_ms(shared, kBegin), c.expected);
  }
}

TEST(SharedBaseline, ExpiresTwoMinutesAfterItWasMeasured) {
  SharedBaseline shared(2, kBegin);
  report_all(shared, {10, 10}, kBegin);
  EXPECT_EQ(shared_ms(shared, kBegin + seconds(120)), 10);
  EXPECT_EQ(shared_ms(shared, kBegin + seconds(121)), 0);
}

TEST(SharedBaseline, AProbeThatHalfHaveMeasuredReplacesWhatCameBefore) {
  SharedBaseline shared(4, kBegin);
  report_all(shared, {10, 10, 10, 10}, kBegin);
  const TimePoint after = shared.news(kBegin).probe_at + seconds(1);
  shared.report(0, report_of(20, after), after);
  EXPECT_EQ(shared_ms(shared, after), 10) << "one of four";
  shared.report(1, report_of(21, after), after);
  EXPECT_EQ(shared_ms(shared, after), 20) << "the old ones do not count any more";
}

TEST(SharedBaseline, AGatewayThatIsWrongForEverDoesNotCount) {
  SharedBaseline shared(3, kBegin);
  TimePoint now = kBegin;
  for (int i = 0; i < 10; ++i) {
    report_all(shared, {10, 2, 11}, now);
    EXPECT_EQ(shared_ms(shared, now), 10);
    now = shared.news(now).probe_at + seconds(1);
  }
}

TEST(SharedBaseline, AGatewayThatIsGoneIsForgotten) {
  SharedBaseline shared(2, kBegin);
  BaselineReport last = report_of(10, kBegin);
  last.full = true;
  shared.report(0, last, kBegin);
  EXPECT_EQ(shared.news(kBegin + seconds(5)).full, 1U);
  EXPECT_EQ(shared.news(kBegin + seconds(6)).full, 0U);
  EXPECT_EQ(shared_ms(shared, kBegin + seconds(121)), 0);
}

TEST(SharedBaseline, TheMeanIsOfTheLimitsThatAreFull) {
  SharedBaseline shared(3, kBegin);
  shared.report(0, {.full = true, .limit = 10}, kBegin);
  shared.report(1, {.full = true, .limit = 30}, kBegin);
  shared.report(2, {.full = false, .limit = 128}, kBegin);
  const BaselineNews news = shared.news(kBegin);
  EXPECT_EQ(news.full, 2U);
  EXPECT_DOUBLE_EQ(news.limit_mean, 20);
}

TEST(SharedBaseline, AllHearOfTheSameInstant) {
  SharedBaseline shared(3, kBegin);
  const TimePoint at = shared.news(kBegin).probe_at;
  EXPECT_EQ(at, kBegin + SharedBaseline::kProbeEvery);
  EXPECT_EQ(shared.news(at - Duration(1)).probe_at, at);
  EXPECT_EQ(shared.news(at).probe_at, at + SharedBaseline::kProbeEvery);
}

TEST(SharedBaseline, AWantedProbeComesSoonButNotEverySecond) {
  SharedBaseline shared(2, kBegin);
  TimePoint now = kBegin + seconds(10);
  std::vector<Duration> pauses;
  TimePoint last{};
  for (int i = 0; i < 5; ++i) {
    shared.report(0, {.wants_probe = true}, now);
    const TimePoint at = shared.news(now).probe_at;
    EXPECT_GE(at, now + SharedBaseline::kNotice) << "the others must hear of it";
    if (last != TimePoint{}) pauses.push_back(at - last);
    last = now = at;
  }
  const std::vector<Duration> expected = {seconds(4), seconds(8), seconds(8), seconds(8)};
  EXPECT_EQ(pauses, expected);
}

TEST(SharedBaseline, AProbeIsWantedIfHalfOfThoseThatAreFullWantIt) {
  SharedBaseline shared(6, kBegin);
  const TimePoint regular = shared.news(kBegin).probe_at;
  for (std::uint32_t i = 0; i < 4; ++i) shared.report(i, {.full = true}, kBegin);
  shared.report(0, {.full = true, .wants_probe = true}, kBegin);
  EXPECT_EQ(shared.news(kBegin).probe_at, regular) << "one of four";
  shared.report(1, {.full = true, .wants_probe = true}, kBegin);
  EXPECT_LT(shared.news(kBegin).probe_at, regular);
}

TEST(SharedBaseline, AProbeThatNobodyWantedMakesThePauseShortAgain) {
  SharedBaseline shared(2, kBegin);
  TimePoint now = kBegin;
  for (int i = 0; i < 5; ++i) {
    shared.report(0, {.wants_probe = true}, now);
    now = shared.news(now).probe_at;
  }
  now = shared.news(now).probe_at;  // 45 s later
  shared.report(0, {.wants_probe = true}, now);
  EXPECT_EQ(shared.news(now).probe_at, now + SharedBaseline::kPauseFirst);
}

TEST(SharedBaseline, ASlowServiceIsProbedLessOften) {
  SharedBaseline shared(1, kBegin);
  shared.report(0, report_of(1000, kBegin), kBegin);
  const TimePoint first = shared.news(kBegin).probe_at;
  EXPECT_EQ(shared.news(first).probe_at - first, seconds(150));
  shared.report(0, {.measured = of_ms(1000, first), .wants_probe = true}, first);
  EXPECT_EQ(shared.news(first).probe_at - first, seconds(20));
}

}  // namespace
}  // namespace weir::inline v0::inline policy
