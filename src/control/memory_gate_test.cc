#include "memory_gate.h"

#include <gtest/gtest.h>

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

TEST(MemoryGate, ShedsByLevel) {
  MemoryGate gate;
  gate.set_rules(MemoryRules{});
  struct Row {
    double usage;
    bool normal;
    bool low;
  };
  for (const Row& row : {Row{0.0, false, false}, Row{0.85, false, false}, Row{0.86, false, true},
                         Row{0.95, false, true}, Row{0.96, true, true}, Row{5.0, true, true}}) {
    gate.set(0, true);
    gate.set(row.usage, true);
    EXPECT_FALSE(gate.sheds(Priority::kCritical, true)) << row.usage;
    EXPECT_FALSE(gate.sheds(Priority::kHigh, true)) << row.usage;
    EXPECT_EQ(gate.sheds(Priority::kNormal, true), row.normal) << row.usage;
    EXPECT_EQ(gate.sheds(Priority::kLow, true), row.low) << row.usage;
  }
}

TEST(MemoryGate, ALevelIsLeftBelowWhereItWasEntered) {
  MemoryGate gate;
  gate.set_rules(MemoryRules{});
  gate.set(0.86, true);
  gate.set(0.83, true);
  EXPECT_TRUE(gate.sheds(Priority::kLow, true));
  gate.set(0.82, true);
  EXPECT_FALSE(gate.sheds(Priority::kLow, true));
}

TEST(MemoryGate, AnUnreadableReadingCountsAsZero) {
  MemoryGate gate;
  gate.set_rules(MemoryRules{});
  gate.set(0.99, true);
  ASSERT_TRUE(gate.sheds(Priority::kNormal, true));
  gate.set(0.99, false);
  EXPECT_FALSE(gate.sheds(Priority::kNormal, true));
  EXPECT_EQ(gate.usage(), 0.0);
  EXPECT_FALSE(gate.readable());
  EXPECT_EQ(gate.level(), MemoryLevel::kNormal);
}

TEST(MemoryGate, NewThresholdsJudgeTheLastReadingAtOnce) {
  MemoryGate gate;
  gate.set_rules(MemoryRules{});
  gate.set(0.80, true);
  ASSERT_FALSE(gate.sheds(Priority::kLow, true));
  gate.set_rules(MemoryRules{.memory_pressure_threshold = 0.5, .memory_critical_threshold = 0.7});
  EXPECT_TRUE(gate.sheds(Priority::kLow, true));
  EXPECT_TRUE(gate.sheds(Priority::kNormal, true));
}

// The ratio is exact over all threads, not random.
TEST(MemoryGate, TheShareOfLowRequestsIsExactUnderThreads) {
  constexpr int kEach = rounds(20'000);
  constexpr int kThreads = 4;
  MemoryGate gate;
  gate.set_rules(MemoryRules{.low_priority_shed_ratio = 0.3});
  gate.set(0.90, true);
  std::atomic<int> shed{0};
  run_together(kThreads, [&](std::size_t) {
    for (int i = 0; i < kEach; ++i) {
      if (gate.sheds(Priority::kLow, true)) shed.fetch_add(1);
      if (gate.sheds(Priority::kNormal, true)) shed.fetch_add(1'000'000);
    }
  });
  EXPECT_EQ(shed.load(), kThreads * kEach * 3 / 10);
}

}  // namespace
}  // namespace weir::inline v0::inline control
