#include "forward_head.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Given {
  bool peer = false;
  bool proxy = false;
  Forwarded forwarded = Forwarded::kSet;
  Intent intent{};
  bool upgrade = false;
  RouteConfig route{};
};

std::string written(const ServerRequest& request, const Given& given = {}) {
  Caller caller;
  caller.socket = caller.client = parse_ip("192.0.2.7");
  caller.peer = given.peer;
  caller.proxy = given.proxy;
  std::string out(8192, '\0');
  const RouteEdits edits(given.route);
  std::array<char, 256> scratch{};
  const auto path = edits.path_for(request.meta.path, scratch);
  if (!path) return "refused";
  const auto head = write_request_head(out, request,
                                       {.caller = caller,
                                        .intent = given.intent,
                                        .edits = edits,
                                        .path = *path,
                                        .forwarded = given.forwarded,
                                        .request_id = "generated-id",
                                        .fallback_host = "app",
                                        .upgrade = given.upgrade});
  if (!head) return "error " + std::to_string(static_cast<int>(head.error()));
  out.resize(head->size);
  return out + "\r\n";
}

TEST(ForwardHead, APlainRequestPassesWithWhatWeAdd) {
  const TestHead head{{"Accept", "*/*"}, {"X-Thing", "1"}};
  EXPECT_EQ(written(head.request("GET", "/a?b=c")),
            "GET /a?b=c HTTP/1.1\r\n"
            "host: example.com\r\n"
            "Accept: */*\r\n"
            "X-Thing: 1\r\n"
            "via: 1.1 weir\r\n"
            "x-forwarded-for: 192.0.2.7\r\n"
            "x-forwarded-proto: http\r\n"
            "x-request-id: generated-id\r\n"
            "\r\n");
}

TEST(ForwardHead, FieldsOfThisHopAreRemoved) {
  TestHead head{{"Connection", "keep-alive, x-mine"},
                {"Keep-Alive", "timeout=5"},
                {"Proxy-Authorization", "Basic eA=="},
                {"TE", "trailers, deflate"},
                {"Transfer-Encoding", "chunked"},
                {"Expect", "100-continue"},
                {"HTTP2-Settings", "x"},
                {"Upgrade", "h2c"}};
  const std::string out = written(head.request());
  for (const char* name : {"onnection", "eep-Alive", "roxy-Auth", "te:", "TE:", "xpect", "HTTP2",
                           "pgrade", "ransfer"}) {
    EXPECT_THAT(out, Not(HasSubstr(name))) << name;
  }
}

TEST(ForwardHead, OurFieldsFromStrangersAreRemovedHoweverTheyAreSpelled) {
  const TestHead head{{"X-Weir-Priority", "critical"}, {"x-weir-actor", "alice"},
                      {"X_Weir_Priority", "critical"}, {"x-weir-secret", "1"},
                      {"X-WEIR-Peer", "me"},           {"x-weir-attempt", "2"},
                      {"x-weir-deadline-ms", "1"},     {"x-weir-reason", "x"},
                      {"x_forwarded_for", "1.1.1.1"},  {"X_Real_IP", "1.1.1.1"},
                      {"X-Forwarded-For", "1.1.1.1"},  {"Forwarded", "for=1.1.1.1"},
                      {"X-Forwarded-Host", "evil"},    {"X-Forwarded-Proto", "https"},
                      {"X-Forwarded-Port", "1"},       {"x-weirdo", "kept"}};
  const std::string out = written(head.request());
  EXPECT_THAT(out, Not(HasSubstr("critical")));
  EXPECT_THAT(out, Not(HasSubstr("alice")));
  EXPECT_THAT(out, Not(HasSubstr("1.1.1.1")));
  EXPECT_THAT(out, Not(HasSubstr("evil")));
  EXPECT_THAT(out, Not(HasSubstr("eir-")));
  EXPECT_THAT(out, Not(HasSubstr("https")));
  EXPECT_THAT(out, Not(HasSubstr("X-Forwarded-Port")));
  EXPECT_THAT(out, HasSubstr("x-weirdo: kept\r\n"));
  EXPECT_THAT(out, HasSubstr("x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: http\r\n"));
}

