// Which requests are admitted, wait or are refused, and which actor they are charged to.
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::kGet;
using testkit::Origin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;
using testkit::with_fixed_limit;

TEST(Gateway, RefusesAtTheLimitWithAReasonAndAHint) {
  HeldOrigin origin;
  RunningGateway gateway(with_fixed_limit(gateway_config({origin.address()}), 1));
  Client first(gateway.port());
  ASSERT_TRUE(origin.hold(first));
  Client second(gateway.port());
  const Answer refused = second.ask(kGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  EXPECT_TRUE(refused.has("x-weir-retry-after-ms: "));
  EXPECT_TRUE(refused.has("retry-after: 1\r\n"));
  origin.let_go();
  EXPECT_EQ(first.read().body, "done");
  ASSERT_TRUE(origin.hold(second));
  origin.let_go();
  EXPECT_EQ(second.read().status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, OneWhoWaitedIsServedWhenAPlaceIsFree) {
  HeldOrigin origin;
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(origin.hold(first));
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(std::make_unique<Client>(gateway.port()));
    ASSERT_TRUE(others.back()->send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nhi"));
  }
  ASSERT_TRUE(eventually([&] { return gateway.waiting() == 8; }));
  EXPECT_EQ(origin.held(), 1U);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(origin.wait_for(1));
    origin.let_go();
  }
  EXPECT_EQ(first.read().status, 200);
  for (const auto& client : others) EXPECT_EQ(client->read().status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, PatienceEndsInARefusal) {
  HeldOrigin origin;
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::milliseconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(origin.hold(first));
  const Answer refused = Client(gateway.port()).ask(kGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
}

TEST(Gateway, AClientThatLeavesWhileItWaitsLeavesNothingBehind) {
  HeldOrigin origin;
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(origin.hold(first));
  for (int i = 0; i < 5; ++i) {
    Client gone(gateway.port());
    ASSERT_TRUE(gone.send(kGet));
    ASSERT_TRUE(eventually([&] { return gateway.waiting() == 1; }));
    gone.close();
    ASSERT_TRUE(eventually([&] { return gateway.waiting() == 0; }));
  }
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 5U);
}

TEST(Gateway, AClientThatLeavesEndsTheWorkBehindIt) {
  HeldOrigin origin;
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(origin.hold(client));
  client.close();
  EXPECT_TRUE(origin.wait_for(0));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 1U);
}

TEST(Gateway, ActorsHaveBudgetsOfTheirOwn) {
  HeldOrigin origin;
  config::Config config = gateway_config({origin.address()});
  config.admission.inflight_max = 2;
  RunningGateway gateway(config);
  const auto as = [](std::string_view key) {
    return "GET / HTTP/1.1\r\nhost: t\r\nx-api-key: " + std::string(key) + "\r\n\r\n";
  };
  Client a(gateway.port());
  Client b(gateway.port());
  ASSERT_TRUE(a.send(as("greedy")) && b.send(as("greedy")));
  ASSERT_TRUE(origin.wait_for(2));
  const Answer third = Client(gateway.port()).ask(as("greedy"));
  EXPECT_EQ(third.status, 429);
  EXPECT_TRUE(third.has("x-weir-reason: actor_inflight\r\n"));
  Client modest(gateway.port());
  ASSERT_TRUE(modest.send(as("modest")));
  ASSERT_TRUE(origin.wait_for(3));
  const auto actors = nlohmann::json::parse(gateway.page("/actors"));
  EXPECT_EQ(actors["actors"].size(), 2U);
  EXPECT_EQ(actors["actors"][0]["in_flight"], 2);
  EXPECT_TRUE(actors["actors"][0]["id"].is_string()) << "many readers round large numbers";
  EXPECT_THAT(gateway.page("/actors"), Not(HasSubstr("greedy")));
  origin.let_go();
  for (Client* client : {&a, &b, &modest}) EXPECT_EQ(client->read().status, 200);
}

TEST(Gateway, AStrangerCannotRaiseItsClassNorChooseAnActor) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.ask(
      "GET / HTTP/1.1\r\nhost: t\r\nx-weir-priority: critical\r\nx-weir-actor: victim\r\n"
      "x-weir-peer: gate\r\nx-weir-deadline-ms: 0\r\nx-weir-attempt: 2\r\n\r\n");
  EXPECT_EQ(answer.status, 200);  // a deadline of 0 would have been refused
  EXPECT_THAT(answer.body, Not(HasSubstr("x-weir")));
  const auto stats = gateway.stats();
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["normal"]["admitted"], 1);
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["critical"]["admitted"], 0);
  EXPECT_EQ(stats["admission"]["actors"], 0);
  EXPECT_EQ(stats["admission"]["peers"], 0);
}

