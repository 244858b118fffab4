#include "weir/policy/outgoing_state.h"

#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using enum OutgoingState;
using std::chrono::milliseconds;

OutgoingFill of_items(std::uint32_t primary, std::uint32_t ring = 0) {
  return {.primary = primary, .primary_max = 500, .ring = ring, .ring_max = 100, .bytes_max = 1000};
}

TEST(OutgoingState, FollowsTheFillOnTheWayUp) {
  struct Case {
    std::uint32_t primary;
    std::uint32_t ring;
    OutgoingState state;
  };
  const Case cases[] = {{0, 0, kHealthy},     {349, 0, kHealthy},    {350, 0, kThrottled},
                        {424, 0, kThrottled}, {425, 0, kBatching},   {474, 0, kBatching},
                        {475, 0, kOverflow},  {500, 0, kOverflow},   {500, 1, kOverflow},
                        {500, 99, kOverflow}, {500, 100, kSaturated}};
  for (const Case& c : cases) {
    EXPECT_EQ(outgoing_state(kHealthy, of_items(c.primary, c.ring)), c.state)
        << c.primary << " + " << c.ring;
  }
}

TEST(OutgoingState, ARingInUseIsOverflowHoweverEmptyTheQueueIs) {
  EXPECT_EQ(outgoing_state(kHealthy, of_items(10, 1)), kOverflow);  // another loop made the room
}

TEST(OutgoingState, IsLeftFivePointsBelowItsThreshold) {
  EXPECT_EQ(outgoing_state(kThrottled, of_items(325)), kThrottled);  // 65 %
  EXPECT_EQ(outgoing_state(kThrottled, of_items(324)), kHealthy);
  EXPECT_EQ(outgoing_state(kBatching, of_items(400)), kBatching);  // 80 %
  EXPECT_EQ(outgoing_state(kBatching, of_items(399)), kThrottled);
  EXPECT_EQ(outgoing_state(kOverflow, of_items(450)), kOverflow);  // 90 %
  EXPECT_EQ(outgoing_state(kOverflow, of_items(449)), kBatching);
  EXPECT_EQ(outgoing_state(kSaturated, of_items(500, 95)), kSaturated);
  EXPECT_EQ(outgoing_state(kSaturated, of_items(500, 94)), kOverflow);
  EXPECT_EQ(outgoing_state(kSaturated, of_items(0)), kHealthy);  // all at once
}

TEST(OutgoingState, CountsBytesLikeItems) {
  OutgoingFill fill = of_items(1);
  fill.bytes = 849;
  EXPECT_EQ(outgoing_state(kHealthy, fill), kThrottled);
  fill.bytes = 850;
  EXPECT_EQ(outgoing_state(kHealthy, fill), kBatching);
  fill.bytes = fill.bytes_max = UINT64_MAX;
  EXPECT_EQ(fill.permille(), 1000U);
}

TEST(OutgoingState, WithoutARingAFullQueueIsSaturated) {
  OutgoingFill fill = of_items(500);
  fill.ring_max = 0;
  EXPECT_EQ(outgoing_state(kHealthy, fill), kSaturated);
  fill.primary = 499;
  EXPECT_EQ(outgoing_state(kSaturated, fill), kOverflow);
}

TEST(OutgoingState, IsMonotoneInTheFillAndDoesNotFlap) {
  Rng rng(3);
  for (int run = 0; run < 20'000; ++run) {
    const auto before = static_cast<OutgoingState>(rng.below(kOutgoingStateCount));
    const auto primary = static_cast<std::uint32_t>(rng.below(501));
    const auto ring = static_cast<std::uint32_t>(primary == 500 ? rng.below(101) : 0);
    const OutgoingFill fill = of_items(primary, ring);
    const OutgoingState state = outgoing_state(before, fill);
    ASSERT_EQ(outgoing_state(state, fill), state);
    ASSERT_GE(state, outgoing_state(kHealthy, fill));
    ASSERT_LE(outgoing_state(kHealthy, fill), outgoing_state(kSaturated, fill));
    const OutgoingFill fuller =
        primary < 500 ? of_items(primary + 1) : of_items(500, std::min(ring + 1, 100U));
    ASSERT_GE(outgoing_state(before, fuller), state);
  }
}

TEST(OutgoingAdvice, IsMonotoneByDefault) {
  OutgoingAdvice last{};
  for (std::size_t i = 0; i < kOutgoingStateCount; ++i) {
    const OutgoingAdvice advice =
        advice_of(static_cast<OutgoingState>(i), AdviceProfile::kMonotone);
    EXPECT_GE(advice.delay, last.delay);
    EXPECT_GE(advice.batch_only, last.batch_only);
    last = advice;
  }
  EXPECT_EQ(advice_of(kOverflow, AdviceProfile::kMonotone).delay, milliseconds(200));
  EXPECT_EQ(last.delay, milliseconds(500));
}

TEST(OutgoingAdvice, TheSeedProfileIsLiteral) {
  const std::vector<Duration> expected = {milliseconds(0), milliseconds(50), milliseconds(200),
                                          milliseconds(100), milliseconds(500)};
  for (std::size_t i = 0; i < kOutgoingStateCount; ++i) {
    EXPECT_EQ(advice_of(static_cast<OutgoingState>(i), AdviceProfile::kSeed).delay, expected[i]);
  }
  EXPECT_FALSE(advice_of(kThrottled, AdviceProfile::kSeed).batch_only);
  EXPECT_TRUE(advice_of(kBatching, AdviceProfile::kSeed).batch_only);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
