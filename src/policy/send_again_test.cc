#include "policy/send_again.h"

#include <set>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ResendFacts kGet{.idempotent = true, .body_kept = true};
constexpr ResendFacts kPost{.idempotent = false, .body_kept = true};

constexpr FailedAttempt failed(AttemptFailure failure, Processed processed = Processed::kMaybe) {
  return {.failure = failure, .processed = processed, .written = true};
}

constexpr FailedAttempt kNotConnected{.failure = AttemptFailure::kConnectFailed,
                                      .processed = Processed::kNo};
constexpr FailedAttempt kLost = failed(AttemptFailure::kConnectionLost);
constexpr FailedAttempt kLostReused{.failure = AttemptFailure::kConnectionLost,
                                    .processed = Processed::kMaybe,
                                    .written = true,
                                    .reused = true};
constexpr FailedAttempt kRefused = failed(AttemptFailure::kRefusedStream, Processed::kNo);

FailedAttempt with_pushback(Pushback pushback) {
  FailedAttempt status = failed(AttemptFailure::kStatus);
  status.pushback = pushback;
  return status;
}

constexpr ResendFacts kUpgrade{.idempotent = true, .body_kept = true, .upgrade = true};
constexpr ResendFacts kAnswered{.idempotent = true, .body_kept = true, .answered = true};
constexpr ResendFacts kBodyGone{.idempotent = true, .body_kept = false};

using F = AttemptFailure;
using Because = SendAgainReason;

struct ResendRow {
  const char* what;
  FailedAttempt failed;
  ResendFacts request;
  CallProgress call;
  SendAgainReason reason;
};

SendAgain verdict_for(SendAgainReason reason) {
  if (reason == Because::kIdempotent) return SendAgain::kFromBudget;
  return reason < Because::kIdempotent ? SendAgain::kTransparent : SendAgain::kNo;
}

void expect_rows(std::span<const ResendRow> rows) {
  for (const ResendRow& row : rows) {
    const SendAgainDecision decision = may_send_again(row.failed, row.request, row.call, {});
    EXPECT_EQ(name_of(decision.reason), name_of(row.reason)) << row.what;
    EXPECT_EQ(decision.verdict, verdict_for(row.reason)) << row.what;
  }
}

TEST(SendAgain, WhatWasNotProcessedIsSentAgainTransparently) {
  constexpr FailedAttempt kGoaway = failed(F::kConnectionLost, Processed::kNo);
  const ResendRow rows[] = {
      {"POST, no connection", kNotConnected, kPost, {}, Because::kNotSent},
      {"upgrade, no connection", kNotConnected, kUpgrade, {}, Because::kNotSent},
      {"second attempt", kNotConnected, kGet, {.attempts = 2}, Because::kNotSent},
      {"caller retries", kNotConnected, kGet, {.caller_attempt = 2}, Because::kNotSent},
      {"little time", kNotConnected, kGet, {.deadline_left = Duration(1)}, Because::kNotSent},
      {"POST, refused", kRefused, kPost, {.refused_streams = 1}, Because::kNotProcessed},
      {"GET, refused twice", kRefused, kGet, {.refused_streams = 2}, Because::kRefusedAgain},
      {"POST, GOAWAY below its id", kGoaway, kPost, {}, Because::kNotProcessed},
      {"POST, GOAWAY with its id", kLost, kPost, {}, Because::kNotIdempotent},
      {"GET, GOAWAY with its id", kLost, kGet, {}, Because::kIdempotent},
  };
  expect_rows(rows);
}

TEST(SendAgain, WhatMayHaveBeenProcessedMustBeIdempotent) {
  constexpr FailedAttempt kGarbage = failed(F::kBadResponse, Processed::kYes);
  const ResendRow rows[] = {
      {"GET, stale", kLostReused, kGet, {.stale_connections = 1}, Because::kStaleConnection},
      {"GET, stale again", kLostReused, kGet, {.stale_connections = 2}, Because::kIdempotent},
      {"POST, stale", kLostReused, kPost, {.stale_connections = 1}, Because::kNotIdempotent},
      {"GET, timeout", failed(F::kTimeout), kGet, {}, Because::kIdempotent},
      {"POST, timeout", failed(F::kTimeout), kPost, {}, Because::kNotIdempotent},
      {"GET, silent", failed(F::kSilent), kGet, {}, Because::kIdempotent},
      {"GET, reset", failed(F::kStreamReset), kGet, {}, Because::kIdempotent},
      {"GET, garbage", kGarbage, kGet, {}, Because::kIdempotent},
      {"GET, 503", failed(F::kStatus, Processed::kYes), kGet, {}, Because::kIdempotent},
      {"upgrade, lost", kLost, kUpgrade, {}, Because::kUpgrade},
      {"caller", failed(F::kTimeout), kGet, {.caller_attempt = 2}, Because::kCallerRetries},
  };
  expect_rows(rows);
}

