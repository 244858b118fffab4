#include "route_answer.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/io/loop.h"

#include "fake_stream_testing.h"
#include "head_testing.h"

namespace weir::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;
using testkit::FakeStream;

struct RouteAnswerTest : testing::Test {
  RouteConfig config;
  io::Loop loop;
  FakeStream stream{loop};
  std::array<char, 64> text{};
  std::array<ResponseField, kRouteAnswerFields> fields;

  /// Its status, or the name of the refusal.
  std::string answered(std::string_view path, std::string_view authority = "example.com") {
    const TestHead head;
    ServerRequest request = head.request("GET", path);
    request.meta.authority = authority;
    const Route route{.config = config, .modes = {}, .edits = RouteEdits(config)};
    const auto status = send_route_answer(stream, request, route,
                                          {.request_id = "id-1", .text = text, .fields = fields});
    return status ? std::to_string(*status) : std::string(GatewayReason(status.error()).name());
  }
};

TEST_F(RouteAnswerTest, ARedirectNamesHostAndPathOfTheRequest) {
  config.answer.redirect = "https://{host}/new{path}";
  EXPECT_EQ(answered("/a?b=c"), "307");
  EXPECT_THAT(stream.fields, HasSubstr("location: https://example.com/new/a?b=c\n"));
  EXPECT_THAT(stream.fields, HasSubstr("x-request-id: id-1\n"));
  EXPECT_THAT(stream.fields, Not(HasSubstr("content-type")));
  EXPECT_EQ(stream.body, "");
}

// The location would be another host, "https:///evil.example", or none.
TEST_F(RouteAnswerTest, ARequestWithoutWhatTheRedirectNamesIsRefused) {
  config.answer.redirect = "https://{host}{path}";
  EXPECT_EQ(answered("/evil.example", ""), "no_route");
  EXPECT_EQ(answered("/", ":80"), "no_route");
  EXPECT_EQ(answered("*"), "no_route");
  EXPECT_EQ(stream.status, 0);
  config.answer.redirect = "https://example.net{path}";
  EXPECT_EQ(answered("/a", ""), "307");
  config.answer.redirect = "https://{host}/";
  EXPECT_EQ(answered("*"), "307");
}

TEST_F(RouteAnswerTest, ATargetThatDoesNotFitIsRefused) {
  config.answer.redirect = "https://{host}{path}";
  EXPECT_EQ(answered("/" + std::string(60, 'a')), "head_too_large");
  EXPECT_EQ(stream.status, 0);
}

TEST_F(RouteAnswerTest, AFixedAnswerHasStatusTextAndFields) {
  config.answer.respond = 503;
  config.answer.respond_body = "Back at noon.\n";
  config.rewrite.response_add = {"Retry-After: 600"};
  EXPECT_EQ(answered("/"), "503");
  EXPECT_EQ(stream.body, "Back at noon.\n");
  EXPECT_THAT(stream.fields, HasSubstr("retry-after: 600\n"));
  EXPECT_THAT(stream.fields, HasSubstr("content-type: text/plain; charset=utf-8\n"));
}

TEST_F(RouteAnswerTest, TheRouteMayNameTheTypeOfItsText) {
  config.answer.respond = 200;
  config.answer.respond_body = "{}";
  config.rewrite.response_add = {"Content-Type: application/json"};
  EXPECT_EQ(answered("/"), "200");
  EXPECT_THAT(stream.fields, HasSubstr("content-type: application/json\n"));
  EXPECT_THAT(stream.fields, Not(HasSubstr("text/plain")));
}

}  // namespace
}  // namespace weir::gateway
