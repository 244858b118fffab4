#include "config_node.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

ConfigNode parse(std::string_view text) {
  auto parsed = parse_config(text, "x.toml");
  EXPECT_TRUE(parsed.has_value());
  return parsed.value();
}

TEST(ConfigNode, KeepsKindsValuesAndLines) {
  const ConfigNode root = parse("a = 1\nb = 1.5\nc = \"x\"\nd = true\n[t]\ne = [1, 2]\n");
  EXPECT_EQ(root.find("a")->integer, 1);
  EXPECT_EQ(root.find("b")->line, 2);
  EXPECT_EQ(root.find("c")->printed(), "\"x\"");
  EXPECT_TRUE(root.find("d")->boolean);
  EXPECT_EQ(root.find("t")->find("e")->items.size(), 2U);
  EXPECT_EQ(root.find("t")->find("e")->items[1].line, 6);
  EXPECT_EQ(root.find("z"), nullptr);
}

TEST(ConfigNode, ASyntaxErrorNamesFileAndLine) {
  const auto parsed = parse_config("a = 1\nb = = 2\n", "bad.toml");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().file, "bad.toml");
  EXPECT_EQ(parsed.error().line, 2);
}

TEST(SetValue, ReachesTablesAndListMembersByNameIndexAndStar) {
  ConfigNode root = parse("[[load]]\nname = \"web\"\nrate = 1\n[[load]]\nname = \"batch\"\n");
  EXPECT_TRUE(set_value(root, "load.web.rate=2000"));
  EXPECT_TRUE(set_value(root, "load.1.rate=2.5"));
  EXPECT_TRUE(set_value(root, "load.*.retry.kind=none"));
  EXPECT_TRUE(set_value(root, "seed=7"));
  const ConfigNode& loads = *root.find("load");
  EXPECT_EQ(loads.items[0].find("rate")->integer, 2000);
  EXPECT_DOUBLE_EQ(loads.items[1].find("rate")->number, 2.5);
  EXPECT_EQ(loads.items[1].find("retry")->find("kind")->text, "none");
  EXPECT_EQ(root.find("seed")->integer, 7);
}

TEST(SetValue, TakesABareWordAsAString) {
  ConfigNode root;
  EXPECT_TRUE(set_value(root, "duration=90s"));
  EXPECT_EQ(root.find("duration")->text, "90s");
  EXPECT_TRUE(set_value(root, "name=\"90\""));
  EXPECT_EQ(root.find("name")->text, "90");
}

TEST(SetValue, AnUnknownMemberOrNoEqualsSignIsAnError) {
  ConfigNode root = parse("[[load]]\nname = \"web\"\n");
  const auto missing = set_value(root, "load.wob.rate=1");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().allowed.find("web"), std::string::npos);
  EXPECT_FALSE(set_value(root, "load.web.rate").has_value());
  EXPECT_FALSE(set_value(root, "load.web.name.x=1").has_value());
}

}  // namespace
}  // namespace weir::sim
