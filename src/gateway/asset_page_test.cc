#include "asset_page.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "dashboard/asset.h"

namespace weir::gateway {
namespace {

std::string field_of(const AdminPage& page, std::string_view name) {
  for (const AdminField& field : page.fields) {
    if (field.name == name) return field.value;
  }
  return {};
}

constexpr std::string_view kAcceptOfBrowser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";

TEST(AssetPage, EveryFileHasItsPageInBothForms) {
  for (const dashboard::Asset& asset : dashboard::assets()) {
    const std::string path = "/dashboard/" + std::string(asset.name);
    const auto plain = asset_page({.path = path});
    ASSERT_TRUE(plain.has_value()) << path;
    EXPECT_EQ(plain->static_body, asset.content);
    EXPECT_EQ(plain->content_type, asset.content_type);
    EXPECT_EQ(plain->cache_control, "no-cache");
    EXPECT_EQ(plain->runs_scripts, asset.name.ends_with(".html"));
    EXPECT_EQ(field_of(*plain, "content-encoding"), "");
    const auto small = asset_page({.path = path, .accept_encoding = "br, gzip;q=0.5"});
    EXPECT_EQ(small->static_body, asset.gzip);
    EXPECT_EQ(field_of(*small, "content-encoding"), "gzip");
    EXPECT_NE(field_of(*small, "etag"), field_of(*plain, "etag"));
  }
}

TEST(AssetPage, GzipIsSentOnlyToThoseWhoAcceptIt) {
  for (const dashboard::Asset& asset : dashboard::assets()) {
    const std::string path = "/dashboard/" + std::string(asset.name);
    for (const char* refusal : {"gzip;q=0", "gzip;q=0.0", "br", "xgzip", ""}) {
      EXPECT_EQ(asset_page({.path = path, .accept_encoding = refusal})->static_body, asset.content)
          << refusal;
    }
  }
}

TEST(AssetPage, ABrowserThatHasTheFileGets304) {
  for (const dashboard::Asset& asset : dashboard::assets()) {
    const std::string path = "/dashboard/" + std::string(asset.name);
    const std::string tag = field_of(*asset_page({.path = path}), "etag");
    for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
      const auto page = asset_page({.path = path, .if_none_match = known});
      EXPECT_EQ(page->status, 304) << known;
      EXPECT_TRUE(page->static_body.empty() && page->body.empty());
      EXPECT_EQ(field_of(*page, "etag"), tag);
    }
    EXPECT_EQ(asset_page({.path = path, .if_none_match = "\"other\""})->status, 200);
  }
}

TEST(AssetPage, TheRootIsTheDashboardForBrowsersOnly) {
  const dashboard::Asset* index = dashboard::find_asset("index.html");
  const auto page = asset_page({.path = "/", .accept = kAcceptOfBrowser});
  EXPECT_EQ(page.has_value(), index != nullptr);
  if (page) {
    EXPECT_EQ(page->static_body, index->content);
  }
  EXPECT_FALSE(asset_page({.path = "/", .accept = "*/*"}).has_value());
  EXPECT_FALSE(asset_page({.path = "/"}).has_value());
}

TEST(AssetPage, OtherPathsAreNotFiles) {
  for (const char* path : {"/dashboard", "/dashboard/", "/dashboard/nothing.js",
                           "/dashboard/../index.html", "/dashboard//index.html", "/index.html"}) {
    EXPECT_FALSE(asset_page({.path = path, .accept = kAcceptOfBrowser}).has_value()) << path;
  }
}

}  // namespace
}  // namespace weir::gateway
