#include "node_reader.h"

#include <array>

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

struct Read {
  ConfigNode node;
  ConfigErrors errors;
  NodeReader reader;
  explicit Read(std::string_view text)
      : node(parse_config(text, "f.toml").value()), reader(node, "top", "f.toml", errors) {}
};

TEST(NodeReader, ReadsEveryKindAndKeepsDefaultsOfMissingKeys) {
  Read r("t = \"x\"\nb = true\nn = 0.5\nw = 7\nd = \"250ms\"\ns = \"4KiB\"\nc = \"two\"\n");
  std::string text;
  bool boolean = false;
  double number = 0;
  std::uint32_t whole = 0;
  Duration duration{};
  std::uint64_t size = 0;
  std::size_t choice = 0;
  std::uint32_t missing = 99;
  constexpr std::array<std::string_view, 2> kNames = {"one", "two"};
  r.reader.text("t", text);
  r.reader.boolean("b", boolean);
  r.reader.number("n", number, 0, 1);
  r.reader.whole("w", whole, 1U, 10U);
  r.reader.duration("d", duration);
  r.reader.byte_size("s", size);
  r.reader.choice("c", choice, kNames);
  r.reader.whole("nowhere", missing, 1U, 10U);
  r.reader.done();
  EXPECT_TRUE(r.errors.empty());
  EXPECT_EQ(text, "x");
  EXPECT_TRUE(boolean);
  EXPECT_DOUBLE_EQ(number, 0.5);
  EXPECT_EQ(whole, 7U);
  EXPECT_EQ(duration, Duration(std::chrono::milliseconds(250)));
  EXPECT_EQ(size, 4096U);
  EXPECT_EQ(choice, 1U);
  EXPECT_EQ(missing, 99U);
}

TEST(NodeReader, EveryFaultNamesKeyLineValueAndWhatIsAllowed) {
  Read r("w = 70\nd = \"5 parsecs\"\nc = \"three\"\nzebra = 1\n");
  std::uint32_t whole = 3;
  Duration duration{};
  std::size_t choice = 0;
  constexpr std::array<std::string_view, 2> kNames = {"one", "two"};
  r.reader.whole("w", whole, 1U, 10U);
  r.reader.duration("d", duration);
  r.reader.choice("c", choice, kNames);
  r.reader.require("must", "a number");
  r.reader.done();
  ASSERT_EQ(r.errors.size(), 5U);
  EXPECT_EQ(r.errors[0].key, "top.w");
  EXPECT_EQ(r.errors[0].line, 1);
  EXPECT_EQ(r.errors[0].value, "70");
  EXPECT_EQ(r.errors[0].allowed, "a whole number, 1 to 10");
  EXPECT_EQ(r.errors[0].file, "f.toml");
  EXPECT_EQ(r.errors[1].line, 2);
  EXPECT_EQ(r.errors[2].allowed, "one of one, two");
  EXPECT_EQ(r.errors[3].key, "top.must");
  EXPECT_EQ(r.errors[4].key, "top.zebra");
  EXPECT_NE(r.errors[4].allowed.find("w, d, c"), std::string::npos);
  EXPECT_EQ(whole, 3U);
}

TEST(NodeReader, AWrongKindIsAFaultAndNotACrash) {
  Read r("t = 1\nb = \"yes\"\nn = \"x\"\nw = -1\nd = 5\ns = \"4 bananas\"\n[e]\nf = 1\n");
  std::string text;
  bool boolean = false;
  double number = 0;
  std::uint64_t whole = 0;
  Duration duration{};
  r.reader.text("t", text);
  r.reader.boolean("b", boolean);
  r.reader.number("n", number, 0, 1);
  r.reader.whole("w", whole, std::uint64_t{0}, std::uint64_t{5});
  r.reader.duration("d", duration);
  r.reader.byte_size("s", whole);
  r.reader.each("e", [](NodeReader&) { ADD_FAILURE(); });
  EXPECT_EQ(r.errors.size(), 7U);
}

TEST(NodeReader, ListMembersAreNamedInThePath) {
  Read r("[[load]]\nname = \"web\"\nrate = \"x\"\n[[load]]\nrate = \"y\"\n");
  r.reader.each("load", [](NodeReader& inner) {
    std::string name;
    double rate = 0;
    inner.text("name", name);
    inner.number("rate", rate, 0, 1);
  });
  ASSERT_EQ(r.errors.size(), 2U);
  EXPECT_EQ(r.errors[0].key, "top.load.web.rate");
  EXPECT_EQ(r.errors[1].key, "top.load.1.rate");
}

TEST(NodeReader, AWordNearAnAllowedOneIsSuggested) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto read = read_scenario_text(
      std::string(kPlain) + "[[verdict]]\nmeasure = \"goodputt\"\nmin = 1\nmaxx = 2\n", "t.toml",
      {}, none);
  ASSERT_FALSE(read.has_value());
  const std::string text = printed(read.error());
  EXPECT_NE(text.find("did you mean goodput?"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean max?"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir::sim
