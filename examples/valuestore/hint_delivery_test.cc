#include "hint_delivery.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage_testing.h"

namespace valuestore {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSelf = 2;  // "c"

/// The other nodes: keeps what is sent, and says what becomes of it when it is told to.
class OtherNodes {
 public:
  void send(const Parcel& parcel, std::function<void(bool)> done) {
    const std::lock_guard lock(mutex_);
    if (closed_) return done(false);
    EXPECT_EQ(parcel.priority, weir::Priority::kLow) << "reads and writes go first";
    sent.push_back(parcel.key);
    most_open = std::max(most_open, ++open);
    waiting_.push_back(std::move(done));
  }
  void answer_all(bool delivered) {
    std::vector<std::function<void(bool)>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
      open = 0;
    }
    for (const auto& done : waiting) done(delivered);
  }
  /// What is sent from now on fails at once: the delivery ends when nothing is on its way.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    answer_all(false);
  }
  [[nodiscard]] std::size_t sent_count() {
    const std::lock_guard lock(mutex_);
    return sent.size();
  }

  std::vector<ValueKey> sent;
  std::size_t open = 0;
  std::size_t most_open = 0;

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<std::function<void(bool)>> waiting_;
};

/// A node with a store, whose deliveries go to OtherNodes.
class HintDeliveryTest : public ::testing::Test {
 protected:
  void store_hints(int count, const std::string& owner) {
    for (int i = 0; i < count; ++i) on.commit(put(leaf(owner + std::to_string(i)), owner));
  }
  struct Closer {
    OtherNodes* others;
    void operator()(HintDelivery* delivery) const {
      others->close();
      delete delivery;
    }
  };
  std::unique_ptr<HintDelivery, Closer> start(HintDeliveryConfig config = {
                                                  .pause = milliseconds(1)}) {
    auto* const delivery = new HintDelivery(
        config, placement, kSelf, *on.storage, writer,
        [this](const Parcel& parcel, std::function<void(bool)> done) {
          others.send(parcel, std::move(done));
        },
        [this](std::size_t node) { return up[node].load(); },
        [this](const ValueKey& key, std::size_t not_from) {
          ++fetched_again;
          if (fetch_again) fetch_again(key, not_from);
        });
    return {delivery, Closer{&others}};
  }
  /// Answers what is sent until `what` is true; fails after ten seconds.
  bool until(const std::function<bool()>& what, bool delivered = true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!what()) {
      if (std::chrono::steady_clock::now() > end) return false;
      others.answer_all(delivered);
      std::this_thread::yield();
    }
    return true;
  }

  StorageOnDisk on;
  WriterThread writer{*on.storage};
  const Placement placement{{"a", "b", "c"}};
  OtherNodes others;
  std::atomic<int> fetched_again{0};
  std::function<void(const ValueKey&, std::size_t)> fetch_again;
  std::array<std::atomic<bool>, 3> up{true, true, true};
};

TEST_F(HintDeliveryTest, AHintIsDroppedOnlyAfterItsOwnerConfirmed) {
  store_hints(1, "a");
  auto delivery = start();
  EXPECT_TRUE(until([&] { return delivery->counts().failed >= 2; }, false));
  EXPECT_EQ(on.storage->hint_count(), 1U) << "a failure keeps the hint";
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }, true));
  EXPECT_FALSE(on.storage->read(leaf("a0").key()).has_value()) << "this node does not own it";
}

TEST_F(HintDeliveryTest, ManyHintsAllArriveAndNeverMoreThanTheWindowAtOnce) {
  store_hints(150, "a");
  auto delivery = start({.window = 4, .parcels_per_second = 100000, .pause = milliseconds(1)});
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }));
  EXPECT_EQ(others.most_open, 4U);
  EXPECT_GE(delivery->counts().delivered, 150U);
}

