#include "policy/retry_backoff.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

TEST(RetryBackoff, AnotherEndpointIsTriedAtOnce) {
  Rng rng(1);
  const Rng before = rng;
  EXPECT_EQ(retry_wait({.retries = 5, .other_available = true}, {}, rng), Duration::zero());
  EXPECT_EQ(rng, before);
}

TEST(RetryBackoff, TheSameEndpointIsTriedLaterAndLater) {
  Rng rng(1);
  for (std::uint32_t retries = 0; retries < 6; ++retries) {
    const Duration low = milliseconds(50) * (1 << retries);
    const Duration high = milliseconds(200) * (1 << retries);
    bool lower_half = false;
    bool upper_half = false;
    for (int i = 0; i < 200; ++i) {
      const Duration wait = retry_wait({.retries = retries}, {}, rng).value();
      EXPECT_GE(wait, low);
      EXPECT_LE(wait, high);
      (wait < (low + high) / 2 ? lower_half : upper_half) = true;
    }
    EXPECT_TRUE(lower_half && upper_half);
  }
}

TEST(RetryBackoff, ManyRetriesDoNotOverflow) {
  Rng rng(1);
  const auto wait = retry_wait({.retries = 4'000'000'000U}, {}, rng);
  EXPECT_GT(wait.value(), milliseconds(50));
  EXPECT_LE(wait.value(), milliseconds(200) * 1024);
}

TEST(RetryBackoff, NotBeforeThePushbackAndNotPastTheDeadline) {
  Rng rng(3);
  for (int i = 0; i < 100'000; ++i) {
    RetryMoment moment;
    moment.retries = static_cast<std::uint32_t>(rng.below(4));
    moment.other_available = rng.chance(0.5);
    moment.pushback = milliseconds(rng.between(-5, 500));
    if (rng.chance(0.7)) moment.deadline_left = milliseconds(rng.between(-5, 800));
    const auto wait = retry_wait(moment, {}, rng);
    if (!wait) {
      ASSERT_TRUE(moment.deadline_left.has_value());
      continue;
    }
    EXPECT_GE(*wait, moment.pushback);
    EXPECT_GE(*wait, Duration::zero());
    if (moment.deadline_left) {
      EXPECT_LT(*wait, *moment.deadline_left);
    }
    if (!moment.other_available) {
      EXPECT_GE(*wait, milliseconds(50));
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
