#include "tunnel_direction.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using namespace std::string_literals;

const std::string kText = "\x81\x05hello"s;
const std::string kClose = "\x88\x02\x03\xe8"s;

/// Passes on what may pass, drops the rest; what was passed on.
std::string go(TunnelDirection& direction, std::string_view bytes) {
  const std::string_view piece = direction.may_pass(bytes);
  direction.passed(piece);
  direction.dropped(bytes.substr(piece.size()));
  return std::string(piece);
}

TEST(TunnelDirection, PassesEverythingUntilItLeaves) {
  TunnelDirection direction;
  EXPECT_EQ(go(direction, kText + kText.substr(0, 3)), kText + kText.substr(0, 3));
  EXPECT_FALSE(direction.cut() || direction.close_due() || direction.closed_by_sender());
}

TEST(TunnelDirection, AtABoundaryACloseFrameIsDueAtOnce) {
  TunnelDirection fresh;
  fresh.leave();
  EXPECT_TRUE(fresh.close_due());
  TunnelDirection used;
  go(used, kText);
  used.leave();
  EXPECT_TRUE(used.close_due() && used.cut());
  EXPECT_EQ(go(used, kText), "");
  used.told();
  EXPECT_FALSE(used.close_due());
  EXPECT_TRUE(used.ended());
  EXPECT_EQ(go(used, kText), "");
}

TEST(TunnelDirection, AFrameThatHasBegunPassesToItsEnd) {
  for (std::size_t begun = 1; begun < kText.size(); ++begun) {
    TunnelDirection direction;
    go(direction, kText.substr(0, begun));
    direction.leave();
    EXPECT_FALSE(direction.cut());
    const std::string rest = kText.substr(begun);
    EXPECT_EQ(go(direction, rest.substr(0, 1)), rest.substr(0, 1));
    EXPECT_EQ(go(direction, rest.substr(1) + kText), rest.substr(1));
    EXPECT_TRUE(direction.close_due());
  }
}

TEST(TunnelDirection, BytesThatWereNotTakenYetDoNotCount) {
  TunnelDirection direction;
  go(direction, kText.substr(0, 2));
  direction.leave();
  const std::string_view piece = direction.may_pass(std::string_view(kText).substr(2));
  direction.passed(piece.substr(0, piece.size() - 1));
  EXPECT_FALSE(direction.cut());
  direction.passed(piece.substr(piece.size() - 1));
  EXPECT_TRUE(direction.close_due());
}

TEST(TunnelDirection, NoCloseFrameIsDueBehindTheSendersOwn) {
  TunnelDirection before;
  go(before, kClose);
  before.leave();
  EXPECT_FALSE(before.close_due());
  EXPECT_TRUE(before.ended() && before.closed_by_sender());
  TunnelDirection within;
  go(within, kClose.substr(0, 3));
  within.leave();
  EXPECT_EQ(go(within, kClose.substr(3) + kText), kClose.substr(3));
  EXPECT_FALSE(within.close_due());
  EXPECT_TRUE(within.ended());
}

TEST(TunnelDirection, ADroppedCloseFrameIsStillTheAnswer) {
  TunnelDirection direction;
  direction.leave();
  direction.told();
  EXPECT_EQ(go(direction, kText), "");
  EXPECT_FALSE(direction.closed_by_sender());
  EXPECT_EQ(go(direction, kClose), "");
  EXPECT_TRUE(direction.closed_by_sender());
}

}  // namespace
}  // namespace weir::gateway
