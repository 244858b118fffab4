#include "route_table.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

const std::vector<std::string> kUpstreams = {"a", "b"};

RouteConfig to(std::string upstream) {
  RouteConfig route;
  route.upstream = std::move(upstream);
  return route;
}

constexpr int kNone = -1;
constexpr int kAmbiguous = -2;

/// Index of the route that matches, or one of the above.
int matched(const std::vector<RouteConfig>& routes, std::string_view authority,
            std::string_view path, std::string_view method = "GET", const TestHead& headers = {}) {
  const RouteTable table(routes, kUpstreams, {});
  std::array<char, 256> scratch{};
  const http::RequestMeta meta{
      .method = method, .scheme = "http", .authority = authority, .path = path};
  const auto [route, ambiguous] = table.match(
      {.meta = meta, .headers = headers.list(), .method = http::method_of(method)}, scratch);
  if (ambiguous) return kAmbiguous;
  return route == nullptr ? kNone : route->index;
}

const Route* route_at(const RouteTable& table, std::string_view path) {
  const http::RequestMeta meta{.method = "GET", .scheme = "http", .authority = "x", .path = path};
  return table.match({.meta = meta, .headers = {}, .method = http::Method::kGet}, {}).route;
}

TEST(RouteTable, TheFirstThatFitsWins) {
  RouteConfig first = to("a");
  first.path_prefix = "/api";
  EXPECT_EQ(matched({first, to("b")}, "x", "/api/v1"), 0);
  EXPECT_EQ(matched({first, to("b")}, "x", "/other"), 1);
  EXPECT_EQ(matched({to("b"), first}, "x", "/api/v1"), 0);
  EXPECT_EQ(matched({}, "x", "/"), -1);
}

TEST(RouteTable, ASchemeMatchesRequestsOfThatSchemeOnly) {
  RouteConfig plain = to("a");
  plain.scheme = Scheme::kHttp;
  RouteConfig secure = to("a");
  secure.scheme = Scheme::kHttps;
  const auto found = [](const std::vector<RouteConfig>& routes, Scheme scheme) {
    const RouteTable table(routes, kUpstreams, {});
    const http::RequestMeta meta{.method = "GET",
                                 .scheme = scheme == Scheme::kHttp ? "https" : "http",  // a lie
                                 .authority = "x",
                                 .path = "/"};
    const Route* route =
        table
            .match({.meta = meta, .headers = {}, .method = http::Method::kGet, .scheme = scheme},
                   {})
            .route;
    return route == nullptr ? kNone : route->index;
  };
  EXPECT_EQ(found({plain, secure}, Scheme::kHttp), 0);
  EXPECT_EQ(found({plain, secure}, Scheme::kHttps), 1);
  EXPECT_EQ(found({plain}, Scheme::kHttps), kNone);
  EXPECT_EQ(found({secure, to("b")}, Scheme::kHttp), 1);
  EXPECT_EQ(found({to("b"), secure}, Scheme::kHttps), 0);
}

TEST(RouteTable, ARouteCarriesTheModesOfItsRequests) {
  RouteConfig lax = to("a");
  lax.path = "/lax";
  lax.modes.limit = RuleMode::kShadow;
  lax.modes.memory = RuleMode::kOff;
  const RouteTable table(std::vector<RouteConfig>{lax, to("a")}, kUpstreams, {});
  const RuleModes found = route_at(table, "/lax")->modes.over({});
  EXPECT_EQ(found, (RuleModes{.memory = RuleMode::kOff, .limit = RuleMode::kShadow}));
  EXPECT_FALSE(route_at(table, "/other")->modes.any());
}

