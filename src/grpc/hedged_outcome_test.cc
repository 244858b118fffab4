#include "hedged_outcome.h"

#include <gtest/gtest.h>

namespace weir::inline v0::grpc {
namespace {

using ::grpc::StatusCode;
using policy::AnswerKind;
using policy::AttemptFailure;
using policy::Processed;

ReplyHints hints_with(const char* pushback) {
  TrailingMetadata trailing;
  trailing.emplace("grpc-retry-pushback-ms", pushback);
  return hints_of(trailing);
}

TEST(HedgedOutcome, AStatusThatEveryReplicaWouldGiveIsAnAnswer) {
  for (const StatusCode code :
       {StatusCode::OK, StatusCode::INVALID_ARGUMENT, StatusCode::ALREADY_EXISTS,
        StatusCode::PERMISSION_DENIED, StatusCode::UNAUTHENTICATED, StatusCode::UNIMPLEMENTED,
        StatusCode::FAILED_PRECONDITION, StatusCode::OUT_OF_RANGE}) {
    const HedgedOutcome outcome = outcome_of(code, true, {});
    EXPECT_TRUE(outcome.answered) << code;
    EXPECT_EQ(outcome.answer, AnswerKind::kGood) << code;
    EXPECT_FALSE(outcome.bad || outcome.overload) << code;
  }
  EXPECT_EQ(outcome_of(StatusCode::NOT_FOUND, true, {}).answer, AnswerKind::kAbsent);
}

TEST(HedgedOutcome, AFailureThatAnotherReplicaMayNotHaveIsNoAnswer) {
  struct Case {
    StatusCode code;
    AttemptFailure failure;
    Processed processed;
  };
  for (const Case& one :
       {Case{StatusCode::UNAVAILABLE, AttemptFailure::kConnectionLost, Processed::kMaybe},
        Case{StatusCode::DEADLINE_EXCEEDED, AttemptFailure::kTimeout, Processed::kMaybe},
        Case{StatusCode::CANCELLED, AttemptFailure::kStreamReset, Processed::kMaybe},
        Case{StatusCode::INTERNAL, AttemptFailure::kBadResponse, Processed::kYes},
        Case{StatusCode::UNKNOWN, AttemptFailure::kBadResponse, Processed::kYes},
        Case{StatusCode::DATA_LOSS, AttemptFailure::kBadResponse, Processed::kYes},
        Case{StatusCode::ABORTED, AttemptFailure::kBadResponse, Processed::kYes}}) {
    const HedgedOutcome outcome = outcome_of(one.code, true, {});
    EXPECT_FALSE(outcome.answered) << one.code;
    EXPECT_EQ(outcome.failed.failure, one.failure) << one.code;
    EXPECT_EQ(outcome.failed.processed, one.processed) << one.code;
    EXPECT_TRUE(outcome.failed.written && outcome.bad) << one.code;
    EXPECT_NE(outcome.latency, control::AttemptEnd::kAnswered) << one.code;
  }
}

TEST(HedgedOutcome, ExhaustedIsOverloadOnlyIfTheReplicaSaysSo) {
  EXPECT_EQ(outcome_of(StatusCode::RESOURCE_EXHAUSTED, true, {}).answer, AnswerKind::kGood);
  const HedgedOutcome pushed = outcome_of(StatusCode::RESOURCE_EXHAUSTED, true, hints_with("250"));
  EXPECT_EQ(pushed.answer, AnswerKind::kTryLater);
  EXPECT_TRUE(pushed.overload);
  EXPECT_FALSE(pushed.not_processed);
  const HedgedOutcome refused =
      outcome_of(StatusCode::RESOURCE_EXHAUSTED, true, {.refused_by_weir = true});
  EXPECT_TRUE(refused.overload && refused.not_processed);
  EXPECT_TRUE(outcome_of(StatusCode::UNAVAILABLE, true, hints_with("1")).overload);
}

TEST(HedgedOutcome, UnavailableBeforeTheHeadersWereSentMeansThatNobodySawIt) {
  const HedgedOutcome outcome = outcome_of(StatusCode::UNAVAILABLE, false, {});
  EXPECT_FALSE(outcome.answered || outcome.failed.written || outcome.bad);
  EXPECT_EQ(outcome.failed.processed, Processed::kNo);
  EXPECT_TRUE(outcome_of(StatusCode::UNAUTHENTICATED, false, {}).answered);
}

TEST(HedgedOutcome, APushbackIsANumberOrAStop) {
  EXPECT_FALSE(hints_of({}).pushback);
  const ReplyHints timed = hints_with("250");
  ASSERT_TRUE(timed.pushback);
  EXPECT_FALSE(timed.pushback->stop);
  EXPECT_EQ(timed.pushback->wait, std::chrono::milliseconds(250));
  for (const char* stop : {"-1", "", "x", "1.5", "12 ", "99999999999999999999"}) {
    ASSERT_TRUE(hints_with(stop).pushback) << stop;
    EXPECT_TRUE(hints_with(stop).pushback->stop) << '"' << stop << '"';
  }
  TrailingMetadata twice;
  twice.emplace("grpc-retry-pushback-ms", "5");
  twice.emplace("grpc-retry-pushback-ms", "7");
  EXPECT_EQ(hints_of(twice).pushback->wait, std::chrono::milliseconds(7));
}

}  // namespace
}  // namespace weir::inline v0::grpc
