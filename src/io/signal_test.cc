#include "weir/experimental/io/signal.h"

#include <csignal>

#include <gtest/gtest.h>

namespace weir::inline v0::io {
namespace {

struct Ear {
  void heard(int number) {
    last = number;
    ++count;
  }
  int last = 0;
  int count = 0;
};

TEST(SignalWatcher, HearsTheSignalOnTheLoopUntilClosed) {
  Loop loop;
  Ear ear;
  SignalWatcher watcher;
  ASSERT_TRUE(watcher.start(loop, SIGUSR1, Callback<int>::to<&Ear::heard>(ear)));
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  while (ear.count == 0) loop.run_once(true);
  EXPECT_EQ(ear.last, SIGUSR1);
  watcher.close();
  watcher.close();
  loop.run_once();
}

TEST(SignalWatcher, RefusesWhatCannotBeWatched) {
  Loop loop;
  Ear ear;
  SignalWatcher watcher;
  EXPECT_FALSE(watcher.start(loop, SIGKILL, Callback<int>::to<&Ear::heard>(ear)));
  loop.run_once();
}

}  // namespace
}  // namespace weir::inline v0::io
