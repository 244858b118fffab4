#include "log_focus.h"

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(LogFocus, TakesTheRequestsOfAnActorByEitherId) {
  LogFocus focus({.actors = {7, 9}}, 10);
  EXPECT_TRUE(focus.takes({.actor = 7}));
  EXPECT_TRUE(focus.takes({.actor = 9}));
  EXPECT_FALSE(focus.takes({.actor = 8}));
  EXPECT_FALSE(focus.takes({.actor = 0}));
  EXPECT_EQ(focus.lines_left(), 8U);
}

TEST(LogFocus, AnUnknownActorIsNobody) {
  LogFocus focus({.actors = {7, 0}}, 10);
  EXPECT_FALSE(focus.takes({.actor = 0, .route = 0}));
}

TEST(LogFocus, TakesTheRequestsOfARoute) {
  LogFocus focus({.route = 0}, 10);
  EXPECT_TRUE(focus.takes({.actor = 0, .route = 0}));
  EXPECT_FALSE(focus.takes({.actor = 0, .route = 1}));
  EXPECT_FALSE(focus.takes({.actor = 0, .route = {}}));
}

TEST(LogFocus, EndsWithItsLines) {
  LogFocus focus({.route = 3}, 2);
  EXPECT_TRUE(focus.takes({.route = 3}));
  EXPECT_TRUE(focus.takes({.route = 3}));
  EXPECT_FALSE(focus.takes({.route = 3}));
  EXPECT_EQ(focus.lines_left(), 0U);
}

}  // namespace
}  // namespace weir::gateway