TEST(Gateway, ATrustedPeersWordCounts) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  config.trust.peers = {*parse_ip_range("127.0.0.1")};
  RunningGateway gateway(config);
  Client client(gateway.port());
  const Answer answer = client.ask(
      "GET / HTTP/1.1\r\nhost: t\r\nx-weir-priority: high\r\nx-weir-actor: alice\r\n\r\n");
  EXPECT_THAT(answer.body, HasSubstr("x-weir-priority: high\n"));
  EXPECT_THAT(answer.body, HasSubstr("x-weir-actor: alice\n"));
  const auto stats = gateway.stats();
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["high"]["admitted"], 1);
  EXPECT_EQ(stats["admission"]["peers"], 1);
  const Answer late = client.ask("GET / HTTP/1.1\r\nhost: t\r\nx-weir-deadline-ms: 0\r\n\r\n");
  EXPECT_EQ(late.status, 504);
  EXPECT_TRUE(late.has("x-weir-reason: deadline\r\n"));
}

TEST(Gateway, ABodyThatIsForwardedAsItComesIsAskedForOnlyOnceItIsAdmitted) {
  HeldOrigin origin;
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.routes[0].buffer_request_max = 0;
  RunningGateway gateway(config);
  constexpr std::string_view kExpect =
      "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
  Client first(gateway.port());
  const Answer go_on = first.ask(kExpect);
  EXPECT_EQ(go_on.status, 100);
  ASSERT_TRUE(first.send("hello"));
  ASSERT_TRUE(origin.wait_for(1));
  Client second(gateway.port());
  EXPECT_EQ(second.ask(kExpect).status, 503);
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
}

TEST(Gateway, ABodyBeyondTheRoutesBoundIs413) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  config.routes[0].max_body = 4;
  RunningGateway gateway(config);
  const Answer sized =
      Client(gateway.port()).ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello");
  EXPECT_EQ(sized.status, 413);
  EXPECT_TRUE(sized.has("x-weir-reason: body_too_large\r\n"));
  const Answer chunked = Client(gateway.port())
                             .ask(
                                 "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                                 "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.status, 413);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().refused, 2U);
}

TEST(Gateway, BytesBeyondAnActorsBudgetEndTheRequest) {
  Origin origin([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      if (request.method == http::Method::kPost) stream.pause();  // and does not read the body
    };
    handler.complete = [](ServerStream& stream) { reply(stream, 200, "ok"); };
  });
  config::Config config = gateway_config({origin.address()});
  config.server.loops = 1;
  config.admission.bytes_max = 1;
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);  // leaves a connection to the origin
  Client client(gateway.port());
  std::thread sender([&] {
    static_cast<void>(client.send(
        "POST / HTTP/1.1\r\nhost: t\r\nx-api-key: k\r\ncontent-length: 100000000\r\n\r\n"));
    for (int i = 0; i < 1000; ++i) {
      if (!client.send(std::string(100000, 'z'))) return;
    }
  });
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(answer.has("x-weir-reason: actor_bytes\r\n"));
  sender.join();
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, ManyClientsOnManyLoopsAreAllCountedOnce) {
  Origin origin(testkit::echo);
  config::Config config = with_fixed_limit(gateway_config({origin.address()}), 4);
  config.admission.normal_wait_max = std::chrono::milliseconds(2);
  RunningGateway gateway(config);
  std::atomic<std::uint64_t> ok = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::vector<std::thread> threads;
  std::barrier together(16);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      Client client(gateway.port());
      together.arrive_and_wait();
      for (int i = 0; i < 200; ++i) {
        const int status = client.get("/").status;
        (status == 200 ? ok : refused) += 1;
        EXPECT_TRUE(status == 200 || status == 503) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(gateway.settled());
  const GatewayStatus status = gateway->status();
  EXPECT_EQ(status.received, 3200U);
  EXPECT_EQ(status.answered, ok);
  EXPECT_EQ(status.refused, refused);
  EXPECT_EQ(status.aborted, 0U);
}

}  // namespace
}  // namespace weir::gateway
