#include "live/live_events.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

LiveEvent numbered(int i) {
  return {.unix_seconds = i, .kind = LiveEventKind::kReload, .text = std::to_string(i)};
}

TEST(LiveEvents, AreReadFromWhereTheReaderStopped) {
  LiveEvents events;
  EXPECT_TRUE(events.since(0).empty());
  for (int i = 0; i < 3; ++i) events.add(numbered(i));
  ASSERT_EQ(events.since(1).size(), 2U);
  EXPECT_EQ(events.since(1)[0].text, "1");
  EXPECT_TRUE(events.since(3).empty());
  EXPECT_TRUE(events.since(99).empty());
}

TEST(LiveEvents, TheLast256AreKept) {
  LiveEvents events;
  for (int i = 0; i < 1000; ++i) events.add(numbered(i));
  EXPECT_EQ(events.count(), 1000U);
  const auto all = events.since(0);
  ASSERT_EQ(all.size(), 256U);
  EXPECT_EQ(all.front().text, "744");
  EXPECT_EQ(all.back().unix_seconds, 999);
  EXPECT_EQ(events.since(998).size(), 2U);
}

TEST(LiveEvents, LongTextsAreCut) {
  LiveEvents events;
  events.add({.upstream = std::string(1000, 'u'), .text = std::string(1000, 't')});
  EXPECT_EQ(events.since(0)[0].upstream, std::string(LiveEvents::kNameMax, 'u'));
  EXPECT_EQ(events.since(0)[0].text, std::string(LiveEvents::kTextMax, 't'));
}

}  // namespace
}  // namespace weir::gateway
