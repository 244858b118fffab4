#include "weir/policy/shed_action.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

TEST(ShedAction, DatagramsAreDroppedSilentlyAndStreamsAnswered) {
  for (const Priority p : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    EXPECT_EQ(shed_action(p, Transport::kDatagram), ShedAction::kDropSilently) << name_of(p);
    EXPECT_EQ(shed_action(p, Transport::kStream), ShedAction::kReplyWithHint) << name_of(p);
  }
}

TEST(ShedAction, CriticalIsAlwaysExecuted) {
  EXPECT_EQ(shed_action(Priority::kCritical, Transport::kDatagram), ShedAction::kExecute);
  EXPECT_EQ(shed_action(Priority::kCritical, Transport::kStream), ShedAction::kExecute);
}

TEST(ShedAction, NamesAreStable) {
  EXPECT_EQ(name_of(ShedAction::kExecute), "execute");
  EXPECT_EQ(name_of(ShedAction::kDropSilently), "drop_silently");
  EXPECT_EQ(name_of(ShedAction::kReplyWithHint), "reply_with_hint");
}

}  // namespace
}  // namespace weir::inline v0::inline policy
