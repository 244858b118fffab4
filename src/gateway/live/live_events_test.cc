#include "live/live_events.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

LiveEvent numbered(int i) {
  return {.unix_seconds = i, .kind = LiveEventKind::kReload, .text = std::to_string(i)};
}

std::vector<LiveEvent> after(const LiveEvents& events, std::uint64_t seen) {
  return events.after(seen);
}

TEST(LiveEvents, AreReadFromWhereTheReaderStopped) {
  LiveEvents events;
  std::uint64_t seen = 0;
  EXPECT_TRUE(events.after(seen).empty());
  for (int i = 0; i < 3; ++i) events.add(numbered(i));
  EXPECT_EQ(events.after(seen).size(), 3U);
  EXPECT_TRUE(events.after(seen).empty());
  events.add(numbered(3));
  ASSERT_EQ(events.after(seen).size(), 1U);
  EXPECT_EQ(after(events, 1)[0].text, "1");
  EXPECT_TRUE(after(events, 99).empty());
}

TEST(LiveEvents, TheLast256AreKeptAndNoneIsReadTwice) {
  LiveEvents events;
  for (int i = 0; i < 1000; ++i) events.add(numbered(i));
  std::uint64_t seen = 10;
  const auto all = events.after(seen);
  ASSERT_EQ(all.size(), 256U);
  EXPECT_EQ(all.front().text, "744");
  EXPECT_EQ(all.back().unix_seconds, 999);
  EXPECT_TRUE(events.after(seen).empty()) << "those that were not kept are not owed";
  EXPECT_EQ(after(events, 998).size(), 2U);
}

TEST(LiveEvents, LongTextsAreCut) {
  LiveEvents events;
  events.add({.upstream = std::string(1000, 'u'), .text = std::string(1000, 't')});
  EXPECT_EQ(after(events, 0)[0].upstream, std::string(LiveEvents::kNameMax, 'u'));
  EXPECT_EQ(after(events, 0)[0].text, std::string(LiveEvents::kTextMax, 't'));
}

}  // namespace
}  // namespace weir::gateway
