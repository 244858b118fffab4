// Which bytes count against the budgets of actors and of the process.
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::Origin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

constexpr std::string_view kKey = "x-api-key: k\r\n";

std::string post_head(std::size_t length, std::string_view more = {}) {
  return "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(length) + "\r\n" +
         std::string(more) + "\r\n";
}
std::string chunked_head(std::string_view more = {}) {
  return "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n" + std::string(more) +
         "\r\n";
}
std::string post(std::size_t length, std::string_view more = {}) {
  return post_head(length, more) + std::string(length, 'x');
}

/// Bodies are charged as announced; one actor may hold 1000 bytes, all together 1500.
config::Config announced(const std::string& origin) {
  config::Config config = gateway_config({origin});
  config.routes[0].bytes = BytesCharged::kAnnounced;
  config.routes[0].bytes_estimate = 600;
  config.admission.bytes_max = 1000;
  config.admission.total_bytes_max = 1500;
  return config;
}

std::uint64_t counted(const RunningGateway& gateway, std::string_view reason) {
  return gateway.stats()["upstreams"]["app"]["refused"].value(std::string(reason), 0U);
}

std::uint64_t held_bytes(const RunningGateway& gateway) {
  return gateway.stats()["admission"]["bytes"];
}

TEST(GatewayBytes, WhatCanNeverFitIs413BeforeItsBodyIsAskedFor) {
  HeldOrigin origin;
  RunningGateway gateway(announced(origin.address()));
  const std::vector<std::pair<std::size_t, std::string_view>> cases = {{1001, kKey}, {1501, {}}};
  for (const auto& [length, key] : cases) {
    const std::string more = std::string(key) + "expect: 100-continue\r\n";
    const Answer answer = Client(gateway.port()).ask(post_head(length, more));
    EXPECT_EQ(answer.status, 413);  // without a 100 before it
    EXPECT_TRUE(answer.has("x-weir-reason: too_large\r\n"));
    EXPECT_FALSE(answer.has("retry-after"));
  }
  EXPECT_EQ(counted(gateway, "too_large"), 2U);
  EXPECT_EQ(origin.held(), 0U);
}

TEST(GatewayBytes, AnAnnouncedLengthIsReservedToTheEnd) {
  HeldOrigin origin;
  RunningGateway gateway(announced(origin.address()));
  Client first(gateway.port());
  ASSERT_TRUE(first.send(post(600, kKey)));
  ASSERT_TRUE(origin.wait_for(1));  // the service has the whole body, and it still counts
  EXPECT_EQ(held_bytes(gateway), 600U);
  const Answer second = Client(gateway.port()).ask(post_head(600, kKey));
  EXPECT_EQ(second.status, 429);
  EXPECT_TRUE(second.has("x-weir-reason: actor_bytes\r\n"));
  EXPECT_EQ(counted(gateway, "actor_bytes"), 1U);
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  ASSERT_TRUE(eventually([&] { return held_bytes(gateway) == 0; }));
  Client third(gateway.port());
  ASSERT_TRUE(third.send(post(600, kKey)));
  ASSERT_TRUE(origin.wait_for(1));
  origin.let_go();
  EXPECT_EQ(third.read().status, 200);
}

TEST(GatewayBytes, OverTheBudgetOfTheProcessIs503) {
  HeldOrigin origin;
  RunningGateway gateway(announced(origin.address()));
  Client first(gateway.port());
  ASSERT_TRUE(first.send(post(900)));
  ASSERT_TRUE(origin.wait_for(1));
  for (const std::string_view key : {std::string_view{}, kKey}) {
    const Answer second = Client(gateway.port()).ask(post_head(900, key));
    EXPECT_EQ(second.status, 503);
    EXPECT_TRUE(second.has("x-weir-reason: bytes\r\n"));
  }
  EXPECT_EQ(counted(gateway, "bytes"), 2U);
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
}

