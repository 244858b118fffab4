#include "policy/overload_share.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using Dimension = OutcomeSources::Dimension;

/// `answers` of one actor by one route and endpoint; the numbers of the buckets.
struct From {
  std::size_t actor, route, endpoint;
  OutcomeCounts answers;
};

OutcomeSources outcomes_of(std::initializer_list<From> all) {
  OutcomeSources out;
  const auto add = [](OutcomeCounts& to, const OutcomeCounts& more) {
    to.good += more.good;
    to.overloaded += more.overloaded;
  };
  for (const From& from : all) {
    add(out.total, from.answers);
    add(out.buckets[0][from.actor], from.answers);
    add(out.buckets[1][from.route], from.answers);
    add(out.buckets[2][from.endpoint], from.answers);
  }
  return out;
}

TEST(OverloadShare, AFewAmongManyGoodAnswersChangeNothing) {
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {100, 10}}})), 0.0);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {81, 19}}})), 0.0);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {80, 20}}})), 0.2);
}

TEST(OverloadShare, FewAnswersTellNothing) {
  EXPECT_EQ(OverloadShare::of({}), std::nullopt);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {0, 8}}})), std::nullopt);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {0, 23}}})), std::nullopt);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {0, 24}}})), 1.0);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {20, 19}}})), std::nullopt);
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {20, 20}}})), 0.5);
}

TEST(OverloadShare, MostAnswersOfAServiceThatHasOneOfEachCount) {
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {100, 300}}})), 0.75);
}

struct Alone {
  const char* what;
  std::size_t actor, route, endpoint;
};
class OverloadShareAlone : public ::testing::TestWithParam<Alone> {};

TEST_P(OverloadShareAlone, OneSourceCannotDoItWhileOthersAnswerWell) {
  const Alone& p = GetParam();
  const auto share = OverloadShare::of(
      outcomes_of({{p.actor, p.route, p.endpoint, {0, 500}}, {1, 1, 1, {50, 0}}}));
  EXPECT_EQ(share, 0.0) << p.what;
}

INSTANTIATE_TEST_SUITE_P(Table, OverloadShareAlone,
                         ::testing::Values(Alone{"one actor", 2, 1, 1}, Alone{"one route", 1, 2, 1},
                                           Alone{"one endpoint", 1, 1, 2}));

TEST(OverloadShare, OneSourceIsEnoughWhileOthersGiveTooFewAnswers) {
  const OutcomeSources few = outcomes_of({{0, 0, 0, {0, 100}}, {1, 1, 1, {7, 0}}});
  EXPECT_EQ(OverloadShare::of(few), 100.0 / 107);
  EXPECT_EQ(OverloadShare::of(few, true), std::nullopt) << "or one waits for more";
  const OutcomeSources enough = outcomes_of({{0, 0, 0, {0, 100}}, {1, 1, 1, {8, 0}}});
  EXPECT_EQ(OverloadShare::of(enough, true), 0.0);
  const OutcomeSources none = outcomes_of({{0, 0, 0, {0, 100}}});
  EXPECT_EQ(OverloadShare::of(none, true), 1.0) << "nobody to wait for";
}

TEST(OverloadShare, AServiceThatReportsOverloadToAllIsOverloadedThoughOneAsksMost) {
  EXPECT_EQ(OverloadShare::of(outcomes_of({{0, 0, 0, {400, 400}}, {1, 0, 0, {40, 40}}})), 0.5);
}

TEST(OverloadShare, WhatTheOthersReportIsWhatCounts) {
  const auto share = OverloadShare::of(outcomes_of({{0, 0, 0, {0, 900}}, {1, 0, 0, {70, 30}}}));
  EXPECT_EQ(share, 0.3);
}

TEST(OverloadShare, IsNothingOrAtLeastAFifthAndNeverMoreThanThePlainShare) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    OutcomeSources out;
    for (int i = 0; i < 20; ++i) {
      const OutcomeCounts some{rng.below(50), rng.chance(0.5) ? rng.below(50) : 0};
      out.total.good += some.good;
      out.total.overloaded += some.overloaded;
      for (auto& dimension : out.buckets) {
        OutcomeCounts& bucket = dimension[rng.below(OutcomeSources::kBuckets)];
        bucket.good += some.good;
        bucket.overloaded += some.overloaded;
      }
    }
    const auto share = OverloadShare::of(out);
    ASSERT_TRUE(share.has_value());
    const double plain =
        static_cast<double>(out.total.overloaded) / static_cast<double>(out.total.all());
    ASSERT_LE(*share, plain);
    ASSERT_TRUE(*share == 0 || *share >= 0.2) << *share;
  }
}

TEST(OverloadShare, OfAWindowHasTheShareThatCounts) {
  for (const std::uint32_t good : {24U, 100U, 12345U}) {
    for (const double share : {0.2, 0.5, 0.9}) {
      LimitSample window{.sample_count = good};
      window.overload_count = overloads_for_share(share, good, 1'000'000);
      EXPECT_NEAR(overload_share_of(window), share, 0.03);
      EXPECT_LE(overloads_for_share(share, good, 7), 7U) << "as many as there were";
    }
  }
  EXPECT_EQ(overloads_for_share(0, 100, 50), 0U);
  EXPECT_EQ(overloads_for_share(1, 0, 50), 50U);
  EXPECT_EQ(overload_share_of({}), 0);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