TEST_F(HintDeliveryTest, ANodeThatIsDownGetsNothingAndDelaysNoOther) {
  store_hints(5, "a");
  store_hints(5, "b");
  up[0] = false;
  auto delivery = start();
  EXPECT_TRUE(until([&] { return on.storage->hints("b", std::nullopt, 10).empty(); }));
  EXPECT_EQ(on.storage->hints("a", std::nullopt, 10).size(), 5U);
  up[0] = true;
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }));
}

TEST_F(HintDeliveryTest, DeliveryIsPaced) {
  store_hints(40, "a");
  const auto begin = std::chrono::steady_clock::now();
  auto delivery = start({.window = 8, .parcels_per_second = 100, .pause = milliseconds(1)});
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }));
  // 40 at 100 a second, of which 5 may leave at once.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(300));
}

TEST_F(HintDeliveryTest, AHintWhoseValueIsBrokenIsFetchedFromElsewhereAndDelivered) {
  Change broken = put(leaf("good"), "a");
  broken.record.payload = "bad";
  on.commit(broken);
  store_hints(2, "a");
  fetch_again = [&](const ValueKey& key, std::size_t not_from) {
    EXPECT_EQ(key, broken.key);
    EXPECT_EQ(not_from, 0U);
    if (fetched_again < 3) return;  // the other owner does not answer at first
    Change good = put(leaf("good", 1));
    writer.submit(std::move(good), [](ChangeEnd) {});
  };
  auto delivery = start();
  EXPECT_TRUE(until([&] { return delivery->counts().unreadable == 1; }));
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }));
  EXPECT_TRUE(until([&] { return delivery->counts().unreadable == 0; }));
  EXPECT_EQ(others.sent_count(), 3U);
}

TEST_F(HintDeliveryTest, HintsThatCannotBeReadAreNotLookedForAllTheTime) {
  Change broken = put(leaf("good"), "a");
  broken.record.payload = "bad";
  on.commit(broken);
  auto delivery = start({.pause = std::chrono::hours(1)});
  EXPECT_TRUE(until([&] { return delivery->counts().unreadable == 1; }));
  // One look found it, one found the end; the other node is looked at meanwhile.
  const std::uint64_t looks = delivery->counts().looks;
  EXPECT_EQ(fetched_again, 1);
  up[1] = false;
  store_hints(3, "b");
  up[1] = true;
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 1; }));
  EXPECT_EQ(fetched_again, 1) << "not once per tick";
  EXPECT_GT(delivery->counts().looks, looks);
}

TEST_F(HintDeliveryTest, AStoreWithoutHintsIsNotLookedInto) {
  auto delivery = start();
  const Record record = leaf("repaired");
  for (int i = 1; i <= 3; ++i) {  // ticks
    delivery->repair(1, record.key(), record, false);
    EXPECT_TRUE(until([&] { return delivery->counts().repaired == static_cast<unsigned>(i); }));
  }
  EXPECT_EQ(delivery->counts().looks, 0U);
}

TEST_F(HintDeliveryTest, APutThatRenewsAHintOnItsWayIsNotDropped) {
  store_hints(1, "a");
  const Record record = leaf("a0");
  auto delivery = start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (others.sent_count() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  ASSERT_EQ(others.sent_count(), 1U);
  writer.apply(start_epoch(5));
  EXPECT_EQ(writer.apply(put(record, "a")), ChangeEnd::kDone);
  others.answer_all(true);  // of the copy of epoch 1
  EXPECT_TRUE(until([&] { return on.storage->hint_count() == 0; }));
  EXPECT_EQ(others.sent_count(), 2U) << "the copy of epoch 5 has arrived, too";
}

TEST_F(HintDeliveryTest, ARepairIsSentOnceAndNotKept) {
  auto delivery = start();
  const Record record = leaf("repaired");
  delivery->repair(1, record.key(), record, false);
  EXPECT_TRUE(until([&] { return delivery->counts().repaired == 1; }));
  EXPECT_EQ(others.sent_count(), 1U);
}

}  // namespace
}  // namespace valuestore
