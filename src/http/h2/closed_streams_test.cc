#include "http/h2/closed_streams.h"

#include <map>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::http::h2 {
namespace {

TEST(ClosedStreams, RemembersHowEachEnded) {
  ClosedStreams closed;
  for (StreamId id = 1; id <= 9; id += 2) closed.on_opened(id);
  closed.on_closed(1, ClosedHow::kEnded);
  closed.on_closed(3, ClosedHow::kResetByPeer);
  closed.on_closed(9, ClosedHow::kResetByUs);
  EXPECT_EQ(closed.how(1), ClosedHow::kEnded);
  EXPECT_EQ(closed.how(3), ClosedHow::kResetByPeer);
  EXPECT_EQ(closed.how(9), ClosedHow::kResetByUs);
}

TEST(ClosedStreams, SkippedNumbersWereNeverUsed) {
  ClosedStreams closed;
  closed.on_opened(5);
  closed.on_closed(5, ClosedHow::kEnded);
  EXPECT_EQ(closed.how(1), ClosedHow::kNeverUsed);
  EXPECT_EQ(closed.how(3), ClosedHow::kNeverUsed);
  EXPECT_EQ(closed.how(5), ClosedHow::kEnded);
  closed.on_opened(kStreamIdMax);
  EXPECT_EQ(closed.how(kStreamIdMax - 2), ClosedHow::kNeverUsed);
  EXPECT_EQ(closed.how(5), ClosedHow::kResetByUs) << "forgotten: the answer that does least";
}

TEST(ClosedStreams, AgreesWithAPlainMap) {
  Rng rng(7);
  ClosedStreams closed;
  std::map<StreamId, ClosedHow> truth;
  StreamId last = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto skip = static_cast<StreamId>(rng.below(20) == 0 ? rng.below(40) : 0);
    const StreamId id = last == 0 ? 1 : last + 2 + 2 * skip;
    for (StreamId skipped = last == 0 ? 1 : last + 2; skipped < id; skipped += 2)
      truth[skipped] = ClosedHow::kNeverUsed;
    closed.on_opened(id);
    const auto how = static_cast<ClosedHow>(1 + rng.below(3));
    closed.on_closed(id, how);
    truth[id] = how;
    last = id;
    const auto back = static_cast<StreamId>(rng.below(700)) * 2;
    if (back >= last) continue;
    const bool known = back / 2 < ClosedStreams::kRemembered;
    ASSERT_EQ(closed.how(last - back), known ? truth[last - back] : ClosedHow::kResetByUs);
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h2
