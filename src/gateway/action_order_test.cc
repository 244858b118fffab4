#include "action_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string error_of(std::string_view path, std::string_view body, std::string_view query = {}) {
  const auto order = action_order(path, query, body);
  return order ? "none" : order.error();
}

TEST(ActionOrder, IsReadFromItsJson) {
  const auto drain = action_order(
      "/actions/drain", "",
      R"({"upstream":"app","endpoint":"10.0.0.1:80","for_s":60,"force":true,"dry_run":false})");
  ASSERT_TRUE(drain.has_value());
  EXPECT_EQ(drain->upstream, "app");
  EXPECT_EQ(drain->endpoint, "10.0.0.1:80");
  EXPECT_EQ(drain->time, seconds(60));
  EXPECT_TRUE(drain->force);
  EXPECT_FALSE(drain->dry_run);
  EXPECT_EQ(action_order("/actions/shadow", "", R"({"rule":"limit"})")->time, minutes(10));
  EXPECT_EQ(action_order("/actions/cap", "", R"({"upstream":"a","limit":40})")->limit, 40U);
  EXPECT_EQ(action_order("/actions/log", "", R"({"route":2})")->route, 2U);
  EXPECT_EQ(action_order("/actions/log", "", R"({"actor":"al\"ice"})")->actor, "al\"ice");
  EXPECT_EQ(action_order("/actions/remove", "", R"({"id":"o1"})")->id, "o1");
  EXPECT_EQ(action_order("/actions/reload", "", "")->kind, ActionKind::kReload);
  EXPECT_EQ(action_order("/endpoints/10.0.0.1:80/drain", "", "{}")->endpoint, "10.0.0.1:80");
  EXPECT_EQ(action_order("/endpoints/[::1]:80/undrain", "", "{}")->kind, ActionKind::kUndrain);
}

TEST(ActionOrder, ADryRunIsAskedForInTheBodyOrTheQuery) {
  EXPECT_TRUE(action_order("/actions/reload", "dry_run", "{}")->dry_run);
  EXPECT_TRUE(action_order("/actions/reload", "dry_run=1", "{}")->dry_run);
  EXPECT_TRUE(action_order("/actions/reload", "", R"({"dry_run":true})")->dry_run);
  EXPECT_THAT(error_of("/actions/reload", "{}", "dryrun=1"), HasSubstr("dryrun"));
}

TEST(ActionOrder, OnlyActionsHavePaths) {
  for (const char* path : {"/actions/drain", "/actions/undrain", "/actions/shadow", "/actions/cap",
                           "/actions/log", "/actions/reload", "/actions/remove"}) {
    EXPECT_TRUE(action_at(path).has_value()) << path;
  }
  for (const char* path :
       {"/actions/", "/actions", "/actions/stop", "/actions/drain/", "/", "/endpoints",
        "/endpoints/drain", "/endpoints//drain", "/endpoints/a/open"}) {
    EXPECT_FALSE(action_at(path).has_value()) << path;
  }
}

TEST(ActionOrder, WhatIsWrongIsNamed) {
  EXPECT_THAT(error_of("/actions/drain", "{"), HasSubstr("JSON"));
  EXPECT_THAT(error_of("/actions/drain", "[]"), HasSubstr("JSON"));
  EXPECT_THAT(error_of("/actions/drain", "drain it"), HasSubstr("JSON"));
  EXPECT_THAT(error_of("/actions/drain", R"({"endpoint":"a","endpoint":"b"})"), HasSubstr("JSON"));
  EXPECT_THAT(error_of("/actions/drain", R"({"endpoint":"a","until":3})"),
              HasSubstr("until: not a member of this action; there are upstream endpoint"));
  EXPECT_THAT(error_of("/actions/undrain", R"({"endpoint":"a","force":true})"),
              HasSubstr("force: not a member"));
  EXPECT_THAT(error_of("/actions/drain", "{}"), HasSubstr("endpoint"));
  EXPECT_THAT(error_of("/actions/drain", R"({"endpoint":3})"), HasSubstr("endpoint"));
  EXPECT_THAT(error_of("/actions/drain", R"({"endpoint":"a","force":1})"),
              HasSubstr("force: wanted is true or false"));
  EXPECT_THAT(error_of("/actions/shadow", "{}"), HasSubstr("rule"));
  EXPECT_THAT(error_of("/actions/cap", R"({"upstream":"a"})"), HasSubstr("limit"));
  EXPECT_THAT(error_of("/actions/cap", R"({"limit":3})"), HasSubstr("upstream"));
  EXPECT_THAT(error_of("/actions/cap", R"({"upstream":"a","limit":0})"), HasSubstr("limit"));
  EXPECT_THAT(error_of("/actions/cap", R"({"upstream":"a","limit":1.5})"), HasSubstr("limit"));
  EXPECT_THAT(error_of("/actions/log", "{}"), HasSubstr("route"));
  EXPECT_THAT(error_of("/actions/log", R"({"actor":"a","route":1})"), HasSubstr("route"));
  EXPECT_THAT(error_of("/actions/remove", "{}"), HasSubstr("id"));
}

TEST(ActionOrder, NoTimeIsLongerThanTheLongestOfItsKind) {
  for (const char* time : {"0", "3601", "-1", "1e99", "\"10m\"", "null"}) {
    const std::string body = R"({"endpoint":"a","for_s":)" + std::string(time) + "}";
    EXPECT_THAT(error_of("/actions/drain", body),
                HasSubstr("for_s: wanted is a whole number from 1 to 3600"))
        << time;
  }
  EXPECT_THAT(error_of("/actions/log", R"({"actor":"a","for_s":61})"), HasSubstr("1 to 60"));
}

}  // namespace
}  // namespace weir::gateway
