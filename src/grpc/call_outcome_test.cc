#include "call_outcome.h"

#include <gtest/gtest.h>

#include "trailer_names.h"

namespace weir::grpc {
namespace {

using ::grpc::StatusCode;

const Trailers kNone;
const Trailers kPushback{{kPushbackTrailer, "100"}};
const Trailers kPassedOn{{kPushbackTrailer, "100"}, {kReasonTrailer, "overload"}};

TEST(CallOutcome, OnlyOkGivesASample) {
  EXPECT_EQ(outcome_of(StatusCode::OK, kNone), Outcome::kOk);
  for (const StatusCode code :
       {StatusCode::UNKNOWN, StatusCode::INVALID_ARGUMENT, StatusCode::DEADLINE_EXCEEDED,
        StatusCode::NOT_FOUND, StatusCode::UNIMPLEMENTED, StatusCode::INTERNAL,
        StatusCode::DATA_LOSS}) {
    EXPECT_EQ(outcome_of(code, kNone), Outcome::kError) << code;
  }
}

TEST(CallOutcome, AnExhaustedResourceIsOverloadOnlyWithAPushback) {
  EXPECT_EQ(outcome_of(StatusCode::RESOURCE_EXHAUSTED, kNone), Outcome::kError);
  EXPECT_EQ(outcome_of(StatusCode::RESOURCE_EXHAUSTED, kPushback), Outcome::kOverload);
}

TEST(CallOutcome, UnavailableIsOverload) {
  EXPECT_EQ(outcome_of(StatusCode::UNAVAILABLE, kNone), Outcome::kOverload);
}

TEST(CallOutcome, ARefusalPassedOnFromBehindIsNotTheOverloadOfThisService) {
  EXPECT_EQ(outcome_of(StatusCode::RESOURCE_EXHAUSTED, kPassedOn), Outcome::kIgnored);
  EXPECT_EQ(outcome_of(StatusCode::UNAVAILABLE, kPassedOn), Outcome::kIgnored);
}

TEST(CallOutcome, ACancelledCallIsIgnored) {
  EXPECT_EQ(outcome_of(StatusCode::CANCELLED, kNone), Outcome::kIgnored);
}

}  // namespace
}  // namespace weir::grpc
