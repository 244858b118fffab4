// Which overload answers shrink the limit: those of a service, not those of one client.
#include "outcome_evidence.h"

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::seconds;

class OutcomeEvidenceTest : public ::testing::Test {
 protected:
  void answer(std::uint64_t good, std::uint64_t overloaded) {
    if (overloaded > 0) evidence.watch();
    counters->add(&ScopeCounters::finished, good + overloaded);
    counters->add(&ScopeCounters::answered, good);
    counters->add(&ScopeCounters::overloads, overloaded);
    window.sample_count += static_cast<std::uint32_t>(good);
    window.overload_count += static_cast<std::uint32_t>(overloaded);
  }
  std::uint32_t close(std::int64_t at_ms) {
    window.closed_at = after_ms(at_ms);
    const std::uint32_t counted = evidence.counted(window);
    window = {};
    return counted;
  }

  std::unique_ptr<ScopeCounterSlots> counters = std::make_unique<ScopeCounterSlots>();
  OutcomeEvidence evidence{*counters};
  LimitSample window;
};

TEST_F(OutcomeEvidenceTest, OverloadCountsAsAShareOfEnoughAnswers) {
  EXPECT_EQ(close(0), 0U);
  answer(100, 10);
  EXPECT_EQ(close(1000), 0U);
  answer(50, 50);
  EXPECT_EQ(close(2000), 50U);
  answer(100, 0);
  EXPECT_EQ(close(3000), 0U) << "what was judged is not judged again";
}

TEST_F(OutcomeEvidenceTest, FewAnswersAreKeptForTheNextWindows) {
  EXPECT_EQ(close(0), 0U);
  for (int i = 1; i <= 2; ++i) {
    answer(0, 10);
    EXPECT_EQ(close(i * 1000), 0U);
  }
  answer(0, 10);
  EXPECT_EQ(close(3000), 10U);
}

TEST_F(OutcomeEvidenceTest, ButNotForMoreThanTenSeconds) {
  EXPECT_EQ(close(0), 0U);
  for (int i = 1; i <= 20; ++i) {
    answer(0, 2);
    EXPECT_EQ(close(i * 1000), 0U) << i;
  }
}

TEST_F(OutcomeEvidenceTest, WatchesFromTheFirstOverloadUntilAJudgementWithoutAny) {
  answer(1000, 0);
  EXPECT_EQ(close(0), 0U);
  EXPECT_FALSE(evidence.watching());
  answer(100, 1);
  EXPECT_EQ(close(1000), 0U);
  EXPECT_TRUE(evidence.watching());
  answer(100, 0);
  EXPECT_EQ(close(2000), 0U);
  EXPECT_FALSE(evidence.watching());
}

TEST_F(OutcomeEvidenceTest, WhatOneSourceAloneReportsDoesNotCount) {
  using Dimension = policy::OutcomeSources::Dimension;
  EXPECT_EQ(close(0), 0U);
  for (const Dimension dimension : {Dimension::kActor, Dimension::kRoute, Dimension::kEndpoint}) {
    answer(30, 60);
    for (int i = 0; i < 60; ++i) {
      counters->add_from(&ScopeCounters::overloads_from, source_index(dimension, 21));
    }
    EXPECT_EQ(close(1000), 0U) << static_cast<int>(dimension);
  }
  answer(30, 60);
  EXPECT_EQ(close(2000), 60U) << "of many sources";
}

TEST_F(OutcomeEvidenceTest, AShortWindowWaitsASecondForTheAnswersOfOthers) {
  EXPECT_EQ(close(0), 0U);
  const auto of_one = [&](int count) {
    answer(0, static_cast<std::uint64_t>(count));
    for (int i = 0; i < count; ++i) counters->add_from(&ScopeCounters::overloads_from, 3);
  };
  of_one(100);
  answer(2, 0);
  EXPECT_EQ(close(100), 0U);
  answer(6, 0);
  EXPECT_EQ(close(200), 0U) << "eight good answers of others: it was one source";
  of_one(100);
  answer(2, 0);
  EXPECT_EQ(close(300), 0U);
  of_one(100);
  EXPECT_EQ(close(1200), 100U) << "two are too few, and it is late";
}

