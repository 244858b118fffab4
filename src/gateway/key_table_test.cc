#include "key_table.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

// sha256sum of "alpha" and "beta".
const std::string kAlpha = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
const std::string kBeta = "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753";

TEST(KeyTable, AKeyHasTheOwnerOfItsHash) {
  const auto table =
      KeyTable::parse("# tenants\n\n" + kAlpha + "  gold\r\n\t" + kBeta + " \tiron\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 2U);
  EXPECT_EQ(table->owner_of("alpha"), "gold");
  EXPECT_EQ(table->owner_of("beta"), "iron");
  EXPECT_EQ(table->owner_of("gamma"), "");
  EXPECT_EQ(table->owner_of(""), "");
  EXPECT_EQ(table->owner_of(kAlpha), "");
  EXPECT_EQ(KeyTable().owner_of("alpha"), "");
}

TEST(KeyTable, TheOrderOfLinesAndTheCaseOfDigitsDoNotMatter) {
  std::string upper = kBeta;
  for (char& c : upper) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto table = KeyTable::parse(upper + " iron\n" + std::string(64, 'a') + " x\n" + kAlpha +
                                     " gold\n" + std::string(64, '0') + " y");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->owner_of("alpha"), "gold");
  EXPECT_EQ(table->owner_of("beta"), "iron");
}

TEST(KeyTable, HasAMostOfKeys) {
  std::string text;
  for (std::size_t i = 0; i < KeyTable::kKeysMax; ++i) {
    const std::string number = std::to_string(i);
    text += std::string(64 - number.size(), '0') + number + " a\n";
  }
  ASSERT_TRUE(KeyTable::parse(text));
  const auto more = KeyTable::parse(text + kAlpha + " a\n");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error(), "more than 100000 keys");
}

TEST(KeyTable, AWrongLineIsNamed) {
  const auto why = [](const std::string& text) {
    const auto table = KeyTable::parse(text);
    return table ? std::string() : table.error();
  };
  EXPECT_EQ(why(kAlpha),
            "line 1: wanted is the SHA-256 of a key (64 hexadecimal digits) and a name");
  EXPECT_EQ(why("\nalpha gold"),
            "line 2: wanted is the SHA-256 of a key (64 hexadecimal digits) and a name");
  EXPECT_EQ(why(kAlpha + "x gold"),
            "line 1: wanted is the SHA-256 of a key (64 hexadecimal digits) and a name");
  EXPECT_EQ(why(kAlpha + " gold star"),
            "line 1: the name has 1 to 128 printable characters and no blanks");
  EXPECT_EQ(why(kAlpha + " " + std::string(129, 'a')),
            "line 1: the name has 1 to 128 printable characters and no blanks");
  EXPECT_EQ(why(kAlpha + " gold\n" + kAlpha + " gold"),
            "the same key is there twice, for gold and gold");
}

}  // namespace
}  // namespace weir::gateway
