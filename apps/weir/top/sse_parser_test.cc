#include "sse_parser.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

struct Parsed {
  std::vector<std::string> events;
  bool good = true;
};

Parsed parsed(const std::vector<std::string_view>& pieces) {
  Parsed out;
  SseParser parser;
  for (const std::string_view piece : pieces) {
    out.good = out.good && parser.feed(piece, [&](const SseEvent& event) {
      out.events.push_back(event.name + "|" + event.id + "|" + event.data);
    });
  }
  return out;
}

const std::string kStream =
    "\xEF\xBB\xBFretry: 100\n: a comment\n\nevent: hello\nid: 7\ndata: {\"a\": 1}\n\n"
    "event:tick\r\nid:8\r\ndata:{}\r\n\r\ndata: one\rdata: two\r\rid: 9\n\ndata\n\nevent: "
    "cut\ndata: x\n";
const std::vector<std::string> kEvents = {"hello|7|{\"a\": 1}", "tick|8|{}", "message|8|one\ntwo",
                                          "message|9|"};

TEST(SseParser, ReadsEventsWithEveryEndOfLine) {
  EXPECT_EQ(parsed({kStream}).events, kEvents);
}

TEST(SseParser, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string_view all = kStream;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    EXPECT_EQ(parsed({all.substr(0, i), all.substr(i)}).events, kEvents) << "cut at " << i;
  }
  std::vector<std::string_view> single;
  for (std::size_t i = 0; i < all.size(); ++i) single.push_back(all.substr(i, 1));
  EXPECT_EQ(parsed(single).events, kEvents);
}

TEST(SseParser, EndsAtAMessageThatIsTooLong) {
  const std::string much(SseParser::kMessageMax / 2 + 100, 'x');
  EXPECT_TRUE(parsed({"data: ", much, "\n\n", "data: ", much, "\n\n"}).good);
  EXPECT_FALSE(parsed({"data: ", much, "\ndata: ", much}).good);
  EXPECT_FALSE(parsed({much, much}).good);
}

}  // namespace
}  // namespace weir::app::top
