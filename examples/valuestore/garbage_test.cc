#include "garbage.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage_testing.h"

namespace valuestore {
namespace {

class Garbage : public ::testing::Test {
 protected:
  Swept round(std::uint64_t epoch, const KeySet& live = {}) {
    EXPECT_EQ(writer.apply(start_epoch(epoch)), ChangeEnd::kDone);
    return sweep_garbage(*on.storage, writer, live, epoch);
  }
  [[nodiscard]] bool there(const std::string& bytes) const {
    return on.storage->read(leaf(bytes).key()).has_value();
  }

  StorageOnDisk on;
  WriterThread writer{*on.storage};
};

TEST_F(Garbage, AValueThatNobodyNeedsGoesInTheSecondRoundAfterItsPut) {
  writer.apply(put(leaf("x")));
  EXPECT_EQ(round(2).removed, 0U);
  EXPECT_TRUE(there("x"));
  EXPECT_EQ(round(3).removed, 1U);
  EXPECT_FALSE(there("x"));
}

TEST_F(Garbage, WhatIsAliveStaysForever) {
  writer.apply_all({put(leaf("alive")), put(leaf("dead"))});
  for (std::uint64_t epoch = 2; epoch < 8; ++epoch) round(epoch, {leaf("alive").key()});
  EXPECT_TRUE(there("alive"));
  EXPECT_FALSE(there("dead"));
}

TEST_F(Garbage, APutOfAnExistingKeyRenewsIt) {
  writer.apply(put(leaf("x")));
  round(2);
  EXPECT_EQ(writer.apply(put(leaf("x"))), ChangeEnd::kDone);
  EXPECT_EQ(round(3).removed, 0U);
  EXPECT_TRUE(there("x"));
}

TEST_F(Garbage, ALateCopyBringsAValueBackForOneRoundAtMost) {
  writer.apply(put(leaf("x")));
  round(2);
  round(3);
  writer.apply(put(leaf("x", 1)));  // a hint or a repair: it keeps the epoch of its source
  EXPECT_TRUE(there("x"));
  round(4);
  EXPECT_FALSE(there("x"));
}

TEST_F(Garbage, ManyPagesAreSwept) {
  std::vector<Change> puts;
  for (int i = 0; i < 300; ++i) puts.push_back(put(leaf(std::to_string(i))));
  writer.apply_all(puts);
  EXPECT_EQ(round(2).kept, 300U);
  const Swept swept = round(3);
  EXPECT_EQ(swept.removed, 300U);
  EXPECT_FALSE(swept.failed);
}

TEST_F(Garbage, AStoreThatCannotWriteIsReported) {
  writer.apply_all({put(leaf("x")), start_epoch(3)});
  on.disk->cut();
  EXPECT_TRUE(sweep_garbage(*on.storage, writer, {}, 3).failed);
}

}  // namespace
}  // namespace valuestore