// ---- the controller

struct Second {
  int good = 0;
  int overloaded = 0;
  std::function<void(AdmissionRequest&)> of_bad = [](AdmissionRequest&) {};
  std::uint32_t bad_endpoint = 1;
};

/// Runs seconds in which `second.good` requests are answered in 10 ms and `second.overloaded` are
/// answered with overload at once. Returns the lowest limit that was in force.
std::uint32_t lowest_limit(LimitKind policy, int count, const Second& second) {
  AdmissionConfig config;
  config.limit.policy = policy;
  config.inflight_max = 1000;
  AdmissionController controller(config, Rng(1));
  controller.expire(kStart);
  std::uint32_t lowest = 128;
  const int all = second.good + second.overloaded;
  for (int s = 0; s < count; ++s) {
    for (int i = 0; i < all; ++i) {
      const TimePoint now = kStart + seconds(s) + Duration(seconds(1)) * i / all;
      // Evenly mixed, as an accumulator that overflows.
      const bool bad = (i + 1) * second.overloaded / all != i * second.overloaded / all;
      AdmissionRequest request = request_of(Priority::kHigh);
      const std::string name = "actor" + std::to_string(i % 7);  // the label points into it
      request.actor = controller.identify(name);
      request.route = 1;
      if (bad) second.of_bad(request);
      auto permit = controller.try_admit(request, now);
      if (!permit) continue;
      permit->set_endpoint(bad ? second.bad_endpoint : 1);
      std::move(permit).value().finish(bad ? Outcome::kOverload : Outcome::kOk,
                                       now + std::chrono::milliseconds(bad ? 1 : 10));
      controller.expire(now);
      lowest = std::min(lowest, controller.scope_stats(ScopeId::kFirst, now).limit);
    }
  }
  return lowest;
}

class LimitUnderOverloadAnswers : public ::testing::TestWithParam<LimitKind> {};

TEST_P(LimitUnderOverloadAnswers, TenBesideAHundredGoodOnesASecondLeaveIt) {
  EXPECT_EQ(lowest_limit(GetParam(), 30, {.good = 100, .overloaded = 10}), 128U);
}

TEST_P(LimitUnderOverloadAnswers, EightRequestsToAStoppedServiceLeaveIt) {
  EXPECT_EQ(lowest_limit(GetParam(), 1, {.overloaded = 8}), 128U);
}

TEST_P(LimitUnderOverloadAnswers, MostAnswersShrinkItFast) {
  EXPECT_LT(lowest_limit(GetParam(), 8, {.good = 100, .overloaded = 400}), 70U);
}

TEST_P(LimitUnderOverloadAnswers, OneActorAloneLeavesIt) {
  const auto eve = [](AdmissionRequest& r) { r.actor = {.key = {77, 78}, .label = "eve"}; };
  EXPECT_EQ(lowest_limit(GetParam(), 20, {.good = 100, .overloaded = 500, .of_bad = eve}), 128U);
}

TEST_P(LimitUnderOverloadAnswers, OneRouteAloneLeavesIt) {
  const auto broken = [](AdmissionRequest& r) { r.route = 2; };
  EXPECT_EQ(lowest_limit(GetParam(), 20, {.good = 100, .overloaded = 500, .of_bad = broken}), 128U);
}

TEST_P(LimitUnderOverloadAnswers, OneEndpointAloneLeavesIt) {
  EXPECT_EQ(lowest_limit(GetParam(), 20, {.good = 100, .overloaded = 500, .bad_endpoint = 2}),
            128U);
}

INSTANTIATE_TEST_SUITE_P(Policies, LimitUnderOverloadAnswers,
                         ::testing::Values(LimitKind::kAuto, LimitKind::kAimd,
                                           LimitKind::kGradient2));

}  // namespace
}  // namespace weir::inline v0::inline control
