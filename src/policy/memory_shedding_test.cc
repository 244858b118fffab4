#include "weir/policy/memory_shedding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "odd_numbers_testing.h"

namespace weir::inline v0::inline policy {
namespace {

Reason shed_at(double usage, Priority priority, std::uint64_t ordinal = 0, double ratio = 1.0) {
  const MemoryLevel level = next_memory_level(MemoryLevel::kNormal, usage, {});
  return decide_memory(level, priority, ordinal, ShedShare(ratio));
}

TEST(MemoryShedding, PressureShedsLowPriority) {
  EXPECT_EQ(shed_at(0.90, Priority::kCritical), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.90, Priority::kHigh), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.90, Priority::kNormal), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.90, Priority::kLow), Reason::kMemory);
}

TEST(MemoryShedding, CriticalAdmitsOnlyHigh) {
  EXPECT_EQ(shed_at(0.96, Priority::kCritical), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.96, Priority::kHigh), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.96, Priority::kNormal), Reason::kMemory);
  EXPECT_EQ(shed_at(0.96, Priority::kLow), Reason::kMemory);
}

TEST(MemoryShedding, ThresholdItselfIsNotPressure) {
  EXPECT_EQ(shed_at(0.85, Priority::kLow), Reason::kAdmitted);
  EXPECT_EQ(shed_at(0.95, Priority::kNormal), Reason::kAdmitted);
}

TEST(MemoryShedding, RatioDoesNotSoftenCritical) {
  EXPECT_EQ(shed_at(0.96, Priority::kLow, 0, 0.0), Reason::kMemory);
}

TEST(MemoryShedding, LevelIsLeftAtTheThresholdMinusTheMargin) {
  const MemoryRules rules;
  struct Step {
    double usage;
    MemoryLevel expected;
  };
  const std::vector<Step> steps = {
      {0.80, MemoryLevel::kNormal},    {0.86, MemoryLevel::kPressured},
      {0.84, MemoryLevel::kPressured}, {0.821, MemoryLevel::kPressured},
      {0.819, MemoryLevel::kNormal},   {0.84, MemoryLevel::kNormal},
      {0.96, MemoryLevel::kCritical},  {0.94, MemoryLevel::kCritical},
      {0.921, MemoryLevel::kCritical}, {0.919, MemoryLevel::kPressured},
      {0.83, MemoryLevel::kPressured}, {0.96, MemoryLevel::kCritical},
      {0.50, MemoryLevel::kNormal},  // both levels left at once
      {0.96, MemoryLevel::kCritical},  {0.83, MemoryLevel::kPressured},
  };
  MemoryLevel level = MemoryLevel::kNormal;
  for (const Step& step : steps) {
    level = next_memory_level(level, step.usage, rules);
    EXPECT_EQ(name_of(level), name_of(step.expected)) << step.usage;
  }
}

TEST(MemoryShedding, OscillationAroundAThresholdDoesNotFlap) {
  Rng rng(91);
  MemoryLevel level = next_memory_level(MemoryLevel::kNormal, 0.86, {});
  for (int i = 0; i < 1000; ++i) {
    level = next_memory_level(level, 0.83 + rng.unit() * 0.05, {});
    ASSERT_EQ(level, MemoryLevel::kPressured);
  }
}

TEST(MemoryShedding, UnreadableUsageCountsAsZero) {
  EXPECT_EQ(next_memory_level(MemoryLevel::kCritical, kNaN, {}), MemoryLevel::kNormal);
  EXPECT_EQ(next_memory_level(MemoryLevel::kNormal, -1.0, {}), MemoryLevel::kNormal);
  EXPECT_EQ(next_memory_level(MemoryLevel::kNormal, 7.0, {}), MemoryLevel::kCritical);
}

TEST(MemoryShedding, LevelIsMonotoneInUsageAndInHistory) {
  Rng rng(92);
  for (int i = 0; i < 100'000; ++i) {
    MemoryRules rules;
    rules.memory_pressure_threshold = 0.05 + rng.unit() * 0.95;
    rules.memory_critical_threshold =
        rules.memory_pressure_threshold + rng.unit() * (1 - rules.memory_pressure_threshold);
    rules.leave_margin = rng.unit() * 0.04;
    ASSERT_TRUE(rules.validate().empty());
    const double low = rng.unit() * 1.1;
    const double high = low + rng.unit() * 0.2;
    const auto before = static_cast<MemoryLevel>(rng.below(3));
    ASSERT_LE(next_memory_level(before, low, rules), next_memory_level(before, high, rules));
    ASSERT_LE(next_memory_level(MemoryLevel::kNormal, low, rules),
              next_memory_level(before, low, rules));
    ASSERT_EQ(next_memory_level(before, 0.0, rules), MemoryLevel::kNormal);  // always left again
  }
}

