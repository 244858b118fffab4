// What proxies of gRPC get wrong with connections: PING, GOAWAY, the number of streams; frames on
// real sockets. docs/design/gateway.md lists all of these mistakes with their tests.
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "frame_origin_testing.h"

namespace weir::gateway {
namespace {

using testkit::eventually;
using testkit::FrameConnection;
using testkit::grpc_head;
using testkit::grpc_message;
using testkit::grpc_status;
using testkit::grpc_trailers;
using testkit::GrpcPath;
using testkit::H2Client;
using testkit::Reply;
using testkit::value_of;
namespace wire = testkit::wire;

constexpr std::uint32_t kLastPossible = 0x7fffffff;
constexpr unsigned kConcurrentStreams = 3;  // a SETTINGS parameter

// The pings that are sent to services: policy/ping_pace_test.cc.
TEST(GrpcPitfall, PingsAreAnsweredOnBothSides) {
  GrpcPath path;
  static_cast<void>(path.begin());
  FrameConnection& service = path.service();
  service.accept_call();
  for (int i = 0; i < 30; ++i) {  // clients that grow their windows send one per round trip
    EXPECT_TRUE(path.client.in_step());
    EXPECT_TRUE(service.in_step());
  }
  EXPECT_EQ(service.pings, 0U);
}

TEST(GrpcPitfall, AGoawayInTwoStepsFailsNoCall) {
  GrpcPath path;
  const std::uint32_t early = path.say();
  FrameConnection& leaving = path.service();
  leaving.whole_call();
  leaving.send(wire::goaway(kLastPossible, 0));
  ASSERT_TRUE(leaving.in_step());
  const std::uint32_t later = path.say();
  const auto next = path.origin.accept();
  next->whole_call();
  leaving.send(wire::goaway(1, 0));
  leaving.answer(1, grpc_message("old"), grpc_trailers());
  next->answer(1, grpc_message("new"), grpc_trailers());
  EXPECT_EQ(path.client.finish(early).body, grpc_message("old"));
  EXPECT_EQ(path.client.finish(later).body, grpc_message("new"));
}

// As nginx does after a thousand requests.
TEST(GrpcPitfall, ASingleGoawayDoesNotFailTheCallsThatWereOnTheirWay) {
  GrpcPath path;
  const std::uint32_t first = path.say();
  FrameConnection& leaving = path.service();
  leaving.whole_call();
  const std::uint32_t racing = path.say({{"racing", "yes"}});
  leaving.whole_call();
  leaving.send(wire::goaway(1, 0));  // the second one was not processed
  const auto next = path.origin.accept();
  const FrameConnection::Call& again = next->whole_call();
  EXPECT_EQ(again.field("racing"), "yes");
  EXPECT_EQ(again.body, grpc_message("hello")) << "with its whole body";
  next->answer(1, grpc_message("new"), grpc_trailers());
  leaving.answer(1, grpc_message("old"), grpc_trailers());
  EXPECT_EQ(path.client.finish(first).body, grpc_message("old"));
  EXPECT_EQ(path.client.finish(racing).body, grpc_message("new"));
}

TEST(GrpcPitfall, AClientIsToldToLeaveInTwoSteps) {
  GrpcPath path;
  const std::uint32_t early = path.say();
  FrameConnection& service = path.service();
  service.whole_call();
  std::thread drains([&] { EXPECT_TRUE(path.gateway->drain(std::chrono::seconds(10))); });
  ASSERT_TRUE(path.client.until(http::h2::FrameType::kGoaway));
  EXPECT_EQ(path.client.goaway_last.front(), kLastPossible);
  const std::uint32_t racing = path.say();  // it was on its way
  service.whole_call();
  service.answer(1, grpc_message("a"), grpc_trailers());
  service.answer(3, grpc_message("b"), grpc_trailers());
  EXPECT_EQ(path.client.finish(early).body, grpc_message("a"));
  EXPECT_EQ(path.client.finish(racing).body, grpc_message("b"));
  EXPECT_EQ(path.client.goaway_and_end(), 0U);
  EXPECT_EQ(path.client.goaway_last.back(), racing);
  path.client.socket().close();
  drains.join();
}

TEST(GrpcPitfall, AServiceWithFewStreamsGetsMoreConnections) {
  GrpcPath path;
  FrameConnection& first = [&]() -> FrameConnection& {
    static_cast<void>(path.say());
    return path.service({{kConcurrentStreams, 10}});
  }();
  first.whole_call();
  first.send(wire::headers(1, grpc_status("0")));
  ASSERT_TRUE(first.in_step());  // its limit is known now
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 25; ++i) ids.push_back(path.say());
  const auto second = path.origin.accept({{kConcurrentStreams, 10}});
  const auto third = path.origin.accept({{kConcurrentStreams, 10}});
  std::size_t seen = 0;
  for (FrameConnection* one : {&first, second.get(), third.get()}) {
    ASSERT_TRUE(one->in_step());
    ASSERT_TRUE(one->in_step());
    const std::size_t calls = one->calls.size() - (one == &first ? 1 : 0);
    EXPECT_LE(calls, 10U);
    seen += calls;
    for (const auto& [id, call] : one->calls) {
      if (one != &first || id > 1) one->send(wire::headers(id, grpc_status("0")));
    }
  }
  EXPECT_EQ(seen, 25U);
  for (const std::uint32_t id : ids) EXPECT_EQ(path.client.finish(id).field("grpc-status"), "0");
}

TEST(GrpcPitfall, ManyStreamsAreOfferedAndWhatIsRefusedIsTrailersOnly) {
  const auto with_many = [](config::Config& config) {
    config.server.http2.concurrent_streams_max = 1000;
    config.server.http2.session_bytes_max = 1024 * 1024;
    config = testkit::with_fixed_limit(config, 1);
  };
  GrpcPath path({}, with_many);
  const auto settings = path.client.until(http::h2::FrameType::kSettings);
  ASSERT_TRUE(settings);
  std::uint32_t offered = 0;
  for (std::size_t at = 0; at + 6 <= settings->payload.size(); at += 6) {
    if (settings->payload[at + 1] == static_cast<char>(kConcurrentStreams)) {
      offered = settings->word(at + 2);
    }
  }
  EXPECT_EQ(offered, 1000U);
  const std::uint32_t admitted = path.say();
  FrameConnection& service = path.service();
  service.whole_call();
  const std::uint32_t refused = path.begin();  // it is still sending
  const Reply& reply = path.client.finish(refused);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("content-type"), "application/grpc");
  EXPECT_EQ(reply.field("grpc-status"), "8");
  EXPECT_GE(std::stoi(reply.field("grpc-retry-pushback-ms")), 50);
  EXPECT_TRUE(reply.ended);
  EXPECT_EQ(reply.data_frames, 0U);
  ASSERT_TRUE(path.client.in_step());
  EXPECT_EQ(path.client.reply(refused).reset.value_or(0), 0U) << "NO_ERROR, if anything";
  service.send(wire::headers(1, grpc_status("0")));
  EXPECT_EQ(path.client.finish(admitted).field("grpc-status"), "0");
}

