#include "weir/base/ascii.h"

#include <gtest/gtest.h>

namespace weir::inline v0 {
namespace {

TEST(Ascii, OnlyLettersOfAsciiHaveACase) {
  EXPECT_EQ(to_lower("Host-09 [@`{] \xC3\x84"), "host-09 [@`{] \xC3\x84");
  for (int c = 0; c < 128; ++c) {
    const bool upper = c >= 'A' && c <= 'Z';
    EXPECT_EQ(to_lower(static_cast<char>(c)), static_cast<char>(upper ? c + 32 : c));
  }
}

TEST(Ascii, TrimmingRemovesBlanksAtTheEndsOnly) {
  EXPECT_EQ(trimmed(" \t a b\t "), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("\r\n"), "\r\n");
}

}  // namespace
}  // namespace weir::inline v0
