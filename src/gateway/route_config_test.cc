#include "weir/experimental/gateway/route_config.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

struct RouteFault {
  const char* key;  // "": the route is good
  std::function<void(RouteConfig&)> change;
};

std::string with_length(std::string text, std::size_t size) {
  text.resize(size, 'a');
  return text;
}

TEST(RouteConfig, EveryRuleNamesItsKey) {
  const std::vector<RouteFault> table = {
      {"", [](RouteConfig&) {}},
      {"headers", [](RouteConfig& r) { r.headers = {"a b: c"}; }},
      {"headers", [](RouteConfig& r) { r.headers = {"X-Weir-Peer"}; }},
      {"headers", [](RouteConfig& r) { r.headers.assign(9, "x-a"); }},
      {"", [](RouteConfig& r) { r.headers.assign(8, "x-a"); }},
      {"path_rewrite", [](RouteConfig& r) { r.rewrite.path = "v2"; }},
      {"path_rewrite", [](RouteConfig& r) { r.rewrite.path = "/a?b"; }},
      {"path_rewrite", [](RouteConfig& r) { r.rewrite.path = "/a/.."; }},
      {"path_rewrite", [](RouteConfig& r) { r.rewrite.path = "/a%2fb"; }},
      {"", [](RouteConfig& r) { r.rewrite.path = "/v2/x.y"; }},
      {"host_rewrite", [](RouteConfig& r) { r.rewrite.host = "a/b"; }},
      {"host_rewrite", [](RouteConfig& r) { r.rewrite.host = "user@host"; }},
      {"", [](RouteConfig& r) { r.rewrite.host = "[::1]:80"; }},
      {"request_headers_add", [](RouteConfig& r) { r.rewrite.request_add = {"x-a"}; }},
      {"request_headers_add", [](RouteConfig& r) { r.rewrite.request_add = {"HOST: b"}; }},
      {"request_headers_add", [](RouteConfig& r) { r.rewrite.request_add = {"x-weir-actor: b"}; }},
      {"request_headers_add", [](RouteConfig& r) { r.rewrite.request_add = {"x: a\nb"}; }},
      {"request_headers_add",
       [](RouteConfig& r) { r.rewrite.request_add = {with_length("x: ", 2049)}; }},
      {"", [](RouteConfig& r) { r.rewrite.request_add = {with_length("x: ", 2048)}; }},
      {"request_headers_remove", [](RouteConfig& r) { r.rewrite.request_remove = {"x: a"}; }},
      {"request_headers_remove", [](RouteConfig& r) { r.rewrite.request_remove = {"te"}; }},
      {"response_headers_add", [](RouteConfig& r) { r.rewrite.response_add = {": a"}; }},
      {"response_headers_add", [](RouteConfig& r) { r.rewrite.response_add.assign(17, "x: a"); }},
      {"", [](RouteConfig& r) { r.rewrite.response_add.assign(16, "x: a"); }},
      {"response_headers_remove",
       [](RouteConfig& r) { r.rewrite.response_remove = {"content-length"}; }},
      {"first_byte_timeout_ms", [](RouteConfig& r) { r.first_byte_timeout = Duration(0); }},
      {"", [](RouteConfig& r) { r.first_byte_timeout = std::chrono::hours(24); }},
      {"first_byte_timeout_ms",
       [](RouteConfig& r) {
         r.stream = true;
         r.first_byte_timeout = std::chrono::seconds(1);
       }},
      {"upstream", [](RouteConfig& r) { r.upstream.clear(); }},
      {"upstream", [](RouteConfig& r) { r.answer.respond = 200; }},
  };
  for (const RouteFault& row : table) {
    RouteConfig route;
    route.upstream = "app";
    row.change(route);
    const ConfigErrors errors = route.validate();
    EXPECT_EQ(errors.empty() ? "" : errors[0].key, row.key) << &row - table.data();
  }
}

TEST(RouteConfig, AnAnswerHasRulesOfItsOwn) {
  const std::vector<RouteFault> table = {
      {"", [](RouteConfig& r) { r.answer.redirect = "https://{host}{path}"; }},
      {"", [](RouteConfig& r) { r.answer.redirect = "/new{path}"; }},
      {"", [](RouteConfig& r) { r.answer.redirect = "/"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "{path}"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "/{path}"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "//host"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "/\\host"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "https://{path}"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "https://"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "https://{port}"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "https://a b"; }},
      {"redirect", [](RouteConfig& r) { r.answer.redirect = "javascript:x"; }},
      {"respond", [](RouteConfig& r) { r.answer.respond = 199; }},
      {"respond", [](RouteConfig& r) { r.answer.respond = 600; }},
      {"respond_body",
       [](RouteConfig& r) {
         r.answer.respond = 204;
         r.answer.respond_body = "text";
       }},
      {"respond_body",
       [](RouteConfig& r) {
         r.answer.respond = 200;
         r.answer.respond_body = std::string(4097, 'a');
       }},
      {"",
       [](RouteConfig& r) {
         r.answer.respond = 200;
         r.answer.respond_body = std::string(4096, 'a');
       }},
      {"respond",
       [](RouteConfig& r) {
         r.answer.respond = 200;
         r.rewrite.path = "/x";
       }},
  };
  for (const RouteFault& row : table) {
    RouteConfig route;
    row.change(route);
    const ConfigErrors errors = route.validate();
    EXPECT_EQ(errors.empty() ? "" : errors[0].key, row.key) << &row - table.data();
  }
  for (const std::uint32_t status : {300U, 304U, 305U, 306U, 309U}) {
    RouteConfig route;
    route.answer.redirect = "/new";
    route.answer.redirect_status = status;
    ASSERT_EQ(route.validate().size(), 1U) << status;
    EXPECT_EQ(route.validate()[0].key, "redirect_status");
  }
}

}  // namespace
}  // namespace weir::gateway
