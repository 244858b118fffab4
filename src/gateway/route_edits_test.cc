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
  for (const char* path :
       {"/api/../etc", "/api/%2e%2e/etc", "/api/..%2fetc", "/api/a/../../etc", "/api/..\\etc",
        "/api/..;/etc", "//api/x", "/api//x", "/api/.", "/api/..", "/api/a%2Fb", "/api/a%5cb",
        "/api/a;b", "/api/..%3b/etc", "/api/%2E%2e%3Bx/etc", "/api%2fa", "/api/%3b/x"}) {
    EXPECT_EQ(rewritten(prefix("/api", "/v2"), path), "ambiguous_path") << path;
  }
  EXPECT_EQ(rewritten(prefix("/api", ""), "/api/../etc"), "/api/../etc");
}

TEST(RouteEdits, APathWithCodesAndDotsInItsNamesIsRewritten) {
  for (const char* rest : {"/a%20b", "/J%C3%BCrgen", "/.well-known/x", "/...", "/a..b", "/..a",
                           "/.hidden.", "/100%25", "/%252e%252e/x", "/a%3Bb", "/a%3fb", "/%7Ejo",
                           "/a%zz", "/%", "/a/", "/a:b@c", "/a%20b?c=%2F&d=..;//"}) {
    EXPECT_EQ(rewritten(prefix("/api", "/v2"), std::string("/api") + rest),
              std::string("/v2") + rest);
  }
}

TEST(RouteEdits, ThePrefixMayBeSpelledWithCodes) {
  EXPECT_EQ(rewritten(prefix("/api", "/v2"), "/%61p%69/x"), "/v2/x");
  EXPECT_EQ(rewritten(prefix("/%7Ejo", "/v2"), "/~jo/x"), "/v2/x");
  EXPECT_EQ(rewritten(prefix("/J%c3%bcrgen", "/v2"), "/J%C3%BCrgen/x"), "/v2/x");
  EXPECT_EQ(rewritten(prefix("/a b", "/v2"), "/a%20b/x"), "ambiguous_path");  // reserved: not alike
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