// ---- unary reads at two replicas

/// Two replicas behind a gateway that hedges, each with its warm connection.
struct TwoReplicas {
  explicit TwoReplicas(bool idempotent = true) : gateway(config_for(idempotent)) {
    a = at_a.accept();
    b = at_b.accept();
    EXPECT_TRUE(a->in_step() && b->in_step());
    const auto ready = [this] {
      const auto page = nlohmann::json::parse(gateway.page("/endpoints"));
      int idle = 0;
      for (const auto& one : page["endpoints"]) idle += one["idle"].get<int>();
      return idle == 2;
    };
    EXPECT_TRUE(eventually(ready)) << "a hedge does not wait for a connection";
  }
  config::Config config_for(bool idempotent) {
    config::Config config = testkit::http2_to({at_a.address(), at_b.address()});
    config.hedge.enabled = true;
    config.upstreams[0].warm_connections = 1;
    config.routes[0].idempotent = idempotent;
    return config;
  }
  [[nodiscard]] bool shows(const std::string& line) const {
    return eventually([&] { return gateway.page("/metrics").find(line) != std::string::npos; });
  }

  testkit::FrameOrigin at_a;
  testkit::FrameOrigin at_b;
  testkit::RunningGateway gateway;
  std::unique_ptr<FrameConnection> a;
  std::unique_ptr<FrameConnection> b;
};

std::uint32_t say_to(H2Client& client) {
  const std::uint32_t id =
      client.post("/pkg.Service/Read", {{"content-type", "application/grpc"}, {"te", "trailers"}});
  client.send(wire::data(id, grpc_message("hello"), wire::kEnd));
  return id;
}

TEST(GatewayGrpcHedge, AUnaryReadIsSentToASecondReplicaAndTheFirstSuccessWins) {
  TwoReplicas path;
  H2Client client(path.gateway.port());
  const std::uint32_t id = say_to(client);
  const FrameConnection::Call& at_a = path.a->whole_call();
  const FrameConnection::Call& at_b = path.b->whole_call();
  EXPECT_EQ(at_a.body, at_b.body);
  const bool a_is_hedge = at_a.field("x-weir-attempt") == "2";
  EXPECT_TRUE(a_is_hedge || at_b.field("x-weir-attempt") == "2");
  FrameConnection& hedge = a_is_hedge ? *path.a : *path.b;
  FrameConnection& late = a_is_hedge ? *path.b : *path.a;
  late.send(wire::headers(1, grpc_status("13")));
  ASSERT_TRUE(late.in_step());
  hedge.answer(1, grpc_message("from the hedge"), grpc_trailers());
  const Reply& reply = client.finish(id);
  EXPECT_EQ(reply.body, grpc_message("from the hedge"));
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  EXPECT_TRUE(path.shows("weir_hedge_requests_total{upstream=\"app\"} 1\n"));
  EXPECT_TRUE(path.gateway.settled());
}

TEST(GatewayGrpcHedge, TheLoserIsCancelledOnTheWire) {
  TwoReplicas path;
  H2Client client(path.gateway.port());
  const std::uint32_t id = say_to(client);
  path.a->whole_call();
  path.b->whole_call();
  path.a->answer(1, grpc_message("a"), grpc_trailers());
  EXPECT_EQ(client.finish(id).body, grpc_message("a"));
  ASSERT_TRUE(path.b->until([&] { return path.b->calls[1].reset.has_value(); }));
  EXPECT_EQ(path.b->calls[1].reset, 8U);
}

TEST(GatewayGrpcHedge, AMethodThatIsNotMarkedIsSentOnce) {
  TwoReplicas path(false);
  H2Client client(path.gateway.port());
  static_cast<void>(say_to(client));
  EXPECT_TRUE(path.shows("weir_hedge_skipped_total{upstream=\"app\",reason=\"unsafe\"} 1\n"));
  ASSERT_TRUE(path.a->in_step() && path.b->in_step());
  EXPECT_EQ(path.a->calls.size() + path.b->calls.size(), 1U);
}

}  // namespace
}  // namespace weir::gateway
