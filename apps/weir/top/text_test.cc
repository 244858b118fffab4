#include "text.h"

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

TEST(TopText, MakesNamesInert) {
  EXPECT_EQ(clean("plain é 支付 ok"), "plain é 支付 ok");
  EXPECT_EQ(clean("\x1b[31mred\x07\n\t\x7f"), "?[31mred????");
  EXPECT_EQ(clean("\xc2\x9b"
                  "31m"),
            "?31m");  // CSI in one character
  EXPECT_EQ(clean("\x9b"
                  "31m"),
            "?31m");                                    // and as a byte
  EXPECT_EQ(clean("a\u202eb\u200bc\u0301"), "a?b?c?");  // turns direction, is nothing, stands over
  EXPECT_EQ(clean("\xff\xc0\xaf\xed\xa0\x80z"), "??????z");  // no UTF-8: too long, surrogate
  EXPECT_EQ(clean("abcdef", 3), "abc");
}

TEST(TopText, NeverSplitsACharacter) {
  const std::string text = "aé支😀b";
  EXPECT_EQ(cells(text), 7);
  EXPECT_EQ(cut(text, 7), text);
  EXPECT_EQ(cut(text, 6), "aé支…");
  EXPECT_EQ(cut(text, 4), "aé…");
  EXPECT_EQ(cut(text, 1), "…");
  EXPECT_EQ(cut(text, 0), "");
  for (int width = 0; width < 10; ++width) {
    EXPECT_LE(cells(cut(text, width)), width);
    EXPECT_EQ(cells(padded(text, width)), width);
    EXPECT_EQ(cells(padded(text, width, true)), width);
  }
}

TEST(TopText, KeepsItsCellsInAscii) {
  EXPECT_EQ(ascii("[██▁]…·支"), "[##_]~-??");
}

TEST(TopText, RepairsBytesThatAreNoUtf8) {
  EXPECT_EQ(valid_utf8("a\xff\xc3\xa9\xc3"), "a?é?");
  EXPECT_EQ(valid_utf8("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace weir::app::top
