#include "route_edits.h"

#include <array>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

std::string rewritten(const RouteConfig& route, std::string_view path) {
  std::array<char, 64> out{};
  const auto found = RouteEdits(route).path_for(path, out);
  return found ? std::string(*found) : std::string(GatewayReason(found.error()).name());
}

RouteConfig prefix(std::string from, std::string to) {
  RouteConfig route;
  route.path_prefix = std::move(from);
  route.rewrite.path = std::move(to);
  return route;
}

TEST(RouteEdits, APrefixIsReplacedAndTheRestStays) {
  EXPECT_EQ(rewritten(prefix("/api", "/v2"), "/api/a/b?c=/api"), "/v2/a/b?c=/api");
  EXPECT_EQ(rewritten(prefix("/api", "/v2"), "/api"), "/v2");
  EXPECT_EQ(rewritten(prefix("/api", "/v2"), "/api?x"), "/v2?x");
  EXPECT_EQ(rewritten(prefix("/api/", "/v2/"), "/api/a"), "/v2/a");
  EXPECT_EQ(rewritten(prefix("/api", "/"), "/api/a"), "/a");
  EXPECT_EQ(rewritten(prefix("/api", "/"), "/api"), "/");
  EXPECT_EQ(rewritten(prefix("/api", "/"), "/api?x"), "/?x");
  EXPECT_EQ(rewritten(prefix("", "/app"), "/a"), "/app/a");
  EXPECT_EQ(rewritten(prefix("/", "/app"), "/"), "/app/");
  EXPECT_EQ(rewritten(prefix("/api", ""), "/api/a"), "/api/a");
}

TEST(RouteEdits, AnExactPathIsReplacedWhole) {
  RouteConfig route;
  route.path = "/old";
  route.rewrite.path = "/new/place";
  EXPECT_EQ(rewritten(route, "/old?a=b"), "/new/place?a=b");
}

TEST(RouteEdits, APathThatServersReadDifferentlyIsNotRewritten) {
  for (const char* path : {"/api/../etc", "/api/%2e%2e/etc", "/api/..%2fetc", "/api/a/../../etc",
                           "/api/..\\etc", "/api/..;/etc", "/%61pi/x", "//api/x"}) {
    EXPECT_EQ(rewritten(prefix("/api", "/v2"), path), "ambiguous_path") << path;
  }
  EXPECT_EQ(rewritten(prefix("/api", ""), "/api/../etc"), "/api/../etc");
}

TEST(RouteEdits, TheTargetOfOptionsStays) {
  EXPECT_EQ(rewritten(prefix("", "/app"), "*"), "*");
}

TEST(RouteEdits, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(rewritten(prefix("/a", "/v2"), "/a/" + std::string(58, 'x')),
            "/v2/" + std::string(58, 'x'));
  EXPECT_EQ(rewritten(prefix("/a", "/v2"), "/a/" + std::string(62, 'x')), "head_too_large");
}

TEST(RouteEdits, APathMayFillItsSpaceAndNoMore) {
  const RouteEdits edits(prefix("/api", "/v2"));
  std::array<char, 9> out{};
  const std::span<char> space = std::span(out).first(8);
  ASSERT_TRUE(edits.path_for("/api/1234", space));
  EXPECT_EQ(*edits.path_for("/api/1234", space), "/v2/1234");
  EXPECT_FALSE(edits.path_for("/api/12345", space));
  EXPECT_EQ(out[8], '\0');
}

TEST(RouteEdits, RemovedNamesAreFoundInAnySpelling) {
  RouteConfig route;
  route.rewrite.request_remove = {"X-Tenant_Id"};
  route.rewrite.response_remove = {"Server"};
  const RouteEdits edits(route);
  EXPECT_TRUE(edits.removes_from_request("x-tenant-id"));
  EXPECT_TRUE(edits.removes_from_request("X_TENANT_ID"));
  EXPECT_FALSE(edits.removes_from_request("x-tenant-i"));
  EXPECT_FALSE(edits.removes_from_request("x-tenant-id2"));
  EXPECT_FALSE(edits.removes_from_request("server"));
  EXPECT_TRUE(edits.removes_from_response("SERVER"));
}

}  // namespace
}  // namespace weir::gateway
