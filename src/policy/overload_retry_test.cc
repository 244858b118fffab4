#include "policy/overload_retry.h"

#include <array>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using Reason = OverloadRetryReason;
using std::chrono::milliseconds;

OverloadedRequest read_once() {
  return {.idempotent = true};
}

TEST(OverloadRetry, WaitsFrom50To200MsTimesTwoToTheNumberOfRetries) {
  Rng rng(1);
  for (std::uint32_t retries = 0; retries < 2; ++retries) {
    OverloadedRequest request = read_once();
    request.attempts = retries + 1;
    request.retries = retries;
    Duration shortest = std::chrono::hours(1);
    Duration longest{};
    for (int i = 0; i < 2000; ++i) {
      const OverloadRetry retry = retry_overloaded(request, {}, rng);
      ASSERT_TRUE(retry.again());
      shortest = std::min(shortest, retry.wait);
      longest = std::max(longest, retry.wait);
    }
    EXPECT_GE(shortest, milliseconds(50) * (1 << retries));
    EXPECT_LT(shortest, milliseconds(55) * (1 << retries));
    EXPECT_LE(longest, milliseconds(200) * (1 << retries));
    EXPECT_GT(longest, milliseconds(195) * (1 << retries));
  }
}

TEST(OverloadRetry, EachObjectionHasItsReason) {
  struct Case {
    OverloadedRequest request;
    Reason reason;
  };
  const Pushback stop{.stop = true};
  const Pushback second{.wait = milliseconds(1000)};
  const std::array cases = {
      Case{{.idempotent = true, .attempts = 2, .retries = 1}, Reason::kAgain},
      Case{{.idempotent = true, .attempts = 3, .retries = 2}, Reason::kAttemptsUsed},
      Case{{.idempotent = true, .attempts = 3, .retries = 0}, Reason::kAttemptsUsed},
      Case{{.idempotent = false}, Reason::kNotIdempotent},
      Case{{.idempotent = false, .processed = false}, Reason::kAgain},
      Case{{.idempotent = true, .pushback = stop}, Reason::kPushback},
      Case{{.idempotent = true, .pushback = second, .deadline_left = milliseconds(1001)},
           Reason::kAgain},
      Case{{.idempotent = true, .pushback = second, .deadline_left = milliseconds(1000)},
           Reason::kDeadline},
      Case{{.idempotent = true, .deadline_left = milliseconds(50)}, Reason::kDeadline},
  };
  Rng rng(7);
  for (const Case& one : cases) {
    EXPECT_EQ(retry_overloaded(one.request, {}, rng).reason, one.reason) << name_of(one.reason);
  }
}

TEST(OverloadRetry, TheHintOfTheServiceIsObeyed) {
  Rng rng(3);
  for (int i = 0; i < 100'000; ++i) {
    OverloadedRequest request = read_once();
    request.retries = static_cast<std::uint32_t>(rng.below(3));
    request.attempts = request.retries + 1;
    request.pushback = Pushback{.wait = milliseconds(rng.between(-5, 3000))};
    if (rng.chance(0.5)) request.deadline_left = milliseconds(rng.between(-5, 4000));
    const OverloadRetry retry = retry_overloaded(request, {}, rng);
    if (!retry.again()) continue;
    EXPECT_LT(request.attempts, 3U);
    EXPECT_GE(retry.wait, request.pushback->wait);
    EXPECT_GE(retry.wait, milliseconds(50));
    if (request.deadline_left) {
      EXPECT_LT(retry.wait, *request.deadline_left);
    }
  }
}

TEST(OverloadedAnswers, HalfOfTheAnswersOfTheLastSecondDecide) {
  OverloadedAnswers answers;
  EXPECT_FALSE(answers.overloaded());
  answers.add({.good = 1, .overloaded = 10});
  EXPECT_TRUE(answers.overloaded());
  answers.add({.good = 20, .overloaded = 0});
  EXPECT_FALSE(answers.overloaded()) << "most are good now";
}

TEST(OverloadedAnswers, SilenceIsForgotten) {
  OverloadedAnswers answers;
  answers.add({.good = 0, .overloaded = 1});
  EXPECT_TRUE(answers.overloaded());
  for (int i = 0; i < 10; ++i) answers.add({});
  EXPECT_FALSE(answers.overloaded());
}

}  // namespace
}  // namespace weir::inline v0::inline policy
