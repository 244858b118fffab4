#include "policy/send_again.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum SendAgainReason;

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

struct Row {
  const char* what;
  FailedAttempt failed;
  ResendFacts request;
  CallProgress call;
  SendAgain verdict;
  SendAgainReason reason;
};

TEST(SendAgain, VerdictsFollowTheTable) {
  constexpr auto kNo = SendAgain::kNo;
  constexpr auto kTransparent = SendAgain::kTransparent;
  constexpr auto kFromBudget = SendAgain::kFromBudget;
  using F = AttemptFailure;
  const ResendFacts upgrade{.idempotent = true, .body_kept = true, .upgrade = true};
  const ResendFacts answered{.idempotent = true, .body_kept = true, .answered = true};
  const ResendFacts body_gone{.idempotent = true, .body_kept = false};
  const Row rows[] = {
      {"POST, no connection", kNotConnected, kPost, {}, kTransparent, kNotSent},
      {"upgrade, no connection", kNotConnected, upgrade, {}, kTransparent, kNotSent},
      {"POST, refused stream",
       kRefused,
       kPost,
       {.refused_streams = 1},
       kTransparent,
       kNotProcessed},
      {"GET, refused twice",
       kRefused,
       kGet,
       {.attempts = 2, .refused_streams = 2},
       kNo,
       kRefusedAgain},
      {"POST, GOAWAY below it",
       failed(F::kConnectionLost, Processed::kNo),
       kPost,
       {},
       kTransparent,
       kNotProcessed},
      {"POST, GOAWAY with its id", kLost, kPost, {}, kNo, kNotIdempotent},
      {"GET, GOAWAY with its id", kLost, kGet, {}, kFromBudget, kIdempotent},
      {"GET, stale connection",
       kLostReused,
       kGet,
       {.stale_connections = 1},
       kTransparent,
       kStaleConnection},
      {"GET, stale again",
       kLostReused,
       kGet,
       {.attempts = 2, .stale_connections = 2},
       kFromBudget,
       kIdempotent},
      {"POST, stale connection", kLostReused, kPost, {.stale_connections = 1}, kNo, kNotIdempotent},
      {"GET, timeout", failed(F::kTimeout), kGet, {}, kFromBudget, kIdempotent},
      {"POST, timeout", failed(F::kTimeout), kPost, {}, kNo, kNotIdempotent},
      {"GET, silent", failed(F::kSilent), kGet, {}, kFromBudget, kIdempotent},
      {"GET, reset", failed(F::kStreamReset), kGet, {}, kFromBudget, kIdempotent},
      {"GET, garbage",
       failed(F::kBadResponse, Processed::kYes),
       kGet,
       {},
       kFromBudget,
       kIdempotent},
      {"GET, 503", failed(F::kStatus, Processed::kYes), kGet, {}, kFromBudget, kIdempotent},
      {"upgrade, lost", kLost, upgrade, {}, kNo, kUpgrade},
      {"GET, calm", failed(F::kEnhanceYourCalm), kGet, {}, kNo, kCalmDown},
      {"GET, calm unprocessed",
       failed(F::kEnhanceYourCalm, Processed::kNo),
       kGet,
       {},
       kNo,
       kCalmDown},
      {"GET, HTTP/1.1 required",
       failed(F::kHttp11Required, Processed::kNo),
       kGet,
       {},
       kNo,
       kHttp11Required},
      {"answer started", kNotConnected, answered, {}, kNo, kAnswerStarted},
      {"body gone", kNotConnected, body_gone, {}, kNo, kBodyGone},
      {"third attempt", kNotConnected, kGet, {.attempts = 3}, kNo, kAttemptsUsed},
      {"second attempt", kNotConnected, kGet, {.attempts = 2}, kTransparent, kNotSent},
      {"caller retries", failed(F::kTimeout), kGet, {.caller_attempt = 2}, kNo, kCallerRetries},
      {"caller retries, not sent",
       kNotConnected,
       kGet,
       {.caller_attempt = 2},
       kTransparent,
       kNotSent},
      {"no time", kNotConnected, kGet, {.deadline_left = Duration::zero()}, kNo, kDeadline},
      {"little time", kNotConnected, kGet, {.deadline_left = Duration(1)}, kTransparent, kNotSent},
      {"pushback: stop", with_pushback({.stop = true}), kGet, {}, kNo, kPushback},
      {"pushback: short",
       with_pushback({.wait = milliseconds(300)}),
       kGet,
       {},
       kFromBudget,
       kIdempotent},
      {"pushback: long", with_pushback({.wait = seconds(2)}), kGet, {}, kNo, kPushback},
      {"pushback: past the deadline",
       with_pushback({.wait = milliseconds(300)}),
       kGet,
       {.deadline_left = milliseconds(300)},
       kNo,
       kDeadline},
  };
  for (const Row& row : rows) {
    const SendAgainDecision decision = may_send_again(row.failed, row.request, row.call, {});
    EXPECT_EQ(decision.verdict, row.verdict) << row.what << ": " << name_of(decision.reason);
    EXPECT_EQ(name_of(decision.reason), name_of(row.reason)) << row.what;
  }
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
}  // namespace weir::policy
