#include "config/raw_config.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace weir::config {
namespace {

TEST(RawValue, PrintsAsToml) {
  EXPECT_EQ(to_text(RawValue{true}), "true");
  EXPECT_EQ(to_text(RawValue{std::int64_t{-17}}), "-17");
  EXPECT_EQ(to_text(RawValue{0.5}), "0.5");
  EXPECT_EQ(to_text(RawValue{std::string("a\"b\\c\nd")}), "\"a\\\"b\\\\c\\u000ad\"");
  EXPECT_EQ(to_text(RawValue{RawValue::List{{true}, {std::string("x")}}}), "[true, \"x\"]");
  EXPECT_EQ(to_text(RawValue{RawOther{"a table"}}), "a table");
}

TEST(RawValue, ShortensWhatIsLongAndNeverCutsACharacter) {
  for (std::size_t length = 50; length < 70; ++length) {
    std::string text(length, 'x');
    text += "ääääääääää";
    const std::string shown = to_text(RawValue{text});
    ASSERT_LE(shown.size(), 63U + 2U);
    // The last character before the ellipsis is complete: no continuation byte follows the cut.
    const std::string kept = shown.substr(0, shown.size() - 3);
    if (!kept.empty() && (static_cast<unsigned char>(kept.back()) & 0x80U) != 0) {
      ASSERT_EQ(static_cast<unsigned char>(kept.back()) & 0xc0U, 0x80U);
    }
  }
  const std::string list = to_text(RawValue{RawValue::List(100000, RawValue{true})});
  EXPECT_LE(list.size(), 70U);
}

}  // namespace
}  // namespace weir::config
