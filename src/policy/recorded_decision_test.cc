#include "policy/recorded_decision.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

RecordedDecision any_decision(Rng& rng) {
  RecordedDecision d;
  d.at = microseconds(rng.below(std::uint64_t{1} << 48U));
  d.request = static_cast<std::uint32_t>(rng.next_u64());
  d.actor = static_cast<std::uint32_t>(rng.next_u64());
  d.peer = static_cast<std::uint16_t>(rng.next_u64());
  d.scope = static_cast<std::uint16_t>(rng.next_u64());
  d.priority = static_cast<Priority>(rng.below(kPriorityCount));
  d.hedge = rng.chance(0.5);
  d.mode = static_cast<RuleMode>(rng.below(kRuleModeNames.size()));
  d.end = static_cast<DecisionEnd>(rng.below(kDecisionEndNames.size()));
  d.reason = static_cast<std::uint8_t>(rng.next_u64());
  d.limit = static_cast<std::uint32_t>(rng.below(1U << 16U));
  d.in_flight = static_cast<std::uint32_t>(rng.below(1U << 16U));
  d.waiting = static_cast<std::uint32_t>(rng.below(1U << 16U));
  d.wait = microseconds(16) * static_cast<std::int64_t>(rng.below(1U << 24U));
  d.latency = microseconds(rng.below(std::uint64_t{1} << 32U));
  d.bytes = rng.below(std::uint64_t{1} << 32U);
  d.cost = static_cast<std::uint32_t>(rng.below(1U << 14U));
  return d;
}

TEST(RecordedDecision, EveryDecisionSurvivesItsFortyBytes) {
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    const RecordedDecision decision = any_decision(rng);
    const DecisionWords words = pack(decision);
    const auto read = unpack(words);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, decision);
    EXPECT_NE(words, DecisionWords{}) << "all zero means not written";
  }
}

TEST(RecordedDecision, ANumberThatDoesNotFitIsTheLargestOne) {
  RecordedDecision large;
  large.wait = large.latency = seconds(100'000);
  large.bytes = ~std::uint64_t{0};
  large.limit = large.in_flight = large.waiting = large.cost = 1'000'000;
  const auto read = unpack(pack(large));
  ASSERT_TRUE(read.has_value());
  EXPECT_GT(read->wait, seconds(250));
  EXPECT_GT(read->latency, seconds(4000));
  EXPECT_EQ(read->bytes, 0xFFFFFFFFU);
  EXPECT_EQ(read->limit, 65535U);
  EXPECT_EQ(read->waiting, 65535U);
  EXPECT_EQ(read->cost, 16383U);
  large.at = Duration(-5);
  EXPECT_EQ(unpack(pack(large))->at, Duration(0));
}

TEST(RecordedDecision, ADecisionOfTwoHalvesIsNone) {
  EXPECT_FALSE(unpack({}).has_value());
  Rng rng(2);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    const DecisionWords old = pack(any_decision(rng));
    DecisionWords torn = pack(any_decision(rng));
    const std::size_t from = 1 + rng.below(torn.size() - 1);
    for (std::size_t w = from; w < torn.size(); ++w) torn[w] = old[w];
    taken += unpack(torn).has_value() ? 1 : 0;
  }
  EXPECT_LT(taken, 60) << "one of 1023 matches by chance";
}

}  // namespace
}  // namespace weir::inline v0::inline policy
