#include "explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr TimePoint kNow = time_from_ns(1'000'000'000);

struct ExplainWords : testing::Test {
  ExplainWords() {
    config.limit.policy = LimitKind::kFixed;
    config.limit.initial_limit = 10;
    config.limit.min_limit = 1;
  }
  std::string words(AdmissionController& controller, const AdmissionRequest& request,
                    Reason check) {
    const DecisionRecord record = controller.explain(request, kNow);
    for (const DecisionStep& step : record.steps()) {
      if (step.check != check) continue;
      return words_of(step, request,
                      {.config = controller.config(),
                       .all = controller.stats(),
                       .scope = controller.scope_stats(request.scope, kNow),
                       .now = kNow});
    }
    return "no such step";
  }
  AdmissionConfig config;
};

TEST_F(ExplainWords, SayWhatIsHeldAndWhatTheBoundIs) {
  config.classes.caps[index_of(Priority::kNormal)] = 5;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request;
  request.actor = controller.identify("alice");
  request.peer = controller.identify("node");
  request.bytes = 1024;
  request.deadline = kNow + milliseconds(20);
  auto held = controller.try_admit(request, kNow);
  EXPECT_EQ(words(controller, request, Reason::kDeadline), "20ms left");
  EXPECT_EQ(words(controller, request, Reason::kTooLarge), "1.0 KiB asked for");
  EXPECT_EQ(words(controller, request, Reason::kPeerLimit), "1 of 64 in flight or waiting");
  EXPECT_EQ(words(controller, request, Reason::kActorInflight), "1 of 16 in flight");
  EXPECT_EQ(words(controller, request, Reason::kActorBytes), "1.0 KiB of 4.0 GiB held");
  EXPECT_EQ(words(controller, request, Reason::kBytes), "1.0 KiB of 64.0 GiB held by all");
  EXPECT_EQ(words(controller, request, Reason::kClassLimit), "1 of 5 in flight");
  EXPECT_THAT(words(controller, request, Reason::kOverload),
              HasSubstr("1 of 9 in flight (0.9 of the limit 10"));
}

TEST_F(ExplainWords, SayWhatARequestDoesNotHave) {
  config.total_bytes_max = 0;
  config.modes.limit = RuleMode::kOff;
  AdmissionController controller(config, Rng(1));
  EXPECT_EQ(words(controller, {}, Reason::kDeadline), "none given");
  EXPECT_EQ(words(controller, {}, Reason::kPeerLimit), "not from a trusted peer");
  EXPECT_EQ(words(controller, {}, Reason::kActorInflight), "billed to nobody");
  EXPECT_EQ(words(controller, {}, Reason::kBytes), "no budget");
  EXPECT_EQ(words(controller, {}, Reason::kClassLimit), "no cap");
  EXPECT_EQ(words(controller, {}, Reason::kOverload), "not checked: the rule is off");
}

TEST_F(ExplainWords, SayHowFarMemoryMustFallUntilSheddingEnds) {
  config.memory.low_priority_shed_ratio = 0.5;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest low;
  low.priority = Priority::kLow;
  controller.set_memory(0.9, true);
  controller.set_memory(0.84, true);
  auto admitted = controller.try_admit(low, kNow);  // every second one is shed
  const std::string text = words(controller, low, Reason::kMemory);
  EXPECT_THAT(text, HasSubstr("84.0 % used; low is shed above 85.0 %, normal above 95.0 %"));
  EXPECT_THAT(text, HasSubstr("low is shed until it is at most 82.0 %"));
  EXPECT_THAT(text, HasSubstr("share of low shed 50.0 %"));
  controller.set_memory(0, false);
  EXPECT_THAT(words(controller, low, Reason::kMemory), HasSubstr("unreadable, counts as 0 %"));
}

TEST(ExplainSteps, AreNumberedAsTheDecisionIsDocumented) {
  int last = 0;
  for (std::size_t i = 1; i < kReasonCount; ++i) {
    const int number = step_number(static_cast<Reason>(i));
    EXPECT_TRUE(number == last || number == last + 1);
    last = number;
  }
  EXPECT_EQ(last, 7);
}

}  // namespace
}  // namespace weir::gateway
