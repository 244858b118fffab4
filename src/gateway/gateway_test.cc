// The whole gateway in this process: real sockets, scripted origins, blocking clients.
#include "weir/experimental/gateway/gateway.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RawOrigin;
using testkit::RunningGateway;

TEST(Gateway, PassesARequestAndItsAnswerOn) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  for (int i = 0; i < 3; ++i) {
    const Answer answer = client.get("/a?b=c");
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr("GET /a?b=c\n"));
    EXPECT_THAT(answer.body, HasSubstr("host: t\n"));
    EXPECT_THAT(answer.body, HasSubstr("x-forwarded-for: 127.0.0.1\n"));
    EXPECT_TRUE(answer.has("via: 1.1 weir\r\n"));
    EXPECT_EQ(answer.head.find("date: "), answer.head.rfind("date: "));
  }
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 3U);
}

TEST(Gateway, BodiesPassWithTheirFramingAndTrailers) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer sized = client.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello");
  EXPECT_THAT(sized.body, HasSubstr("content-length: 5\n"));
  EXPECT_TRUE(sized.body.ends_with("hello"));
  const Answer chunked = client.ask(
      "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n3\r\ndef\r\n0\r\nx-sum: 7\r\nx-weir-x: eve\r\n\r\n");
  EXPECT_THAT(chunked.body, HasSubstr("transfer-encoding: chunked\n"));
  EXPECT_THAT(chunked.body, HasSubstr("abcdef"));
  EXPECT_TRUE(chunked.body.ends_with("trailer x-sum=7")) << chunked.body;
  const Answer empty = client.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n");
  EXPECT_THAT(empty.body, HasSubstr("content-length: 0\n"));
}

TEST(Gateway, AHeadAnswerKeepsItsLengthAndHasNoBody) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nhost: t\r\n\r\n"));
  const Answer answer = client.read(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("content-length: 1000\r\n"));
}

TEST(Gateway, AHeadAnswerWithoutALengthIsGivenNone) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  for (int i = 0; i < 2; ++i) {  // the connection is still in step
    ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nhost: t\r\n\r\n"));
    const Answer answer = client.read(true);
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(answer.has("content-length")) << "a cache would take its page for empty";
  }
}

TEST(Gateway, ResponsesOfEveryFramingArrive) {
  RawOrigin origin([](int fd, const std::string& head) {
    if (head.starts_with("GET /chunked")) {
      RawOrigin::say(fd,
                     "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n");
    } else if (head.starts_with("GET /close")) {
      RawOrigin::say(fd, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    } else {
      RawOrigin::say(fd, "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    }
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer chunked =
      client.ask("GET /chunked HTTP/1.1\r\nhost: t\r\nconnection: te\r\nte: trailers\r\n\r\n");
  EXPECT_EQ(chunked.body, "abc");
  EXPECT_EQ(client.trailers, "x-sum: 7\n");
  EXPECT_EQ(client.get("/close").body, "until the end");
  EXPECT_EQ(client.get("/none").status, 103);
  EXPECT_EQ(client.read().status, 204);
}

TEST(Gateway, OneUpstreamWithoutARouteGetsEverything) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  config.routes.clear();
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
  EXPECT_EQ(Client(gateway.port()).get("/any/where?x=1").status, 200);
  EXPECT_EQ(gateway.stats()["requests"]["refused"], 0);
}

TEST(Gateway, RefusesWhatNoRouteServes) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  config.routes[0].path_prefix = "/api";
  RunningGateway gateway(config);
  Client client(gateway.port());
  const Answer text = client.get("/other");
  EXPECT_EQ(text.status, 404);
  EXPECT_TRUE(text.has("x-weir-reason: no_route\r\n"));
  EXPECT_THAT(text.body, HasSubstr("no_route"));
  const Answer json = client.ask("GET /x HTTP/1.1\r\nhost: t\r\naccept: application/json\r\n\r\n");
  EXPECT_EQ(nlohmann::json::parse(json.body)["reason"], "no_route");
  EXPECT_EQ(client.ask("CONNECT t:443 HTTP/1.1\r\nhost: t:443\r\n\r\n").status, 405);
  EXPECT_EQ(client.get("/api/x").status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().refused, 3U);
}

TEST(Gateway, EveryAnswerTellsTheClientItsRequestId) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address(), testkit::unused_address()});
  config.routes[0].path_prefix = "/api";
  config.upstreams.push_back(config.upstreams[0]);
  config.upstreams[1].name = "gone";
  config.upstreams[1].endpoints = {config.upstreams[0].endpoints[1]};
  config.upstreams[0].endpoints.pop_back();
  config.routes.push_back(config.routes[0]);
  config.routes[1].path_prefix = "/gone";
  config.routes[1].upstream = "gone";
  RunningGateway gateway(config);
  Client client(gateway.port());
  for (const char* path : {"/api", "/nowhere", "/gone"}) {
    const Answer own = client.ask("GET " + std::string(path) +
                                  " HTTP/1.1\r\nhost: t\r\nx-request-id: mine-1\r\n\r\n");
    EXPECT_TRUE(own.has("x-request-id: mine-1\r\n")) << path << " " << own.head;
    const Answer made = client.get(path);
    const std::size_t at = made.head.find("x-request-id: ");
    ASSERT_NE(at, std::string::npos) << path;
    const std::string id = made.head.substr(at + 14, made.head.find('\r', at) - at - 14);
    EXPECT_EQ(id.size(), 32U) << path;
    if (made.status == 200) {
      EXPECT_THAT(made.body, HasSubstr("x-request-id: " + id + "\n"))
          << "the one that the upstream got";
    }
  }
}

}  // namespace
}  // namespace weir::gateway
