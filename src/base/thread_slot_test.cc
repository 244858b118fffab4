#include "weir/base/thread_slot.h"

#include <array>
#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ThreadSlot, LiveThreadsHaveDifferentSlotsUntilTheyRunOut) {
  constexpr int kThreads = 40;
  std::array<std::uint32_t, kThreads> slots{};
  std::barrier all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      slots[static_cast<std::size_t>(i)] = this_thread_slot();
      all.arrive_and_wait();  // no thread ends and releases its slot before all have one
    });
  }
  for (std::thread& t : threads) t.join();
  std::set<std::uint32_t> exclusive;
  int shared = 0;
  for (const std::uint32_t slot : slots) {
    ASSERT_LT(slot, kThreadSlots);
    if (slot == kSharedSlot) {
      ++shared;
    } else {
      EXPECT_TRUE(exclusive.insert(slot).second) << slot;
    }
  }
  EXPECT_GE(shared, kThreads - static_cast<int>(kSharedSlot));
}

TEST(ThreadSlot, AdditionsAreExactWithMoreThreadsThanSlotsAndAcrossReuse) {
  std::array<std::atomic<std::uint64_t>, kThreadSlots> counters{};
  constexpr int kThreads = 48;
  constexpr int kRounds = 3;
  constexpr int kAdds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < kAdds; ++n) {
          const std::uint32_t slot = this_thread_slot();
          slot_add(counters[slot], std::uint64_t{1}, slot);
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  std::uint64_t total = 0;
  for (const auto& c : counters) total += c.load();
  EXPECT_EQ(total, std::uint64_t{kThreads} * kRounds * kAdds);
}

TEST(ThreadSlot, ASlotIsReusedAfterItsThreadEnded) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 100; ++i) std::thread([&] { seen.insert(this_thread_slot()); }).join();
  EXPECT_LT(seen.size(), 3U);
}

}  // namespace
}  // namespace weir