TEST(SendAgain, SomeFailuresForbidEveryFurtherAttempt) {
  constexpr FailedAttempt kCalm = failed(F::kEnhanceYourCalm, Processed::kNo);
  constexpr FailedAttempt kHttp11 = failed(F::kHttp11Required, Processed::kNo);
  const FailedAttempt stop = with_pushback({.stop = true});
  const FailedAttempt soon = with_pushback({.wait = milliseconds(300)});
  const FailedAttempt late = with_pushback({.wait = seconds(2)});
  const CallProgress no_time{.deadline_left = Duration::zero()};
  const CallProgress some_time{.deadline_left = milliseconds(300)};
  const ResendRow rows[] = {
      {"GET, calm", kCalm, kGet, {}, Because::kCalmDown},
      {"GET, HTTP/1.1 required", kHttp11, kGet, {}, Because::kHttp11Required},
      {"answer started", kNotConnected, kAnswered, {}, Because::kAnswerStarted},
      {"body gone", kNotConnected, kBodyGone, {}, Because::kBodyGone},
      {"third attempt", kNotConnected, kGet, {.attempts = 3}, Because::kAttemptsUsed},
      {"no time", kNotConnected, kGet, no_time, Because::kDeadline},
      {"pushback: stop", stop, kGet, {}, Because::kPushback},
      {"pushback: soon", soon, kGet, {}, Because::kIdempotent},
      {"pushback: late", late, kGet, {}, Because::kPushback},
      {"pushback: past the deadline", soon, kGet, some_time, Because::kDeadline},
  };
  expect_rows(rows);
}

TEST(SendAgain, OnlyAStaleConnectionMayUseTheSameEndpointAgain) {
  EXPECT_TRUE(may_send_again(kLostReused, kGet, {.stale_connections = 1}, {}).same_endpoint);
  EXPECT_FALSE(may_send_again(kLost, kGet, {}, {}).same_endpoint);
  EXPECT_FALSE(may_send_again(kNotConnected, kGet, {}, {}).same_endpoint);
  EXPECT_FALSE(may_send_again(kRefused, kGet, {.refused_streams = 1}, {}).same_endpoint);
}

TEST(SendAgain, ThePushbackIsHandedOn) {
  const auto decision = may_send_again(with_pushback({.wait = milliseconds(300)}), kGet, {}, {});
  EXPECT_EQ(decision.wait, milliseconds(300));
}

FailedAttempt any_failure(Rng& rng) {
  FailedAttempt failed;
  failed.failure = static_cast<AttemptFailure>(rng.below(kAttemptFailureCount));
  failed.processed = static_cast<Processed>(rng.below(3));
  failed.written = rng.chance(0.8);
  failed.reused = rng.chance(0.5);
  if (rng.chance(0.3)) {
    failed.pushback = Pushback{.stop = rng.chance(0.2), .wait = milliseconds(rng.below(2000))};
  }
  return failed;
}

CallProgress any_call(Rng& rng) {
  CallProgress call;
  call.attempts = static_cast<std::uint32_t>(1 + rng.below(4));
  call.caller_attempt = static_cast<std::uint32_t>(1 + rng.below(2));
  call.refused_streams = static_cast<std::uint32_t>(rng.below(3));
  call.stale_connections = static_cast<std::uint32_t>(rng.below(3));
  if (rng.chance(0.5)) call.deadline_left = milliseconds(rng.between(-10, 3000));
  return call;
}

TEST(SendAgain, WhateverHappensTheSafetyRulesHold) {
  Rng rng(7);
  for (int i = 0; i < 200'000; ++i) {
    const FailedAttempt failed = any_failure(rng);
    const CallProgress call = any_call(rng);
    const ResendFacts request{.idempotent = rng.chance(0.5),
                              .body_kept = rng.chance(0.8),
                              .upgrade = rng.chance(0.1),
                              .answered = rng.chance(0.1)};
    const SendAgainDecision decision = may_send_again(failed, request, call, {});
    if (decision.verdict == SendAgain::kNo) continue;
    EXPECT_FALSE(request.answered);
    EXPECT_TRUE(request.body_kept);
    EXPECT_LT(call.attempts, 3U);
    const bool surely_unprocessed = !failed.written || failed.processed == Processed::kNo;
    EXPECT_TRUE(request.idempotent || surely_unprocessed);
    if (call.deadline_left) {
      EXPECT_LT(decision.wait, *call.deadline_left);
    }
    if (failed.pushback) {
      EXPECT_FALSE(failed.pushback->stop);
      EXPECT_GE(decision.wait, failed.pushback->wait);
    }
    if (decision.verdict == SendAgain::kFromBudget) {
      EXPECT_EQ(call.caller_attempt, 1U);
    }
  }
}

TEST(SendAgain, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSendAgainReasonCount; ++i) {
    names.insert(name_of(static_cast<SendAgainReason>(i)));
  }
  EXPECT_EQ(names.size(), kSendAgainReasonCount);
  names.clear();
  for (std::size_t i = 0; i < kAttemptFailureCount; ++i) {
    names.insert(name_of(static_cast<AttemptFailure>(i)));
  }
  EXPECT_EQ(names.size(), kAttemptFailureCount);
  EXPECT_EQ(names.count(""), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
