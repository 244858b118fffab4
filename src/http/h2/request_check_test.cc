#include "h2/request_check.h"

#include <gtest/gtest.h>

namespace weir::inline v0::http::h2 {
namespace {

TEST(RequestCheck, PathsAreTargets) {
  EXPECT_TRUE(is_valid_path(Method::kGet, "/"));
  EXPECT_TRUE(is_valid_path(Method::kGet, "/a%20b?c=d"));
  EXPECT_TRUE(is_valid_path(Method::kOptions, "*"));
  EXPECT_FALSE(is_valid_path(Method::kGet, "*"));
  EXPECT_FALSE(is_valid_path(Method::kGet, ""));
  EXPECT_FALSE(is_valid_path(Method::kGet, "a"));
  EXPECT_FALSE(is_valid_path(Method::kGet, "http://a/"));
  EXPECT_FALSE(is_valid_path(Method::kGet, "/a b"));
  EXPECT_FALSE(is_valid_path(Method::kGet, "/a\r\n"));
}

TEST(RequestCheck, OnlyUsualRequestsMayBeSent) {
  const RequestStart good{"GET", "https", "example.org:8443", "/", {}, true};
  EXPECT_TRUE(may_be_requested(good));
  const auto with = [&](auto change) {
    RequestStart start = good;
    change(start);
    return may_be_requested(start);
  };
  EXPECT_TRUE(with([](RequestStart& r) { r.authority = ""; }));
  EXPECT_TRUE(with([](RequestStart& r) { r.method = "PURGE"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.method = "CONNECT"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.method = ""; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.method = "G ET"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.method = "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABC"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.scheme = "ftp"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.authority = "user@a"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.authority = "a b"; }));
  EXPECT_FALSE(with([](RequestStart& r) { r.path = "x"; }));
}

TEST(RequestCheck, FieldsDoNotRepeatPseudoHeaders) {
  const auto with = [](const Field& field) {
    return may_be_requested({"GET", "http", "a", "/", {&field, 1}, true});
  };
  EXPECT_TRUE(with({"te", "trailers"}));
  EXPECT_FALSE(with({"te", "gzip"}));
  EXPECT_FALSE(with({"Host", "b"}));
  EXPECT_FALSE(with({"http2-settings", "x"}));
}

}  // namespace
}  // namespace weir::inline v0::http::h2