TEST(MemoryShedding, HigherLevelNeverAdmitsWhatALowerRefuses) {
  for (const Priority p : kPriorities) {
    for (std::uint64_t n = 0; n < 100; ++n) {
      const ShedShare share(0.37);
      const bool normal = decide_memory(MemoryLevel::kNormal, p, n, share) == Reason::kAdmitted;
      const bool pressed = decide_memory(MemoryLevel::kPressured, p, n, share) == Reason::kAdmitted;
      const bool critical = decide_memory(MemoryLevel::kCritical, p, n, share) == Reason::kAdmitted;
      EXPECT_TRUE(normal);
      EXPECT_GE(pressed, critical);
    }
  }
}

TEST(MemoryShedding, OnlyLowUnderPressureIsCounted) {
  for (const Priority p : kPriorities) {
    EXPECT_FALSE(counts_low_request(MemoryLevel::kNormal, p));
    EXPECT_FALSE(counts_low_request(MemoryLevel::kCritical, p));
    EXPECT_EQ(counts_low_request(MemoryLevel::kPressured, p), p == Priority::kLow);
  }
}

TEST(ShedShare, HalfShedsEverySecond) {
  const ShedShare half(0.5);
  for (std::uint64_t n = 0; n < 100; ++n) EXPECT_EQ(half.sheds(n), n % 2 == 1) << n;
}

TEST(ShedShare, EndsAreAllAndNone) {
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_TRUE(ShedShare(1.0).sheds(n));
    EXPECT_TRUE(ShedShare(7.0).sheds(n));
    EXPECT_FALSE(ShedShare(0.0).sheds(n));
    EXPECT_FALSE(ShedShare(-1.0).sheds(n));
    EXPECT_FALSE(ShedShare(kNaN).sheds(n));
  }
}

TEST(ShedShare, AnyRunOfNShedsFloorOrCeilOfRatioTimesN) {
  Rng rng(93);
  for (int trial = 0; trial < 300; ++trial) {
    const ShedShare share(rng.unit());
    const std::uint64_t start = rng.next_u64() >> rng.below(64);
    std::uint64_t shed = 0;
    for (std::uint64_t n = 1; n <= 1000; ++n) {
      shed += share.sheds(start + n - 1) ? 1U : 0U;
      // A counter wraps at 2^64, where the pattern may be off by one.
      if (start > std::numeric_limits<std::uint64_t>::max() - 2000) break;
      const std::uint64_t millionths = n * share.per_million();
      ASSERT_GE(shed, millionths / 1'000'000) << share.per_million() << " " << start << " " << n;
      ASSERT_LE(shed, (millionths + 999'999) / 1'000'000);
    }
  }
}

TEST(ShedShare, FirstNAreExact) {
  for (const double ratio : {0.1, 0.25, 0.333333, 0.5, 0.9}) {
    const ShedShare share(ratio);
    std::uint64_t shed = 0;
    for (std::uint64_t n = 0; n < 1'000'000; ++n) shed += share.sheds(n) ? 1U : 0U;
    EXPECT_EQ(shed, share.per_million());
    EXPECT_EQ(share.per_million(), static_cast<std::uint32_t>(std::lround(ratio * 1e6)));
  }
}

TEST(MemoryRules, ValidateHoldsEachBound) {
  EXPECT_TRUE(MemoryRules{}.validate().empty());
  const auto keys = [](MemoryRules rules) {
    std::vector<std::string> out;
    for (const ConfigError& error : rules.validate()) out.push_back(error.key);
    return out;
  };
  using Keys = std::vector<std::string>;
  for (const double bad : {0.04, 1.01, -1.0, kNaN}) {
    const Keys pressure = keys({.memory_pressure_threshold = bad});
    ASSERT_FALSE(pressure.empty()) << bad;
    EXPECT_EQ(pressure.front(), "memory_pressure_threshold");
    const Keys critical = keys({.memory_critical_threshold = bad});
    ASSERT_FALSE(critical.empty()) << bad;
    EXPECT_EQ(critical.front(), "memory_critical_threshold");
  }
  EXPECT_EQ(keys({.memory_critical_threshold = 0.85}), Keys{});
  EXPECT_EQ(keys({.memory_critical_threshold = 0.84}), Keys{"memory_critical_threshold"});
  for (const double bad : {-0.01, 1.01, kNaN}) {
    EXPECT_EQ(keys({.low_priority_shed_ratio = bad}), Keys{"low_priority_shed_ratio"});
  }
  for (const double bad : {-0.01, 0.05, kNaN}) {
    EXPECT_EQ(keys({.leave_margin = bad}), Keys{"leave_margin"});
  }
  EXPECT_EQ(keys({.low_priority_shed_ratio = 0.0, .leave_margin = 0.0}), Keys{});
}

}  // namespace
}  // namespace weir::inline v0::inline policy