TEST(ForwardHead, AProxysWordIsKeptAndContinued) {
  const TestHead head{{"X-Forwarded-For", "203.0.113.9"}, {"X-Forwarded-For", "10.0.0.1"},
                      {"X-Forwarded-Proto", "https"},     {"X-Forwarded-Host", "shop.example"},
                      {"X-Forwarded-Port", "443"},        {"Forwarded", "for=203.0.113.9"}};
  const std::string out = written(head.request(), {.proxy = true});
  EXPECT_THAT(out, HasSubstr("x-forwarded-for: 203.0.113.9, 10.0.0.1, 192.0.2.7\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("X-Forwarded-For")));
  EXPECT_THAT(out, HasSubstr("X-Forwarded-Proto: https\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("x-forwarded-proto: http\r\n")));
  EXPECT_THAT(out, HasSubstr("X-Forwarded-Host: shop.example\r\n"));
  EXPECT_THAT(out, HasSubstr("X-Forwarded-Port: 443\r\n"));
}

TEST(ForwardHead, NothingIsToldWhenThePolicyIsOff) {
  const TestHead head{{"X-Forwarded-For", "203.0.113.9"}};
  const std::string out = written(head.request(), {.proxy = true, .forwarded = Forwarded::kOff});
  EXPECT_THAT(out, Not(HasSubstr("orwarded")));
}

TEST(ForwardHead, APeersIntentIsPassedOnAsWeUnderstoodIt) {
  const TestHead head{{"x-weir-priority", "bogus"},
                      {"x-weir-actor", "alice"},
                      {"x-weir-attempt", "2"},
                      {"x-weir-deadline-ms", "900"},
                      {"x-weir-peer", "gate-1"}};
  Given given{.peer = true};
  given.intent = {
      .priority = Priority::kHigh, .time_left = std::chrono::milliseconds(850), .attempt = 2};
  const std::string out = written(head.request(), given);
  EXPECT_THAT(out, HasSubstr("x-weir-priority: high\r\n"
                             "x-weir-actor: alice\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("x-weir-attempt")));  // each attempt adds its own
  EXPECT_THAT(out, Not(HasSubstr("gate-1")));
  EXPECT_THAT(out, Not(HasSubstr("bogus")));
}

TEST(ForwardHead, ADeadlineIsNotWrittenBecauseEachAttemptHasItsOwn) {
  const TestHead head{{"x-weir-deadline-ms", "900"}};
  Given given{.peer = true};
  given.intent.time_left = std::chrono::milliseconds(900);
  EXPECT_THAT(written(head.request("POST"), given), Not(HasSubstr("deadline")));
}

TEST(ForwardHead, ThePartsOfTheHeadAreMarkedForOtherProtocols) {
  const TestHead head{{"Accept", "a"}, {"Connection", "upgrade"}, {"Upgrade", "websocket"}};
  std::string out(8192, '\0');
  const Caller caller;
  ServerRequest request = head.request("GET");
  request.body_length = std::nullopt;
  const RouteEdits edits;
  const auto parts = write_request_head(out, request,
                                        {.caller = caller,
                                         .intent = {},
                                         .edits = edits,
                                         .path = request.meta.path,
                                         .request_id = "id",
                                         .upgrade = true});
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->method_text(), "GET");
  EXPECT_EQ(parts->path(), request.meta.path);
  EXPECT_EQ(parts->authority(), request.meta.authority);
  EXPECT_EQ(parts->framing, upstream::RequestFraming::kChunked);
  std::string fields;
  parts->for_each_field([&](std::string_view name, std::string_view value) {
    fields.append(name).append("=").append(value).append("|");
  });
  EXPECT_EQ(fields, "Accept=a|via=1.1 weir|x-forwarded-proto=http|x-request-id=id|");
  EXPECT_TRUE(std::string_view(out)
                  .substr(0, parts->size)
                  .ends_with("upgrade: websocket\r\ntransfer-encoding: chunked\r\n"));
}

TEST(ForwardHead, TheFramingIsTheBodysOwn) {
  const TestHead with_length{{"Content-Length", "5"}};
  ServerRequest request = with_length.request("POST");
  request.body_length = 5;
  EXPECT_THAT(written(request), HasSubstr("content-length: 5\r\n\r\n"));
  request.body_length = std::nullopt;
  EXPECT_THAT(written(request), HasSubstr("transfer-encoding: chunked\r\n\r\n"));
  EXPECT_THAT(written(request), Not(HasSubstr("ontent-Length")));
  request.body_length = 0;
  EXPECT_THAT(written(request), HasSubstr("content-length: 0\r\n\r\n"));
  const TestHead none;
  EXPECT_THAT(written(none.request("GET")), Not(HasSubstr("content-length")));
}

TEST(ForwardHead, RequestIdAndTraceContextPassThrough) {
  const TestHead head{{"X-Request-Id", "mine"}, {"traceparent", "00-abc-def-01"}};
  const std::string out = written(head.request());
  EXPECT_THAT(out, HasSubstr("X-Request-Id: mine\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("generated-id")));
  EXPECT_THAT(out, HasSubstr("traceparent: 00-abc-def-01\r\n"));
}

TEST(ForwardHead, AnUpgradeIsAskedForAnewAndTrailersAreWelcome) {
  const TestHead head{
      {"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Key", "k"}};
  ServerRequest request = head.request();
  request.te_trailers = true;
  const std::string out = written(request, {.upgrade = true});
  EXPECT_THAT(out, HasSubstr("connection: upgrade\r\nupgrade: websocket\r\n"));
  EXPECT_THAT(out, HasSubstr("Sec-WebSocket-Key: k\r\n"));
  EXPECT_THAT(out, HasSubstr("te: trailers\r\n"));
}

TEST(ForwardHead, TheGatewaysOwnKeyReplacesThatOfAnHttp2Client) {
  const TestHead head{{"sec-websocket-key", "theirs"}, {"sec-websocket-version", "13"}};
  const Caller caller;
  std::string out(8192, '\0');
  const RouteEdits edits;
  const auto size = write_request_head(out, head.request(),
                                       {.caller = caller,
                                        .intent = {},
                                        .edits = edits,
                                        .path = "/",
                                        .upgrade = true,
                                        .websocket_key = "ours"});
  ASSERT_TRUE(size.has_value());
  out.resize(size->size);
  EXPECT_THAT(out, HasSubstr("sec-websocket-version: 13\r\n"));
  EXPECT_THAT(out, ::testing::EndsWith(
                       "sec-websocket-key: ours\r\nconnection: upgrade\r\nupgrade: websocket\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("theirs")));
}

TEST(ForwardHead, ViaGrowsAndHttp10GetsAHost) {
  const TestHead head{{"Via", "1.1 edge"}};
  ServerRequest request = head.request();
  request.version = HttpVersion::k10;
  request.meta.authority = {};
  const std::string out = written(request);
  EXPECT_THAT(out, HasSubstr("host: app\r\n"));
  EXPECT_THAT(out, HasSubstr("Via: 1.1 edge\r\nvia: 1.0 weir\r\n"));
}

TEST(ForwardHead, WhatDoesNotFitIsAnError) {
  const TestHead head;
  const Caller caller;
  std::string out(40, '\0');
  const RouteEdits edits;
  const auto size = write_request_head(
      out, head.request(), {.caller = caller, .intent = {}, .edits = edits, .path = "/"});
  ASSERT_FALSE(size.has_value());
  EXPECT_EQ(size.error(), http::h1::WriteError::kDoesNotFit);
}

TEST(ForwardHead, AClassInBaggageIsForwardedOnlyForTrustedPeers) {
  const TestHead head{{"baggage", "a=b,weir.priority=critical"}, {"Baggage", "Weir.Priority=low"}};
  const std::string theirs = written(head.request("GET"));
  EXPECT_THAT(theirs, HasSubstr("baggage: a=b\r\n"));
  EXPECT_THAT(theirs, Not(HasSubstr("riority=")));
  EXPECT_THAT(written(head.request("GET"), {.peer = true}),
              AllOf(HasSubstr("baggage: a=b,weir.priority=critical\r\n"),
                    HasSubstr("x-weir-priority: normal\r\n")));
  const std::string long_list = "weir.priority=high," + std::string(8192, 'a');
  EXPECT_THAT(written(TestHead{{"baggage", long_list}}.request("GET")), Not(HasSubstr("baggage")));
}

TEST(ForwardHead, ARouteChangesPathHostAndFields) {
  RouteConfig route;
  route.path_prefix = "/api";
  route.rewrite.path = "/v2";
  route.rewrite.host = "app.internal:81";
  route.rewrite.request_remove = {"Cookie", "X-Tenant"};
  route.rewrite.request_add = {"X-Tenant: gold", "x-empty:"};
  const TestHead head{
      {"Cookie", "a=b"}, {"X_Tenant", "forged"}, {"x-tenant", "forged"}, {"x-other", "1"}};
  EXPECT_EQ(written(head.request("GET", "/api/a?b=/api"), {.route = route}),
            "GET /v2/a?b=/api HTTP/1.1\r\nhost: app.internal:81\r\nx-other: 1\r\n"
            "x-tenant: gold\r\nx-empty: \r\nvia: 1.1 weir\r\nx-forwarded-for: 192.0.2.7\r\n"
            "x-forwarded-proto: http\r\nx-request-id: generated-id\r\n\r\n");
}

TEST(RequestId, IsHexAndDiffers) {
  Rng rng(7);
  const RequestId one = RequestId::draw(rng);
  const RequestId two = RequestId::draw(rng);
  EXPECT_EQ(one.view().size(), 32U);
  EXPECT_EQ(one.view().find_first_not_of("0123456789abcdef"), std::string_view::npos);
  EXPECT_NE(one.view(), two.view());
}

TEST(ResponseFields, ATunnelInHttp2HasNeitherUpgradeNorAccept) {
  const TestHead head{{"Connection", "upgrade"},
                      {"Upgrade", "websocket"},
                      {"Sec-WebSocket-Accept", "x"},
                      {"Sec-WebSocket-Protocol", "chat"}};
  upstream::ResponseHead response;
  response.headers = head.list();
  response.status = 101;
  response.tunnel = true;
  const auto names = [&](bool in_http2) {
    std::vector<ResponseField> storage(32);
    std::string all;
    for (const ResponseField& field : response_fields(response, "", {}, storage, in_http2)) {
      all += std::string(field.name) + " ";
    }
    return all;
  };
  EXPECT_EQ(names(false), "Sec-WebSocket-Accept Sec-WebSocket-Protocol via upgrade ");
  EXPECT_EQ(names(true), "Sec-WebSocket-Protocol via ");
}

TEST(ResponseFields, HopFieldsAndFramingStayBehind) {
  const TestHead head{{"Content-Type", "text/plain"}, {"Content-Length", "5"},
                      {"Connection", "close"},        {"Transfer-Encoding", "chunked"},
                      {"Set-Cookie", "a=b"},          {"Set-Cookie", "c=d"}};
  upstream::ResponseHead response;
  response.status = 200;
  response.headers = head.list();
  std::vector<ResponseField> storage(32);
  std::string all;
  for (const ResponseField& field : response_fields(response, "", {}, storage)) {
    all.append(field.name).append("=").append(field.value).append("|");
  }
  EXPECT_EQ(all, "Content-Type=text/plain|Set-Cookie=a=b|Set-Cookie=c=d|via=1.1 weir|");
}

TEST(ResponseFields, ARouteRemovesThenAdds) {
  const TestHead head{{"Server", "app/1.2"}, {"X-Powered-By", "x"}, {"Vary", "a"}};
  upstream::ResponseHead response;
  response.headers = head.list();
  RouteConfig route;
  route.rewrite.response_remove = {"x-powered-by", "server"};
  route.rewrite.response_add = {"Server: weir", "strict-transport-security: max-age=60"};
  const RouteEdits edits(route);
  std::vector<ResponseField> storage(32);
  std::string all;
  for (const ResponseField& field : response_fields(response, "", edits, storage)) {
    all.append(field.name).append("|");
  }
  EXPECT_EQ(all, "Vary|server|strict-transport-security|via|");
}

TEST(ResponseFields, ASwitchOfProtocolsNamesTheProtocol) {
  const TestHead head{{"Connection", "upgrade"}, {"Upgrade", "websocket"}};
  upstream::ResponseHead response;
  response.status = 101;
  response.tunnel = true;
  response.headers = head.list();
  std::vector<ResponseField> storage(32);
  const auto fields = response_fields(response, "", {}, storage);
  ASSERT_FALSE(fields.empty());
  EXPECT_EQ(fields.back().name, "upgrade");
  EXPECT_EQ(fields.back().value, "websocket");
}

TEST(ResponseFields, TheRequestIdGoesBackUnlessTheUpstreamSendsOne) {
  const auto id_in = [](const TestHead& head, std::string_view id) {
    upstream::ResponseHead response;
    response.headers = head.list();
    std::vector<ResponseField> storage(32);
    std::string all;
    for (const ResponseField& field : response_fields(response, id, {}, storage)) {
      if (field.name == "x-request-id") all.append(field.value).append("|");
    }
    return all;
  };
  EXPECT_EQ(id_in(TestHead{}, "r1"), "r1|");
  EXPECT_EQ(id_in(TestHead{{"x-request-id", "theirs"}}, "r1"), "theirs|");
  EXPECT_EQ(id_in(TestHead{}, ""), "");
}

TEST(Trailers, FramingRoutingAndOurOwnNamesAreNotPassedOn) {
  const TestHead head{{"x-checksum", "1"},          {"grpc-status", "0"},
                      {"x-weir-priority", "high"},  {"x_weir_actor", "a"},
                      {"X-Weir-Reason", "limit"},   {"x-weir-retry-after-ms", "9"},
                      {"x-weir-attempt", "2"},      {"x-weir-deadline-ms", "1"},
                      {"x-weir-not-known-yet", ""}, {"x-forwarded-for", "1.2.3.4"},
                      {"x-real-ip", "1.2.3.4"},     {"authorization", "b"},
                      {"content-length", "1"}};
  std::string passed;
  for (const http::HeaderView& field : head.list()) {
    if (may_forward_trailer(field)) passed.append(field.name).append(" ");
  }
  EXPECT_EQ(passed, "x-checksum grpc-status ");
}

}  // namespace
}  // namespace weir::gateway
