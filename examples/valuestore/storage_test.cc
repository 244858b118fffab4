#include "storage.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage_testing.h"

namespace valuestore {
namespace {

TEST(Storage, ReadsWhatWasPutAndNothingElse) {
  StorageOnDisk on;
  const Record record = leaf("hello");
  EXPECT_EQ(on.commit(put(record)), ChangeEnd::kDone);
  const auto read = on.storage->read(record.key());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->payload, "hello");
  EXPECT_EQ(read->epoch, 1U);
  EXPECT_EQ(on.storage->read(leaf("other").key()).error(), Storage::Miss::kAbsent);
}

TEST(Storage, BytesWithAnotherHashAreNotTheAnswer) {
  StorageOnDisk on;
  Change change = put(leaf("right"));
  change.record.payload = "wrong";
  EXPECT_EQ(on.commit(change), ChangeEnd::kDone);
  EXPECT_EQ(on.storage->read(change.key).error(), Storage::Miss::kCorrupt);
  EXPECT_EQ(on.storage->corrupt_reads(), 1U);
  EXPECT_EQ(on.commit(put(leaf("right"))), ChangeEnd::kDone);
  EXPECT_EQ(on.storage->read(change.key)->payload, "right");
}

TEST(Storage, AHintIsWrittenWithItsValueAndGoesWithIt) {
  StorageOnDisk on;
  const Record record = leaf("hinted");
  EXPECT_EQ(on.commit(put(record, "b")), ChangeEnd::kDone);
  EXPECT_EQ(on.storage->hint_count(), 1U);
  EXPECT_EQ(on.storage->hints("b", std::nullopt, 10), std::vector{record.key()});
  EXPECT_TRUE(on.storage->hints("a", std::nullopt, 10).empty());
  EXPECT_EQ(on.commit(drop_hint(record.key(), "b")), ChangeEnd::kDone);
  EXPECT_EQ(on.storage->hint_count(), 0U);
  EXPECT_EQ(on.storage->read(record.key()).error(), Storage::Miss::kAbsent);
}

TEST(Storage, AHintThatWasPutAgainSinceItsCopyLeftStaysWithItsValue) {
  StorageOnDisk on;
  const Record record = leaf("put again");
  on.commit(put(record, "b"));
  on.commit(start_epoch(2));
  // In an earlier batch, and in the same.
  EXPECT_EQ(on.commit(put(record, "b")), ChangeEnd::kDone);
  EXPECT_EQ(on.commit(drop_hint(record.key(), "b", 1)), ChangeEnd::kNothing);
  on.commit(start_epoch(3));
  EXPECT_EQ(on.commit_all({put(record, "b"), drop_hint(record.key(), "b", 2)})[1],
            ChangeEnd::kNothing);
  EXPECT_EQ(on.storage->hint_count(), 1U);
  EXPECT_EQ(on.storage->read(record.key())->epoch, 3U);
  EXPECT_EQ(on.commit(drop_hint(record.key(), "b", 3)), ChangeEnd::kDone);
  EXPECT_FALSE(on.storage->read(record.key()).has_value());
}

TEST(Storage, AHintThatBecameARootSinceItsCopyLeftStays) {
  StorageOnDisk on;
  Change rooted = put(leaf("root"), "b");
  rooted.root = true;
  on.commit(put(leaf("root"), "b"));
  Change drop = drop_hint(rooted.key, "b");
  EXPECT_EQ(on.commit_all({rooted, drop})[1], ChangeEnd::kNothing);
  EXPECT_EQ(on.commit(drop), ChangeEnd::kNothing);
  EXPECT_TRUE(on.storage->is_root(rooted.key));
  drop.root = true;
  EXPECT_EQ(on.commit(drop), ChangeEnd::kDone);
  EXPECT_FALSE(on.storage->is_root(rooted.key));
}

TEST(Storage, AValueStaysAsLongAsAnotherHintNeedsIt) {
  StorageOnDisk on;
  const Record record = leaf("for both");
  on.commit_all({put(record, "a"), put(record, "b"), drop_hint(record.key(), "a")});
  EXPECT_TRUE(on.storage->read(record.key()).has_value());
  on.commit(drop_hint(record.key(), "b"));
  EXPECT_FALSE(on.storage->read(record.key()).has_value());
}

TEST(Storage, HintsAreBoundedAndOneBeyondIsRefused) {
  StorageOnDisk on(2);
  const auto ends = on.commit_all(
      {put(leaf("1"), "a"), put(leaf("2"), "a"), put(leaf("3"), "a"), put(leaf("1"), "a")});
  EXPECT_EQ(ends[0], ChangeEnd::kDone);
  EXPECT_EQ(ends[1], ChangeEnd::kDone);
  EXPECT_EQ(ends[2], ChangeEnd::kHintsFull);
  EXPECT_EQ(ends[3], ChangeEnd::kDone) << "it is already stored";
  EXPECT_EQ(on.storage->hint_count(), 2U);
  EXPECT_FALSE(on.storage->read(leaf("3").key()).has_value());
  on.commit(drop_hint(leaf("1").key(), "a"));
  EXPECT_EQ(on.commit(put(leaf("3"), "a")), ChangeEnd::kDone);
}

TEST(Storage, HintsAreCountedAgainAfterARestart) {
  StorageOnDisk on;
  on.commit_all({put(leaf("1"), "a"), put(leaf("2"), "b")});
  on.cut_power();
  EXPECT_EQ(on.storage->hint_count(), 2U);
}

TEST(Storage, ASweepTakesWhatNobodyPutSinceAndKeepsWhatWasPutAgain) {
  StorageOnDisk on;
  on.commit_all({put(leaf("old")), put(leaf("renewed")), put(leaf("hinted"), "b")});
  EXPECT_EQ(on.commit(start_epoch(3)), ChangeEnd::kDone);
  const auto ends = on.commit_all({put(leaf("renewed")), sweep(leaf("old").key(), 1),
                                   sweep(leaf("renewed").key(), 1), sweep(leaf("hinted").key(), 1),
                                   sweep(leaf("absent").key(), 1)});
  EXPECT_EQ(ends[1], ChangeEnd::kDone);
  EXPECT_EQ(ends[2], ChangeEnd::kNothing);
  EXPECT_EQ(ends[3], ChangeEnd::kDone);
  EXPECT_EQ(ends[4], ChangeEnd::kNothing);
  EXPECT_FALSE(on.storage->read(leaf("old").key()).has_value());
  EXPECT_TRUE(on.storage->read(leaf("renewed").key()).has_value());
  EXPECT_EQ(on.storage->hint_count(), 0U) << "its hint would bring it back";
}

TEST(Storage, ACopyKeepsTheEpochOfItsSourceAndTakesBackNone) {
  StorageOnDisk on;
  on.commit(start_epoch(5));
  on.commit(put(leaf("copied", 2)));
  EXPECT_EQ(on.storage->read(leaf("copied").key())->epoch, 2U);
  on.commit(put(leaf("copied")));
  EXPECT_EQ(on.storage->read(leaf("copied").key())->epoch, 5U);
  on.commit(put(leaf("copied", 2)));
  EXPECT_EQ(on.storage->read(leaf("copied").key())->epoch, 5U);
}

TEST(Storage, EpochsOnlyRise) {
  StorageOnDisk on;
  EXPECT_EQ(on.commit(start_epoch(4)), ChangeEnd::kDone);
  EXPECT_EQ(on.commit(start_epoch(4)), ChangeEnd::kNothing);
  EXPECT_EQ(on.commit(start_epoch(3)), ChangeEnd::kNothing);
  EXPECT_EQ(on.storage->epoch(), 4U);
}

TEST(Storage, VisitsRecordsInPages) {
  StorageOnDisk on;
  for (int i = 0; i < 10; ++i) on.commit(put(leaf(std::to_string(i))));
  int seen = 0;
  std::optional<ValueKey> after;
  do {
    after = on.storage->visit_records(after, 3, [&](const ValueKey& key, const Record& record) {
      EXPECT_EQ(record.key(), key);
      ++seen;
    });
  } while (after);
  EXPECT_EQ(seen, 10);
}

TEST(Storage, RootsAreListedUntilTheyAreNoLongerRoots) {
  StorageOnDisk on;
  Change change = put(leaf("root"));
  change.root = true;
  on.commit_all({change, put(leaf("other"))});
  EXPECT_EQ(on.storage->roots(), std::vector{change.key});
  EXPECT_TRUE(on.storage->is_root(change.key));
  change.kind = Change::Kind::kUnroot;
  on.commit(change);
  EXPECT_TRUE(on.storage->roots().empty());
}

}  // namespace
}  // namespace valuestore
