#include "weir/experimental/io/loop_threads.h"

#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace weir::inline v0::io {
namespace {

TEST(LoopThreads, EachLoopHasItsOwnThread) {
  LoopThreads threads({.count = 3, .pin = true, .name = "test"});
  ASSERT_EQ(threads.size(), 3U);
  threads.start();
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::latch done(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    threads.at(i).post([&] {
      {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      }
      done.count_down();
    });
  }
  done.wait();
  threads.stop();
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen.count(std::this_thread::get_id()), 0U);
  threads.stop();  // a second call does nothing
}

TEST(LoopThreads, StopWithoutStartAndRestartWork) {
  LoopThreads threads({.count = 1, .pin = false, .name = "again"});
  threads.stop();
  for (int round = 0; round < 3; ++round) {
    threads.start();
    threads.stop();
  }
}

TEST(LoopThreads, DefaultIsOnePerUsableCore) {
  const LoopThreads threads;
  EXPECT_EQ(threads.size(), usable_cores());
  EXPECT_GE(usable_cores(), 1U);
}

}  // namespace
}  // namespace weir::inline v0::io
