#include "writer_thread.h"

#include <future>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "storage_testing.h"

namespace valuestore {
namespace {

TEST(WriterThread, WhatWaitsDuringAnFsyncSharesTheNextOne) {
  StorageOnDisk on;
  const std::uint64_t before = on.disk->syncs();
  {
    WriterThread writer(*on.storage);
    std::vector<Change> changes;
    changes.reserve(200);
    for (int i = 0; i < 200; ++i) changes.push_back(put(leaf(std::to_string(i))));
    for (const ChangeEnd end : writer.apply_all(changes)) EXPECT_EQ(end, ChangeEnd::kDone);
    EXPECT_EQ(writer.counts().changes, 200U);
    EXPECT_LT(writer.counts().batches, 100U);
  }
  EXPECT_LT(on.disk->syncs() - before, 100U);
}

TEST(WriterThread, WhatWaitsIsBounded) {
  StorageOnDisk on;
  WriterThread writer(*on.storage, {.waiting_max = 2});
  std::promise<void> hold;
  std::promise<void> held;
  writer.submit(put(leaf("first")), [&](ChangeEnd) {  // keeps the writer busy
    held.set_value();
    hold.get_future().wait();
  });
  held.get_future().wait();
  std::vector<std::promise<ChangeEnd>> ends(3);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    writer.submit(put(leaf(std::to_string(i))), [&, i](ChangeEnd end) { ends[i].set_value(end); });
  }
  EXPECT_EQ(ends[2].get_future().get(), ChangeEnd::kBusy) << "while the writer is busy";
  hold.set_value();
  EXPECT_EQ(ends[0].get_future().get(), ChangeEnd::kDone);
  EXPECT_EQ(ends[1].get_future().get(), ChangeEnd::kDone);
}

TEST(WriterThread, EveryChangeOfManyThreadsEndsAndIsThere) {
  StorageOnDisk on;
  constexpr int kThreads = 8;
  constexpr int kEach = 20;
  {
    WriterThread writer(*on.storage);
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < kEach; ++i) {
          const Record record = leaf(std::to_string(t) + "/" + std::to_string(i));
          EXPECT_EQ(writer.apply(put(record)), ChangeEnd::kDone);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  on.cut_power();
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kEach; ++i) {
      const Record record = leaf(std::to_string(t) + "/" + std::to_string(i));
      EXPECT_TRUE(on.storage->read(record.key()).has_value());
    }
  }
}

TEST(WriterThread, ASweepDoesNotTakeWhatAPutBeforeItRenewed) {
  StorageOnDisk on;
  on.commit_all({put(leaf("x")), start_epoch(3)});
  WriterThread writer(*on.storage);
  const auto ends = writer.apply_all({put(leaf("x")), sweep(leaf("x").key(), 1)});
  EXPECT_EQ(ends[0], ChangeEnd::kDone);
  EXPECT_EQ(ends[1], ChangeEnd::kNothing);
  EXPECT_TRUE(on.storage->read(leaf("x").key()).has_value());
}

}  // namespace
}  // namespace valuestore