TEST(RouteTable, EachRouteToAnUpstreamIsAClassOfReadsUntilTheLast) {
  std::vector<RouteConfig> routes;
  for (int i = 0; i < 20; ++i) {
    RouteConfig route = to(i % 2 == 0 ? "a" : "b");
    route.path = "/" + std::to_string(i);
    routes.push_back(route);
  }
  const RouteTable table(routes, kUpstreams, {});
  for (int i = 0; i < 20; ++i) {
    const Route* route = route_at(table, "/" + std::to_string(i));
    ASSERT_NE(route, nullptr);
    EXPECT_EQ(route->reads, std::min(i / 2, 7));
  }
}

TEST(RouteTable, AllHeadersOfARouteMustFit) {
  RouteConfig route = to("a");
  route.headers = {"X-Canary", "x-tenant: gold", "accept: text/html"};
  const auto found = [&](const TestHead& head) {
    return matched({route, to("b")}, "x", "/", "GET", head);
  };
  EXPECT_EQ(found({{"x-canary", ""}, {"X-Tenant", "gold"}, {"Accept", "text/html"}}), 0);
  EXPECT_EQ(
      found(
          {{"x-canary", "1"}, {"x-tenant", "iron"}, {"x-tenant", "gold"}, {"accept", "text/html"}}),
      0);
  EXPECT_EQ(found({{"x-canary", "1"}, {"x-tenant", "Gold"}, {"accept", "text/html"}}), 1);
  EXPECT_EQ(found({{"x-canary", "1"}, {"x-tenant", "gold"}}), 1);
  EXPECT_EQ(found({{"x-tenant", "gold"}, {"accept", "text/html"}}), 1);
  EXPECT_EQ(found({}), 1);
}

TEST(RouteTable, SpellingsOfAPathDoNotChooseBetweenModes) {
  RouteConfig lax = to("a");
  lax.path_prefix = "/lax";
  lax.modes.actor = RuleMode::kOff;
  EXPECT_EQ(matched({lax, to("a")}, "x", "/lax/../x"), kAmbiguous);
  lax.modes = {};
  EXPECT_EQ(matched({lax, to("a")}, "x", "/lax/../x"), 0);
}

TEST(RouteTable, SpellingsOfAPathDoNotChooseBetweenRewrites) {
  RouteConfig rewritten = to("a");
  rewritten.path_prefix = "/api";
  rewritten.rewrite.path = "/v2";
  EXPECT_EQ(matched({rewritten, to("a")}, "x", "/api/../x"), kAmbiguous);
  EXPECT_EQ(matched({rewritten, to("a")}, "x", "/api/x"), 0);
}

TEST(RouteTable, APrefixIsMadeOfWholeSegments) {
  for (const char* prefix : {"/api", "/api/"}) {
    RouteConfig route = to("a");
    route.path_prefix = prefix;
    EXPECT_EQ(matched({route}, "x", "/api"), 0);
    EXPECT_EQ(matched({route}, "x", "/api/"), 0);
    EXPECT_EQ(matched({route}, "x", "/api/v1?q=1"), 0);
    EXPECT_EQ(matched({route}, "x", "/api?q=/x"), 0);
    EXPECT_EQ(matched({route}, "x", "/apix"), -1);
    EXPECT_EQ(matched({route}, "x", "/API"), -1);
  }
  RouteConfig all = to("a");
  all.path_prefix = "/";
  EXPECT_EQ(matched({all}, "x", "/anything"), 0);
  EXPECT_EQ(matched({all}, "x", "*"), 0);
}

TEST(RouteTable, AGrpcServiceHasAllItsMethodsAndAMethodOnlyItself) {
  RouteConfig method = to("a");
  method.grpc = "pkg.Service/Get";
  RouteConfig service = to("b");
  service.grpc = "pkg.Service";
  EXPECT_EQ(matched({method, service}, "x", "/pkg.Service/Get", "POST"), 0);
  EXPECT_EQ(matched({method, service}, "x", "/pkg.Service/Put", "POST"), 1);
  EXPECT_EQ(matched({method, service}, "x", "/pkg.Service/GetMore", "POST"), 1);
  EXPECT_EQ(matched({method, service}, "x", "/pkg.Service2/Get", "POST"), -1);
  EXPECT_EQ(matched({method, service}, "x", "/pkg.service/Get", "POST"), -1);
}

