#include "node_options.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace valuestore {
namespace {

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> all = {"--name", "b",     "--nodes", "a=1.1.1.1:1,b=2.2.2.2:2,c=x:3",
                                  "--data", "/tmp/x"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(NodeOptions, AreReadFromTheCommandLine) {
  const auto options = NodeOptions::parse(with({"--read-ms", "5", "--admission", "off"}));
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->self, 1U);
  EXPECT_EQ(options->addresses[2], "x:3");
  EXPECT_EQ(options->read_ms, 5U);
  EXPECT_FALSE(options->admission);
  EXPECT_TRUE(options->hedging);
}

TEST(NodeOptions, AWrongOneIsNamedWithWhatIsAllowed) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto options = NodeOptions::parse(arguments);
    return options ? std::string("accepted") : options.error();
  };
  EXPECT_EQ(error(with({"--readers", "0"})), "--readers: must be 1 to 256");
  EXPECT_EQ(error(with({"--readers", "8x"})), "--readers: must be 1 to 256");
  EXPECT_EQ(error(with({"--hedging", "maybe"})), "--hedging: must be on or off");
  EXPECT_EQ(error(with({"--hedging"})), "--hedging: must be on or off");
  EXPECT_EQ(error(with({"--colour", "red"})), "--colour: no such option");
  EXPECT_EQ(error(with({"--name", "d"})), "--name: must be one of the names in --nodes");
  EXPECT_EQ(error({"--nodes", "a=1,a=2"}),
            "--nodes: must be 2 to 16 different name=address, separated by commas");
  EXPECT_EQ(error({"--nodes", "a=1"}),
            "--nodes: must be 2 to 16 different name=address, separated by commas");
  EXPECT_EQ(error({"--name", "a", "--nodes", "a=1,b=2"}), "--data: must be a folder");
}

}  // namespace
}  // namespace valuestore
