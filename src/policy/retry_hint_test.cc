#include "weir/policy/retry_hint.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "odd_numbers_testing.h"

namespace weir::inline v0::inline policy {
namespace {

using namespace std::chrono_literals;

DrainState drain(double per_second, std::uint32_t ahead) {
  return {.drained_per_second = per_second, .ahead = ahead, .fresh = true};
}

TEST(ExpectedWait, IsWhatIsAheadOverTheRate) {
  EXPECT_EQ(expected_wait(drain(100, 10)), 100ms);
  EXPECT_EQ(expected_wait(drain(0.5, 3)), 6s);
  EXPECT_EQ(expected_wait(drain(1000, 0)), 0ns);
  EXPECT_EQ(expected_wait(drain(kInfinity, 5)), 0ns);
}

TEST(ExpectedWait, SaysNothingWithoutAFreshRate) {
  EXPECT_EQ(expected_wait({.drained_per_second = 100, .ahead = 1, .fresh = false}), std::nullopt);
  EXPECT_EQ(expected_wait(drain(0, 1)), std::nullopt);
  EXPECT_EQ(expected_wait(drain(-5, 1)), std::nullopt);
  EXPECT_EQ(expected_wait(drain(kNaN, 1)), std::nullopt);
}

TEST(ExpectedWait, SaturatesAtAnHour) {
  EXPECT_EQ(expected_wait(drain(1e-300, 4'000'000'000U)), 1h);
  EXPECT_EQ(expected_wait(drain(1, 3600)), 1h);
  EXPECT_LT(*expected_wait(drain(1, 3599)), 1h);
}

TEST(RetryHint, IsTheWaitStretchedByJitter) {
  Rng rng(101);
  Duration least = 1h;
  Duration most{};
  for (int i = 0; i < 10'000; ++i) {
    const Duration hint = retry_hint(drain(100, 100), {}, rng);  // one second
    ASSERT_GE(hint, 1s);
    ASSERT_LE(hint, 1500ms);
    least = std::min(least, hint);
    most = std::max(most, hint);
  }
  EXPECT_LT(least, 1010ms);
  EXPECT_GT(most, 1490ms);
}

TEST(RetryHint, IsNotShorterThanAQueueAdvises) {
  Rng rng(104);
  for (int i = 0; i < 1000; ++i) {
    const Duration hint = retry_hint({.advised = 500ms}, {}, rng);
    ASSERT_GE(hint, 500ms);
    ASSERT_LE(hint, 750ms);
    DrainState slow = drain(100, 100);  // one second
    slow.advised = 500ms;
    ASSERT_GE(retry_hint(slow, {}, rng), 1s);
    ASSERT_LE(retry_hint({.advised = 1h}, {}, rng), RetryHintRules{}.hint_max);
  }
}

TEST(RetryHint, UnknownRateGivesAHundredMilliseconds) {
  Rng rng(102);
  for (int i = 0; i < 1000; ++i) {
    const Duration hint = retry_hint({}, {}, rng);
    ASSERT_GE(hint, 100ms);
    ASSERT_LE(hint, 150ms);
  }
  EXPECT_EQ(retry_hint({}, {.jitter = 0}, rng), 100ms);
}

TEST(RetryHint, IsNeverBelowFiftyMilliseconds) {
  Rng rng(103);
  for (int i = 0; i < 1000; ++i) {
    const Duration hint = retry_hint(drain(1e9, 1), {}, rng);
    ASSERT_GE(hint, 50ms);
    ASSERT_LE(hint, 75ms);
  }
}

TEST(RetryHint, IsSpreadEvenAtItsBounds) {
  Rng rng(104);
  std::set<std::int64_t> low;
  std::set<std::int64_t> high;
  for (int i = 0; i < 1000; ++i) {
    low.insert(retry_after_millis(retry_hint(drain(1e9, 1), {}, rng)));
    high.insert(retry_after_millis(retry_hint(drain(0.001, 1000), {}, rng)));
  }
  EXPECT_GT(low.size(), 20U);
  EXPECT_GT(high.size(), 500U);
  EXPECT_LE(*high.rbegin(), 5'000);
  EXPECT_GE(*high.begin(), 3'333);
}

TEST(RetryHint, StaysInBoundsForEveryInput) {
  Rng rng(105);
  for (int i = 0; i < 100'000; ++i) {
    RetryHintRules rules;
    rules.hint_min = rng.between(Duration(50ms), Duration(1h));
    rules.hint_unknown = rng.between(rules.hint_min, Duration(1h));
    rules.hint_max = rng.between(2 * rules.hint_unknown, Duration(2h));
    rules.jitter = rng.unit();
    ASSERT_TRUE(rules.validate().empty());
    const double rates[] = {rng.unit(), 1e6 * rng.unit(), 0.0, -1.0, kNaN, kInfinity, 1e-320};
    const DrainState state{.drained_per_second = rates[rng.below(7)],
                           .ahead = static_cast<std::uint32_t>(rng.next_u64()),
                           .fresh = rng.chance(0.8)};
    const Duration hint = retry_hint(state, rules, rng);
    ASSERT_GE(hint, rules.hint_min);
    ASSERT_LE(hint, rules.hint_max);
  }
}

TEST(RetryHint, EqualStreamsGiveEqualHints) {
  Rng a(106);
  Rng b(106);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(retry_hint(drain(10, 7), {}, a), retry_hint(drain(10, 7), {}, b));
  }
  EXPECT_EQ(a, b);
}

TEST(RetryAfter, RoundsUpToWholeSeconds) {
  EXPECT_EQ(retry_after_seconds(0ns), 1);
  EXPECT_EQ(retry_after_seconds(-5s), 1);
  EXPECT_EQ(retry_after_seconds(50ms), 1);
  EXPECT_EQ(retry_after_seconds(1s), 1);
  EXPECT_EQ(retry_after_seconds(1s + 1ns), 2);
  EXPECT_EQ(retry_after_seconds(30s), 30);
  EXPECT_EQ(retry_after_seconds(Duration::max()), 9'223'372'037);
}

TEST(RetryAfter, RoundsUpToWholeMilliseconds) {
  EXPECT_EQ(retry_after_millis(0ns), 0);
  EXPECT_EQ(retry_after_millis(-1s), 0);
  EXPECT_EQ(retry_after_millis(50ms), 50);
  EXPECT_EQ(retry_after_millis(50ms + 1ns), 51);
}

TEST(RetryHintRules, ValidateHoldsEachBound) {
  EXPECT_TRUE(RetryHintRules{}.validate().empty());
  const auto keys = [](RetryHintRules rules) {
    std::vector<std::string> out;
    for (const ConfigError& error : rules.validate()) out.push_back(error.key);
    return out;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys({.hint_min = 49ms}), Keys{"hint_min_ms"});
  EXPECT_EQ(keys({.hint_unknown = 49ms}), Keys{"hint_unknown_ms"});
  EXPECT_EQ(keys({.hint_unknown = 2h, .hint_max = 2h}), Keys{"hint_unknown_ms"});
  EXPECT_EQ(keys({.hint_max = 199ms}), Keys{"hint_max_ms"});
  EXPECT_EQ(keys({.hint_max = 200ms}), Keys{});
  EXPECT_EQ(keys({.hint_max = Duration::max()}), Keys{"hint_max_ms"});
  EXPECT_EQ(keys({.hint_max = Duration::min()}), Keys{"hint_max_ms"});
  EXPECT_EQ(keys({.hint_min = Duration::max()}).front(), "hint_min_ms");
  for (const double bad : {-0.1, 1.1, kNaN}) EXPECT_EQ(keys({.jitter = bad}), Keys{"jitter"});
}

}  // namespace
}  // namespace weir::inline v0::inline policy
