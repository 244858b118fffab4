#include "policy/upload_share.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(UploadShare, HalfOfALimitRoundedUp) {
  struct Row {
    std::uint32_t uploads;
    std::uint32_t limit;
    bool over;
  };
  const Row rows[] = {{0, 0, false},    {1, 1, false},  {1, 0, false}, {2, 1, true},
                      {2, 3, false},    {3, 3, true},   {5, 9, false}, {6, 9, true},
                      {50, 100, false}, {51, 100, true}};
  for (const Row& row : rows) {
    EXPECT_EQ(over_upload_share(row.uploads, row.limit), row.over)
        << row.uploads << " of " << row.limit;
  }
}

TEST(UploadShare, MemoryGoesToASourceThatThenHasNoMoreThanTheOther) {
  struct Row {
    std::uint64_t wanted;
    BodyMemory body;
    Duration since;
    bool may;
  };
  const Row rows[] = {{10, {.of_source = 20, .own = 10}, seconds(1), true},
                      {11, {.of_source = 20, .own = 10}, seconds(1), false},
                      {10, {.of_source = 20, .own = 11}, seconds(1), false},
                      {10, {.of_source = 10, .own = 10}, seconds(9), false},
                      {10, {.of_source = 20, .own = 10}, milliseconds(999), false}};
  for (const Row& row : rows) {
    EXPECT_EQ(may_take_memory(row.wanted, row.body, {.since = row.since}), row.may) << &row - rows;
  }
}

// Sources whose bodies never end ask again and again: the shares become even and stay so.
TEST(UploadShare, MemoryIsSharedEvenlyAndThenNobodyEndsAnother) {
  Rng rng(3);
  constexpr std::uint64_t kBodies = 128;
  std::vector<std::uint64_t> held = {kBodies, 0, 0, 0};  // one source has all of it
  int moves = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t newcomer = rng.below(held.size());
    const std::size_t most =
        static_cast<std::size_t>(std::max_element(held.begin(), held.end()) - held.begin());
    if (!may_take_memory(held[newcomer] + 1, {.of_source = held[most], .own = 1},
                         {.since = seconds(2)})) {
      continue;
    }
    --held[most];
    ++held[newcomer];
    ++moves;
  }
  EXPECT_EQ(held, std::vector<std::uint64_t>(4, kBodies / 4));
  EXPECT_LE(moves, 100) << "hardly more than are needed";
}

TEST(UploadShare, TheOneThatIsSlowerThanTheOthersGoesFirst) {
  // A: 4.4 KB/s for 8 s. B: 1 MB/s for 8 s. C: nothing for 300 ms. D: has just begun.
  const UploadProgress a{.since = seconds(8), .received_bytes = 35'200};
  const UploadProgress b{.since = seconds(8), .received_bytes = 8'000'000};
  const UploadProgress c{.since = milliseconds(300)};
  const UploadProgress d{};
  UsualPace among_slow;
  for (int i = 0; i < 300; ++i) among_slow.add(a);
  const double slow = among_slow.rate();
  EXPECT_NEAR(slow, 4400, 1);
  EXPECT_LT(upload_pace(c, slow), upload_pace(a, slow)) << "nothing is less than 4.4 KB/s";
  EXPECT_NEAR(upload_pace(a, slow), upload_pace(d, slow), 1) << "a new one counts as usual";
  EXPECT_LT(upload_pace(d, slow), upload_pace(b, slow));
  UsualPace among_fast;
  for (int i = 0; i < 300; ++i) among_fast.add(b);
  const double fast = among_fast.rate();
  EXPECT_LT(upload_pace(a, fast), upload_pace(c, fast)) << "it had its time";
}

TEST(UploadShare, OfEqualOnesTheSourceWithMostLosesFirst) {
  const UploadProgress one{.since = seconds(2), .received_bytes = 9000, .of_source = 1};
  const UploadProgress many{.since = seconds(2), .received_bytes = 9000, .of_source = 300};
  EXPECT_LT(upload_pace(many, 4500), upload_pace(one, 4500));
}

TEST(UploadShare, WithinTheGraceOnlyASourceWithFewerDisplaces) {
  const UploadProgress young{.since = milliseconds(999), .received_bytes = 0, .of_source = 3};
  EXPECT_TRUE(may_displace(1, young));
  EXPECT_FALSE(may_displace(2, young)) << "it would have as many then";
  EXPECT_TRUE(may_displace(99, {.since = seconds(1), .received_bytes = 0, .of_source = 1}));
}

TEST(UploadShare, PaceRisesWithBytesAndFallsWithTimeAndWithWhatTheSourceHas) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const double rate = static_cast<double>(rng.below(10'000'000));
    const UploadProgress upload{.since = Duration(rng.below(60'000'000'000)),
                                .received_bytes = rng.below(1ULL << 40U),
                                .of_source = static_cast<std::uint32_t>(rng.below(2000))};
    UploadProgress more = upload;
    more.received_bytes += 1 + rng.below(1 << 20U);
    UploadProgress later = upload;
    later.since += milliseconds(1 + rng.below(9000));
    UploadProgress crowded = upload;
    crowded.of_source = std::max(upload.of_source, 1U) + 1;
    const double pace = upload_pace(upload, rate);
    EXPECT_GT(pace, 0);
    EXPECT_GT(upload_pace(more, rate), pace);
    EXPECT_LT(upload_pace(later, rate), pace);
    EXPECT_LT(upload_pace(crowded, rate), pace);
  }
}

TEST(UsualPace, IsZeroWithoutUploads) {
  UsualPace none;
  EXPECT_EQ(none.rate(), 0);
  none.add({});
  EXPECT_EQ(none.rate(), 0);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
