#include "answer_outcome.h"

#include <array>

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

Outcome of(unsigned status, const TestHead& fields) {
  return outcome_of({.headers = fields.list(), .body = {}, .status = status});
}

TEST(AnswerOutcome, FollowsTheStatus) {
  EXPECT_EQ(of(200, {}), Outcome::kOk);
  EXPECT_EQ(of(404, {}), Outcome::kOk);
  EXPECT_EQ(of(429, {}), Outcome::kOk);
  EXPECT_EQ(of(500, {}), Outcome::kError);
  EXPECT_EQ(of(503, {}), Outcome::kOverload);
}

TEST(AnswerOutcome, ARefusalThatIsExplainedIsIgnored) {
  EXPECT_EQ(of(503, {{"x-weir-reason", "overload"}}), Outcome::kIgnored);
  EXPECT_EQ(of(503, {{"retry-after", "1"}}), Outcome::kIgnored);
  EXPECT_EQ(of(429, {{"grpc-retry-pushback-ms", "10"}}), Outcome::kIgnored);
  EXPECT_EQ(of(500, {{"retry-after", "1"}}), Outcome::kError);
}

TEST(AnswerOutcome, OfGrpcFollowsItsStatus) {
  struct Case {
    std::string_view code;
    Outcome outcome;
  };
  constexpr std::array kCases = {
      Case{"0", Outcome::kOk},        Case{"1", Outcome::kIgnored}, Case{"2", Outcome::kError},
      Case{"3", Outcome::kOk},        Case{"4", Outcome::kIgnored}, Case{"5", Outcome::kOk},
      Case{"8", Outcome::kOk},        Case{"12", Outcome::kOk},     Case{"13", Outcome::kError},
      Case{"14", Outcome::kOverload}, Case{"16", Outcome::kOk},     Case{"", Outcome::kError},
      Case{"x", Outcome::kError},
  };
  for (const Case& one : kCases) {
    EXPECT_EQ(outcome_of_grpc(TestHead{{"grpc-status", one.code}}.list()), one.outcome) << one.code;
  }
  EXPECT_EQ(outcome_of_grpc(TestHead{}.list()), Outcome::kError) << "it ended without a status";
}

TEST(AnswerOutcome, OfGrpcIsOverloadIfExhaustionNamesIt) {
  EXPECT_EQ(
      outcome_of_grpc(
          TestHead{{"grpc-status", "8"}, {"grpc-message", "Server OVERLOADED, later"}}.list()),
      Outcome::kOverload);
  EXPECT_EQ(
      outcome_of_grpc(TestHead{{"grpc-status", "8"}, {"grpc-message", "quota of tenant"}}.list()),
      Outcome::kOk);
}

TEST(AnswerOutcome, OfGrpcIsIgnoredIfExplained) {
  for (const char* code : {"8", "14"}) {
    EXPECT_EQ(
        outcome_of_grpc(TestHead{{"grpc-status", code}, {"grpc-retry-pushback-ms", "100"}}.list()),
        Outcome::kIgnored);
    EXPECT_EQ(
        outcome_of_grpc(TestHead{
            {"grpc-status", code}, {"grpc-message", "overload"}, {"x-weir-reason", "overload"}}
                            .list()),
        Outcome::kIgnored);
  }
}

}  // namespace
}  // namespace weir::gateway
