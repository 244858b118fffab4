// What a node promised is there after its power failed, wherever that happened.
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "storage.h"
#include "storage_testing.h"

namespace valuestore {
namespace {

void expect_all(const Storage& storage, const std::vector<Record>& records) {
  for (const Record& record : records) {
    const auto read = storage.read(record.key());
    ASSERT_TRUE(read.has_value()) << record.payload;
    EXPECT_EQ(read->payload, record.payload);
  }
}

TEST(StorageCrash, WhatWasAcknowledgedIsThereWhereverThePowerFails) {
  for (int at = 1; at <= 24; at += 3) {
    StorageOnDisk on;
    on.disk->cut_at_sync(at);
    std::vector<Record> acknowledged;
    for (int i = 0; i < 24; ++i) {
      const Record record = leaf("value " + std::to_string(i));
      if (on.commit(put(record, i % 3 == 0 ? "b" : "")) == ChangeEnd::kDone) {
        acknowledged.push_back(record);
      }
    }
    EXPECT_TRUE(on.disk->is_cut());
    EXPECT_LT(acknowledged.size(), 24U);
    on.cut_power(static_cast<std::uint64_t>(at) * 7);  // a torn end of the log
    expect_all(*on.storage, acknowledged);
    for (const ValueKey& key : on.storage->hints("b", std::nullopt, 100)) {
      EXPECT_TRUE(on.storage->read(key).has_value()) << "a hint without its value";
    }
  }
}

TEST(StorageCrash, EachAcknowledgedBatchWasSynced) {
  StorageOnDisk on;
  const std::uint64_t before = on.disk->syncs();
  for (int i = 0; i < 5; ++i) on.commit(put(leaf(std::to_string(i))));
  EXPECT_GE(on.disk->syncs(), before + 5);
}

TEST(StorageCrash, APutBeforeWhoseFsyncThePowerFailsIsNotAcknowledged) {
  StorageOnDisk on;
  EXPECT_EQ(on.commit(put(leaf("safe"))), ChangeEnd::kDone);
  on.disk->cut_at_sync(1);
  EXPECT_EQ(on.commit(put(leaf("lost"))), ChangeEnd::kFailed);
  on.cut_power();
  EXPECT_TRUE(on.storage->read(leaf("safe").key()).has_value());
  EXPECT_FALSE(on.storage->read(leaf("lost").key()).has_value());
}

TEST(StorageCrash, AfterTheFsyncAndBeforeTheReplyTheValueIsThere) {
  StorageOnDisk on;
  EXPECT_EQ(on.commit(put(leaf("no reply yet"))), ChangeEnd::kDone);
  on.cut_power();
  EXPECT_TRUE(on.storage->read(leaf("no reply yet").key()).has_value());
}

TEST(StorageCrash, AHintWhoseRemovalWasForgottenIsThereAgainWithItsValue) {
  StorageOnDisk on;
  const Record record = leaf("hinted");
  on.commit(put(record, "b"));
  EXPECT_EQ(on.commit(drop_hint(record.key(), "b")), ChangeEnd::kDone);
  on.cut_power();
  EXPECT_EQ(on.storage->hint_count(), 1U) << "the removal is not synced";
  EXPECT_TRUE(on.storage->read(record.key()).has_value());
}

TEST(StorageCrash, InASweepOnlyWhatIsSweptIsLost) {
  for (int at = 1; at <= 5; ++at) {
    StorageOnDisk on;
    std::vector<Record> kept;
    for (int i = 0; i < 40; ++i) on.commit(put(leaf(std::to_string(i))));
    on.commit(start_epoch(3));
    for (int i = 0; i < 40; i += 4) {
      kept.push_back(leaf(std::to_string(i)));
      EXPECT_EQ(on.commit(put(kept.back())), ChangeEnd::kDone);
    }
    on.disk->cut_at_sync(at);
    for (int i = 0; i < 40; i += 8) {
      std::vector<Change> sweeps;
      for (int j = i; j < i + 8; ++j) sweeps.push_back(sweep(leaf(std::to_string(j)).key(), 1));
      on.commit_all(sweeps);
    }
    on.cut_power();
    EXPECT_EQ(on.storage->epoch(), 3U) << "the epoch is on the disk before anybody hears of it";
    expect_all(*on.storage, kept);
  }
}

void fill_and_empty(StorageOnDisk& on) {
  EXPECT_EQ(on.commit(put(leaf("before"))), ChangeEnd::kDone);
  on.disk->set_full(true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(on.commit(put(leaf("while full"))), ChangeEnd::kDiskFull);
    EXPECT_TRUE(on.storage->read(leaf("before").key()).has_value());
    EXPECT_FALSE(on.storage->read(leaf("while full").key()).has_value());
  }
  on.disk->set_full(false);
  // RocksDB looks every five seconds whether there is room again.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (on.commit(put(leaf("after"))) != ChangeEnd::kDone) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
  on.cut_power();
  EXPECT_TRUE(on.storage->read(leaf("before").key()).has_value());
  EXPECT_TRUE(on.storage->read(leaf("after").key()).has_value());
}

TEST(StorageCrash, AFullDiskRefusesPutsAndReadsAndRecoversByItself) {
  StorageOnDisk on;
  fill_and_empty(on);
}

TEST(StorageCrash, ADiskThatIsSuddenlyFullDoesToo) {
  StorageOnDisk on;
  on.disk->hide_free_space();
  fill_and_empty(on);
}

}  // namespace
}  // namespace valuestore