TEST(RouteTable, APathIsExactAndHasNoQuery) {
  RouteConfig route = to("a");
  route.path = "/health";
  EXPECT_EQ(matched({route}, "x", "/health"), 0);
  EXPECT_EQ(matched({route}, "x", "/health?deep=1"), 0);
  EXPECT_EQ(matched({route}, "x", "/health/"), -1);
}

TEST(RouteTable, HostsIgnoreCasePortAndTheFinalDot) {
  RouteConfig route = to("a");
  route.host = "Example.com";
  EXPECT_EQ(matched({route}, "example.COM:8080", "/"), 0);
  EXPECT_EQ(matched({route}, "example.com.", "/"), 0);
  EXPECT_EQ(matched({route}, "www.example.com", "/"), -1);
  EXPECT_EQ(matched({route}, "", "/"), -1);
  route.host = "[::1]";
  EXPECT_EQ(matched({route}, "[::1]:80", "/"), 0);
}

TEST(RouteTable, AStarServesEveryNameBelowADomain) {
  RouteConfig route = to("a");
  route.host = "*.Example.com";
  EXPECT_EQ(matched({route}, "a.example.com", "/"), 0);
  EXPECT_EQ(matched({route}, "a.b.EXAMPLE.com:1", "/"), 0);
  EXPECT_EQ(matched({route}, "example.com", "/"), -1);
  EXPECT_EQ(matched({route}, "badexample.com", "/"), -1);
}

TEST(RouteTable, MethodsAreExactAndMayBeUnknownOnes) {
  RouteConfig route = to("a");
  route.methods = {"GET", "PURGE"};
  EXPECT_EQ(matched({route}, "x", "/", "GET"), 0);
  EXPECT_EQ(matched({route}, "x", "/", "PURGE"), 0);
  EXPECT_EQ(matched({route}, "x", "/", "POST"), -1);
  EXPECT_EQ(matched({route}, "x", "/", "get"), -1);
  EXPECT_EQ(matched({route}, "x", "/", "BREW"), -1);
}

TEST(RouteTable, APathIsTheSameHoweverItIsSpelt) {
  RouteConfig dear = to("a");
  dear.path_prefix = "/re%70orts/caf%c3%a9";
  for (const char* path : {"/reports/caf%C3%A9", "/%72eports/caf%c3%a9", "/re%70orts/%63af%C3%a9/x",
                           "/%72%65%70%6F%72%74%73/caf%C3%A9?x"}) {
    EXPECT_EQ(matched({dear, to("b")}, "x", path), 0) << path;
  }
  for (const char* path : {"/reports/caf%C3", "/reports/caf%C3%A9%", "/%2572eports/caf%C3%A9",
                           "/reports/caf%C3%A9x"}) {
    EXPECT_EQ(matched({dear, to("b")}, "x", path), 1) << path;
  }
  EXPECT_EQ(matched({dear, to("b")}, "x", "/reports/caf%C3%A9/a%2Fb"), 0) << "both readings agree";
  for (const char* path : {"/reports%2Fcaf%C3%A9", "/reports/caf%C3%A9%2Fx"}) {
    EXPECT_EQ(matched({dear, to("b")}, "x", path), kAmbiguous) << path;
  }
  RouteConfig exact = to("a");
  exact.path = "/a";
  EXPECT_EQ(matched({exact}, "x", "/%61"), 0);
  EXPECT_EQ(matched({exact}, "x", "/%6"), -1);
  EXPECT_EQ(matched({exact}, "x", "/%61/"), -1);
}

/// What a client could choose by the spelling of a path: /health is critical, /report costs more.
std::vector<RouteConfig> classes() {
  RouteConfig critical = to("a");
  critical.path_prefix = "/health";
  critical.priority = Priority::kCritical;
  RouteConfig dear = to("a");
  dear.path_prefix = "/report";
  dear.cost = 10;
  return {critical, dear, to("a")};
}