TEST(GatewayBytes, WithoutALengthTheEstimateIsReservedAndCorrected) {
  HeldOrigin origin;
  RunningGateway gateway(announced(origin.address()));
  Client first(gateway.port());
  ASSERT_TRUE(first.send(chunked_head(kKey)));
  ASSERT_TRUE(eventually([&] { return held_bytes(gateway) == 600; }));
  EXPECT_EQ(Client(gateway.port()).ask(chunked_head(kKey)).status, 429);
  ASSERT_TRUE(first.send("2bc\r\n" + std::string(700, 'x') + "\r\n"));
  ASSERT_TRUE(eventually([&] { return held_bytes(gateway) == 700; }));
  ASSERT_TRUE(first.send("0\r\n\r\n"));
  ASSERT_TRUE(origin.wait_for(1));
  Client second(gateway.port());
  ASSERT_TRUE(second.send(chunked_head() + "3\r\nabc\r\n0\r\n\r\n"));
  ASSERT_TRUE(origin.wait_for(2));
  ASSERT_TRUE(eventually([&] { return held_bytes(gateway) == 703; }));
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_EQ(second.read().status, 200);
}

TEST(GatewayBytes, ABodyThatGrowsOverABudgetEndsWithThatBudgetsReason) {
  HeldOrigin origin;
  RunningGateway gateway(announced(origin.address()));
  const std::string piece = "3e9\r\n" + std::string(1001, 'x') + "\r\n";
  const Answer own = Client(gateway.port()).ask(chunked_head(kKey) + piece);
  EXPECT_EQ(own.status, 429);
  EXPECT_TRUE(own.has("x-weir-reason: actor_bytes\r\n"));
  const Answer all = Client(gateway.port()).ask(chunked_head() + piece + piece);
  EXPECT_EQ(all.status, 503);
  EXPECT_TRUE(all.has("x-weir-reason: bytes\r\n"));
  EXPECT_EQ(counted(gateway, "actor_bytes"), 1U);
  EXPECT_EQ(counted(gateway, "bytes"), 1U);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(held_bytes(gateway), 0U);
}

TEST(GatewayBytes, OnlyHeldBytesCountByDefault) {
  Origin origin([](ScriptedHandler& handler) {
    handler.complete = [](ServerStream& stream) {
      EXPECT_EQ(reply(stream, 200, "ok"), SendResult::kSent);
    };
  });
  config::Config config = gateway_config({origin.address()});
  config.admission.bytes_max = 200'000;
  config.admission.total_bytes_max = 300'000;
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).ask(post(1'000'000, kKey)).status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(held_bytes(gateway), 0U);
}

TEST(GatewayBytes, AResponseThatItsClientDoesNotReadCounts) {
  const std::string large(8'000'000, 'z');
  Origin origin([&](ScriptedHandler& handler) {
    handler.complete = [&](ServerStream& stream) {
      EXPECT_EQ(stream.send_response({.status = 200, .fields = {}, .content_length = {}}, large,
                                     BodyLife::kStream),
                SendResult::kSent);
    };
  });
  config::Config config = gateway_config({origin.address()});
  RunningGateway gateway(config);
  Client client(gateway.port(), 4096);
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\nx-api-key: k\r\n\r\n"));
  ASSERT_TRUE(eventually([&] { return held_bytes(gateway) > 0; }));
  EXPECT_EQ(client.read().body.size(), large.size());
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(held_bytes(gateway), 0U);

  config.admission.bytes_max = 1000;
  RunningGateway strict(config);
  Client cut(strict.port(), 4096);
  const Answer answer = cut.ask("GET / HTTP/1.1\r\nhost: t\r\nx-api-key: k\r\n\r\n");
  EXPECT_LT(answer.body.size(), large.size());
  EXPECT_TRUE(strict.settled());
  EXPECT_EQ(strict->status().aborted, 1U);
  EXPECT_EQ(counted(strict, "actor_bytes"), 1U);
}

}  // namespace
}  // namespace weir::gateway
