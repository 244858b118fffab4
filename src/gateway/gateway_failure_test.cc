// Origins that are gone, silent, or send invalid responses.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::Origin;
using testkit::RawOrigin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;
using testkit::unused_address;

TEST(Gateway, FailuresOfTheUpstreamHaveNames) {
  RawOrigin origin([](int fd, const std::string& head) {
    if (head.starts_with("GET /garbage")) RawOrigin::say(fd, "SSH-2.0-OpenSSH_9\r\n\r\n");
    if (head.starts_with("GET /cut")) RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncont");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer garbage = client.get("/garbage");
  EXPECT_EQ(garbage.status, 502);
  EXPECT_TRUE(garbage.has("x-weir-reason: bad_response\r\n"));
  const Answer cut = client.get("/cut");
  EXPECT_EQ(cut.status, 502);
  EXPECT_TRUE(cut.has("x-weir-reason: truncated\r\n"));
  const Answer silent = client.get("/silent");
  EXPECT_EQ(silent.status, 502);
  EXPECT_TRUE(silent.has("x-weir-reason: closed_early\r\n"));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 3U);
}

TEST(Gateway, NobodyThereIs503AndComesBackByItself) {
  RunningGateway gateway(gateway_config({unused_address()}));
  Client client(gateway.port());
  const Answer refused = client.get("/");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: connect_refused\r\n"));
}

TEST(Gateway, ABrokenAnswerIsBrokenForTheClientToo) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "half");
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 1U);
}

TEST(Gateway, SilenceEndsAtTheFirstByteTimeout) {
  HeldOrigin origin;
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].first_byte_timeout = std::chrono::milliseconds(30);
  RunningGateway gateway(config);
  const Answer answer = Client(gateway.port()).get("/");
  EXPECT_EQ(answer.status, 504);
  EXPECT_TRUE(answer.has("x-weir-reason: first_byte_timeout\r\n"));
}

TEST(Gateway, ReplicasAreUsedInTurnAndADeadOneIsPassedOver) {
  Origin one([](ScriptedHandler& h) { h.complete = [](auto& s) { reply(s, 200, "one"); }; });
  Origin two([](ScriptedHandler& h) { h.complete = [](auto& s) { reply(s, 200, "two"); }; });
  config::Config config = gateway_config({one.address(), unused_address(), two.address()});
  config.upstreams[0].balance = policy::Balance::kRoundRobin;
  RunningGateway gateway(config);
  Client client(gateway.port());
  std::string seen;
  for (int i = 0; i < 6; ++i) seen += client.get("/").body + " ";
  EXPECT_THAT(seen, HasSubstr("one"));
  EXPECT_THAT(seen, HasSubstr("two"));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 6U);
}

TEST(Gateway, AnAnswerMayComeBeforeTheBodyHasGone) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\nsome"));
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "no");
  EXPECT_TRUE(gateway.settled());
}

}  // namespace
}  // namespace weir::gateway
