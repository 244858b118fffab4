#include "json_members.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/base/rng.h"

namespace weir::gateway {
namespace {

bool accepted(std::string_view text) {
  return JsonMembers::of(text).has_value();
}

TEST(JsonMembers, FindsMembersOfEveryKind) {
  const std::string text =
      R"( {"s":"a" , "n": -1.5e3, "t":true,"a":[1,"x",{"y":[]}],"o":{"s":"inner"},"e":""} )";
  const auto members = JsonMembers::of(text);
  ASSERT_TRUE(members);
  std::array<char, 16> out{};
  EXPECT_EQ(members->text("s", out), "a");
  EXPECT_EQ(members->text("e", out), "");
  EXPECT_EQ(members->text("n", out), std::nullopt);
  EXPECT_EQ(members->text("missing", out), std::nullopt);
  EXPECT_EQ(members->number("n"), -1500.0);
  EXPECT_EQ(members->number("s"), std::nullopt);
  EXPECT_TRUE(members->has_text("a", "x"));
  EXPECT_FALSE(members->has_text("a", "y"));
  EXPECT_TRUE(members->has_text("s", "a"));
  EXPECT_FALSE(members->has_text("o", "inner"));
}

TEST(JsonMembers, EscapesAreRead) {
  const auto members = JsonMembers::of(
      R"({"u":"https:\/\/a","w":"\u00e9\ud83d\ude00\n","half":"\ud83d","a":["\u0078"]})");
  ASSERT_TRUE(members);
  std::array<char, 16> out{};
  EXPECT_TRUE(members->has_text("u", "https://a"));
  EXPECT_TRUE(members->has_text("a", "x"));
  EXPECT_EQ(members->text("w", out), "\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_EQ(members->text("half", out), std::nullopt);
  EXPECT_EQ(members->text("u", std::span(out).first(5)), std::nullopt);
}

TEST(JsonMembers, TwoReadersCannotDisagree) {
  EXPECT_FALSE(accepted(R"({"sub":"a","sub":"b"})"));
  EXPECT_FALSE(accepted(R"({"s\u0075b":"a"})"));
}

TEST(JsonMembers, WhatIsNotOneObjectIsRefused) {
  for (const char* text : {"",
                           "{",
                           "}",
                           "[]",
                           "\"a\"",
                           "1",
                           "{}x",
                           "{} {}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{,}",
                           "{a:1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":+1}",
                           "{\"a\":1e}",
                           "{\"a\":nul}",
                           "{\"a\":\"\x01\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\u12g4\"}",
                           "{\"a\":\"b",
                           "{\"a\":[1,]}",
                           "{\"a\":[}",
                           "{\"a\":{\"b\"}}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\":NaN}"}) {
    EXPECT_FALSE(accepted(text)) << text;
  }
  EXPECT_TRUE(accepted("{}"));
  EXPECT_TRUE(accepted(" \t\r\n{ } "));
}

TEST(JsonMembers, DepthAndNumberOfMembersAreBounded) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(accepted(nested(15)));
  EXPECT_FALSE(accepted(nested(16)));
  EXPECT_FALSE(accepted(nested(100000)));
  const auto wide = [](std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i)
      text += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_TRUE(accepted(wide(64)));
  EXPECT_FALSE(accepted(wide(65)));
}

// Against another reader, with texts that are changed at one place.
TEST(JsonMembers, AcceptsOnlyWhatAnotherReaderAccepts) {
  const std::string base =
      R"({"iss":"a\/b","n":-12.5e+3,"aud":["x","y\u00e9"],"o":{"p":[true,false,null]},"z":""})";
  constexpr std::string_view kBytes = "{}[]\":,\\u0123456789eE+-.tfn \x01\x7f";
  Rng rng(5);
  int agreed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = base;
    const std::size_t at = rng.below(text.size());
    if (rng.chance(0.3)) {
      text.erase(at, 1);
    } else if (rng.chance(0.5)) {
      text.insert(at, 1, kBytes[rng.below(kBytes.size())]);
    } else {
      text[at] = kBytes[rng.below(kBytes.size())];
    }
    const bool theirs = nlohmann::json::accept(text);
    if (accepted(text)) {
      ASSERT_TRUE(theirs) << text;
      ++agreed;
    }
  }
  EXPECT_GT(agreed, 1000);
}

}  // namespace
}  // namespace weir::gateway
