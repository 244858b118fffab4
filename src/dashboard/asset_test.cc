#include "dashboard/asset.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Asset, IsThereIfTheDashboardIsBuilt) {
  EXPECT_EQ(assets().empty(), WEIR_HAS_DASHBOARD == 0);
  EXPECT_EQ(find_asset("index.html") != nullptr, WEIR_HAS_DASHBOARD == 1);
}

TEST(Asset, IsFoundByItsNameOnly) {
  for (const Asset& asset : assets()) EXPECT_EQ(find_asset(asset.name), &asset);
  EXPECT_EQ(find_asset("nothing.js"), nullptr);
  EXPECT_EQ(find_asset(""), nullptr);
  EXPECT_EQ(find_asset("../CMakeLists.txt"), nullptr);
}

TEST(Asset, HasAHashAndATypeAndBothForms) {
  for (const Asset& asset : assets()) {
    EXPECT_EQ(asset.hash.size(), 16U) << asset.name;
    EXPECT_FALSE(asset.content.empty()) << asset.name;
    EXPECT_THAT(std::string(asset.gzip), StartsWith("\x1f\x8b")) << asset.name;
    // Without a time: the same files make the same program.
    EXPECT_EQ(asset.gzip.substr(4, 4), std::string_view("\0\0\0\0", 4)) << asset.name;
    const bool page = asset.name.ends_with(".html");
    EXPECT_EQ(asset.content_type == "text/html; charset=utf-8", page) << asset.name;
  }
}

TEST(Asset, StandsInTheOrderOfNames) {
  EXPECT_TRUE(std::is_sorted(assets().begin(), assets().end(),
                             [](const Asset& a, const Asset& b) { return a.name < b.name; }));
}

}  // namespace
}  // namespace weir::dashboard
