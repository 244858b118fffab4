#include "local_answer.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head_testing.h"
#include "upstream_answer.h"

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string fields_of(const LocalAnswerText& text) {
  std::string all;
  for (const ResponseField& field : text.head().fields) {
    all.append(field.name).append(": ").append(field.value).append("\n");
  }
  return all;
}

TEST(GatewayReason, NamesAreDistinctAndEveryOneHasAnErrorStatusAndASentence) {
  std::set<std::string_view> names;
  for (std::size_t i = 1; i < GatewayReason::kCount; ++i) {
    const GatewayReason refusal = GatewayReason::at(i);
    EXPECT_TRUE(names.insert(refusal.name()).second) << refusal.name();
    EXPECT_GE(refusal.facts().http, 400);
    EXPECT_LE(refusal.facts().http, 504);
    EXPECT_FALSE(refusal.facts().sentence.empty());
  }
}

TEST(GatewayReason, StatusesAreThoseOfTheTable) {
  const auto status = [](GatewayReason refusal) { return refusal.facts().http; };
  EXPECT_EQ(status(Reason::kDeadline), 504);
  EXPECT_EQ(status(Reason::kMemory), 503);
  EXPECT_EQ(status(Reason::kTooLarge), 413);
  EXPECT_EQ(status(Reason::kPeerLimit), 429);
  EXPECT_EQ(status(Reason::kActorInflight), 429);
  EXPECT_EQ(status(Reason::kActorBytes), 429);
  EXPECT_EQ(status(Reason::kBytes), 503);
  EXPECT_EQ(status(Reason::kClassLimit), 503);
  EXPECT_EQ(status(Reason::kOverload), 503);
  EXPECT_EQ(status(GatewayRefusal::kNoRoute), 404);
  EXPECT_EQ(status(GatewayRefusal::kBodyTooLarge), 413);
}

TEST(LocalAnswer, OfAGrpcCallIsTrailersOnly) {
  const LocalAnswerText text(answer_for(Reason::kOverload, milliseconds(150)), AnswerForm::kGrpc);
  EXPECT_EQ(text.head().status, 200);
  EXPECT_EQ(fields_of(text),
            "content-type: application/grpc\nx-weir-reason: overload\nx-weir-retry-after-ms: 150\n"
            "grpc-status: 8\ngrpc-message: overload: the service is at its limit\n"
            "grpc-retry-pushback-ms: 150\ngrpc-retry-after-ms: 150\n");
  EXPECT_EQ(text.body(), "");
}

TEST(LocalAnswer, TheMessageOfAGrpcCallIsPercentEncoded) {
  const LocalAnswerText text(answer_for(GatewayRefusal::kAmbiguousPath, {}), AnswerForm::kGrpc);
  EXPECT_THAT(fields_of(text), HasSubstr("//, %252F, ; and backslash"));
  EXPECT_THAT(fields_of(text), HasSubstr("grpc-status: 3\n"));
}

TEST(LocalAnswer, EveryReasonFitsInEveryForm) {
  for (std::size_t i = 1; i < GatewayReason::kCount; ++i) {
    for (const AnswerForm form : {AnswerForm::kText, AnswerForm::kJson, AnswerForm::kGrpc}) {
      LocalAnswer answer = answer_for(GatewayReason::at(i), milliseconds(4'000'000'000));
      answer.request_id = "0123456789abcdef0123456789abcdef";
      const LocalAnswerText text(answer, form);
      EXPECT_GE(text.head().fields.size(), 2U);
    }
  }
}

TEST(LocalAnswer, CarriesTheReasonAndTheHint) {
  const LocalAnswerText text(answer_for(Reason::kOverload, milliseconds(1500)), AnswerForm::kText);
  EXPECT_EQ(text.head().status, 503);
  EXPECT_EQ(fields_of(text),
            "content-type: text/plain; charset=utf-8\nx-weir-reason: overload\n"
            "x-weir-retry-after-ms: 1500\nretry-after: 2\n");
  EXPECT_EQ(text.body(), "overload: the service is at its limit\n");
}

TEST(LocalAnswer, IsJsonForThoseWhoAskForIt) {
  const LocalAnswerText text(answer_for(Reason::kActorInflight, milliseconds(50)),
                             AnswerForm::kJson);
  EXPECT_EQ(text.head().status, 429);
  EXPECT_THAT(fields_of(text), HasSubstr("content-type: application/json\n"));
  EXPECT_EQ(text.body(),
            R"({"reason":"actor_inflight","message":"this client has too many requests under way",)"
            R"("retry_after_ms":50})"
            "\n");
}

TEST(LocalAnswer, AHintIsGivenOnlyWhereComingBackHelps) {
  const LocalAnswerText large(answer_for(Reason::kTooLarge, milliseconds(50)), AnswerForm::kText);
  EXPECT_EQ(fields_of(large).find("retry"), std::string::npos);
  const LocalAnswerText route(answer_for(GatewayRefusal::kNoRoute, milliseconds(50)),
                              AnswerForm::kText);
  EXPECT_EQ(fields_of(route).find("retry"), std::string::npos);
  EXPECT_EQ(route.head().status, 404);
}

TEST(LocalAnswer, EveryAnswerFitsInBothForms) {
  for (const AnswerForm form : {AnswerForm::kText, AnswerForm::kJson}) {
    for (std::size_t i = 1; i < GatewayReason::kCount; ++i) {
      const LocalAnswerText text(answer_for(GatewayReason::at(i), std::chrono::hours(1)), form);
      EXPECT_THAT(std::string(text.body()), HasSubstr(std::string(GatewayReason::at(i).name())));
    }
    for (std::size_t i = 1; i < upstream::kUpstreamFailureCount; ++i) {
      const auto failure = static_cast<upstream::UpstreamFailure>(i);
      const LocalAnswerText text(answer_for(failure), form);
      EXPECT_EQ(text.head().status, meaning_of(failure).http);
      EXPECT_THAT(fields_of(text), HasSubstr("x-weir-reason: " + std::string(name_of(failure))));
    }
  }
}

TEST(LocalAnswer, AcceptDecidesTheForm) {
  const auto form = [](const TestHead& head) { return wanted_form(head.request()); };
  EXPECT_EQ(form(TestHead{}), AnswerForm::kText);
  EXPECT_EQ(form(TestHead{{"Accept", "*/*"}}), AnswerForm::kText);
  EXPECT_EQ(form(TestHead{{"Accept", "application/json"}}), AnswerForm::kJson);
  EXPECT_EQ(form(TestHead{{"Accept", "text/html, application/problem+json;q=0.5"}}),
            AnswerForm::kJson);
}

}  // namespace
}  // namespace weir::gateway