TEST(RouteTable, ASpellingCannotChooseTheClass) {
  for (const char* path : {"/health/../report",
                           "/health/%2e%2E/report",
                           "/health/.%2e/report",
                           "/health/..",
                           "/health/..%2freport",
                           "/health%2f../report",
                           "/health/%2e%2e%2freport",
                           "//report",
                           "/./report",
                           "/%2e/report",
                           "/x/../report",
                           "/x/..;/report",
                           "/health/..;a=b/report",
                           "/health/..\\report",
                           "/health/..%5creport",
                           "/%5creport",
                           "/\\report",
                           "/;x/report",
                           "/x//../report/..;/../health",
                           "/report;v=1",
                           "/x%2f..%2fhealth",
                           "//report?x"}) {
    EXPECT_EQ(matched(classes(), "x", path), kAmbiguous) << path;
  }
}

TEST(RouteTable, DailySpellingsAreForwarded) {
  const std::vector<std::pair<const char*, int>> daily = {{"/health/...", 0},
                                                          {"/health/.well-known", 0},
                                                          {"/health/x?redirect=/../y", 0},
                                                          {"/health/./x", 0},
                                                          {"/health/a/../b", 0},
                                                          {"/health//x", 0},
                                                          {"/health/x;v=1", 0},
                                                          {"/report/a%2Fb", 1},
                                                          {"/report/2024;q=1/x", 1},
                                                          {"/api/a%2Fb%20c", 2},
                                                          {"/files//x", 2},
                                                          {"/a;jsessionid=1/b", 2},
                                                          {"/x/../y", 2},
                                                          {"/caf%C3%A9", 2},
                                                          {"/%E2%82%AC/./", 2},
                                                          {"*", 2},
                                                          {"/", 2},
                                                          {"/..", 2}};
  for (const auto& [path, route] : daily) EXPECT_EQ(matched(classes(), "x", path), route) << path;
}

TEST(RouteTable, ReadingsThatAreTreatedAlikeAreForwarded) {
  RouteConfig same = to("a");
  same.path_prefix = "/report";
  EXPECT_EQ(matched({same, to("a")}, "x", "//report"), 1) << "the routes do not differ";
  RouteConfig odd = to("a");
  odd.path_prefix = "/a;b";
  odd.cost = 5;
  EXPECT_EQ(matched({odd, to("a")}, "x", "/a;b/c"), 0) << "the route itself is spelt so";
}

TEST(RouteTable, APathThatNoRouteServesAsWrittenHasNone) {
  RouteConfig only = to("a");
  only.path_prefix = "/report";
  EXPECT_EQ(matched({only}, "x", "//report"), kNone);
  EXPECT_EQ(matched({only}, "x", "/report/../secret"), kAmbiguous) << "no route serves /secret";
  EXPECT_EQ(matched({only}, "x", "/report/" + std::string(300, '%')), kNone)
      << "beyond the scratch";
}

TEST(RouteTable, RoutesTakeTheActorsIdentityUnlessTheyHaveTheirOwn) {
  RouteConfig own = to("b");
  own.path = "/own";
  own.identity = {IdentityKind::kAddress};
  own.max_body = 10;
  own.cost = 3;
  const std::vector<IdentityKind> common = {IdentityKind::kApiKey};
  const RouteTable table(std::vector<RouteConfig>{own, to("a")}, kUpstreams, common);
  const Route* first = route_at(table, "/own");
  const Route* second = route_at(table, "/");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->config.identity, own.identity);
  EXPECT_EQ(first->upstream, 1);
  EXPECT_EQ(first->config.max_body, 10U);
  EXPECT_EQ(first->config.cost, 3U);
  EXPECT_EQ(second->config.identity, common);
  EXPECT_EQ(second->upstream, 0);
}

}  // namespace
}  // namespace weir::gateway
