// Bodies that are received before the request is forwarded: real sockets, exact counts.
#include "received_first_list.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gateway_testing.h"
#include "server/h2/h2_testing.h"

namespace weir::gateway {
namespace {

namespace wire = http::h2::wire;
using server::testkit::H2Client;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::kGet;
using testkit::Origin;
using testkit::RunningGateway;
using testkit::ScriptedHandler;
using testkit::with_fixed_limit;

std::string upload_head(std::size_t length, std::string_view more = {}) {
  return "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(length) + "\r\n" +
         std::string(more) + "\r\n";
}

/// An origin that answers with the body, and counts the heads that it sees.
class CountingOrigin {
 public:
  [[nodiscard]] std::string address() const { return origin_.address(); }
  [[nodiscard]] int heads() const { return heads_.load(); }
  [[nodiscard]] std::uint64_t connections() { return origin_.server().stats().accepted; }

 private:
  std::atomic<int> heads_{0};
  Origin origin_{[this](ScriptedHandler& handler) {
    testkit::echo(handler);
    handler.headers = [this, first = handler.headers](ServerStream& stream,
                                                      const ServerRequest& request) {
      first(stream, request);
      heads_.fetch_add(1);
    };
  }};
};

class ReceivedFirst : public ::testing::Test {
 protected:
  static config::Config config_for(const std::string& address) {
    config::Config config = with_fixed_limit(gateway_config({address}), 1);
    config.server.loops = 1;
    config.trust.peers = {*parse_ip_range("127.0.0.1")};
    return config;
  }
  static nlohmann::json buffers(const RunningGateway& gateway) {
    return nlohmann::json::parse(gateway.page("/pools"))["pools"]["request_buffers"];
  }
  /// The gateway holds this many bytes of bodies.
  static bool holds(const RunningGateway& gateway, std::uint64_t bytes) {
    return eventually([&] { return gateway.stats()["admission"]["bytes"] == bytes; });
  }
  static int admitted(const RunningGateway& gateway) {
    return gateway.stats()["upstreams"]["app"]["classes"]["normal"]["admitted"];
  }
  static void expect_nothing_held(const RunningGateway& gateway) {
    EXPECT_TRUE(gateway.settled());
    EXPECT_TRUE(holds(gateway, 0));
    EXPECT_EQ(buffers(gateway)["used"], 0);
    EXPECT_EQ(gateway.stats()["admission"]["actors"], 0);
    EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 0);
  }
};

// The backend has a connection for it, and a byte of it, only when its last byte has come.
TEST_F(ReceivedFirst, TheBackendSeesNothingBeforeTheLastByteAndThenOneRequest) {
  for (const std::size_t size : {2UL, 4096UL, 16'384UL, 16'385UL, 65'536UL}) {
    SCOPED_TRACE(size);
    CountingOrigin origin;
    RunningGateway gateway(config_for(origin.address()));
    std::string body(size, ' ');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 25);
    Client client(gateway.port());
    ASSERT_TRUE(client.send(upload_head(size) + body.substr(0, size - 1)));
    ASSERT_TRUE(holds(gateway, size - 1));
    EXPECT_EQ(origin.connections(), 0U);
    EXPECT_EQ(admitted(gateway), 0);
    EXPECT_EQ(buffers(gateway)["used"], (size + 16'383) / 16'384);
    ASSERT_TRUE(client.send(body.substr(size - 1)));
    const Answer answer = client.read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.body.ends_with(body));
    EXPECT_NE(answer.body.find("content-length: " + std::to_string(size) + "\n"),
              std::string::npos);
    EXPECT_EQ(origin.heads(), 1);
    EXPECT_EQ(origin.connections(), 1U);
    EXPECT_EQ(admitted(gateway), 1);
    expect_nothing_held(gateway);
  }
}

TEST_F(ReceivedFirst, TheSameOverHttp2) {
  CountingOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  H2Client client(gateway.port());
  const std::uint32_t id = client.post("/", {{"content-length", "6"}});
  client.send(wire::data(id, "abc", 0));
  ASSERT_TRUE(client.in_step());
  ASSERT_TRUE(holds(gateway, 3));
  EXPECT_EQ(origin.connections(), 0U);
  client.send(wire::data(id, "def", 1));
  EXPECT_TRUE(client.finish(id).body.ends_with("abcdef"));
  EXPECT_EQ(origin.heads(), 1);
  expect_nothing_held(gateway);
}

TEST_F(ReceivedFirst, SlowUploadsLeaveTheWholeLimitToOthers) {
  CountingOrigin origin;
  RunningGateway gateway(config_for(origin.address()));  // a limit of one
  std::vector<std::unique_ptr<Client>> uploads;
  for (int i = 0; i < 6; ++i) {
    uploads.push_back(std::make_unique<Client>(gateway.port()));
    ASSERT_TRUE(uploads.back()->send(upload_head(10'000) + std::string(9'999, 'x')));
  }
  ASSERT_TRUE(holds(gateway, 6 * 9'999));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
  EXPECT_EQ(origin.heads(), 20);
  for (const auto& upload : uploads) {
    ASSERT_TRUE(upload->send("y"));
    EXPECT_EQ(upload->read().status, 200);
  }
  expect_nothing_held(gateway);
}

TEST_F(ReceivedFirst, ACompleteOneAsksForItsPlaceLikeAnyRequest) {
  HeldOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  Client holder(gateway.port());
  ASSERT_TRUE(origin.hold(holder));  // the only place
  Client client(gateway.port());
  const Answer go_on = client.ask(upload_head(5, "expect: 100-continue\r\n"));
  EXPECT_EQ(go_on.status, 100) << "checks 1 to 6 have passed";
  const Answer refused = client.ask("hello");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  origin.let_go();
  EXPECT_EQ(holder.read().status, 200);
  EXPECT_EQ(gateway->status().refused, 1U);
  expect_nothing_held(gateway);
}

TEST_F(ReceivedFirst, ACompleteOneWaitsForItsPlace) {
  HeldOrigin origin;
  config::Config config = config_for(origin.address());
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client holder(gateway.port());
  ASSERT_TRUE(origin.hold(holder));
  Client stays(gateway.port());
  ASSERT_TRUE(stays.send(upload_head(5) + "hello"));
  Client leaves(gateway.port());
  ASSERT_TRUE(leaves.send(upload_head(5) + "hello"));
  ASSERT_TRUE(eventually([&] { return gateway.waiting() == 2; }));
  leaves.close();
  ASSERT_TRUE(eventually([&] { return gateway.waiting() == 1; }));
  origin.let_go();
  EXPECT_EQ(holder.read().status, 200);
  ASSERT_TRUE(origin.wait_for(1));
  origin.let_go();
  EXPECT_EQ(stays.read().status, 200);
  expect_nothing_held(gateway);
  EXPECT_EQ(gateway->status().aborted, 1U);
}

TEST_F(ReceivedFirst, AClientThatChecksOneToSixRefuseIsToldBeforeItsBody) {
  CountingOrigin origin;
  config::Config config = config_for(origin.address());
  config.admission.inflight_max = 1;
  RunningGateway gateway(config);
  constexpr std::string_view kMore = "x-weir-actor: alice\r\nexpect: 100-continue\r\n";
  Client first(gateway.port());
  EXPECT_EQ(first.ask(upload_head(5, kMore)).status, 100);
  const Answer second = Client(gateway.port()).ask(upload_head(5, kMore));
  EXPECT_EQ(second.status, 429);
  EXPECT_TRUE(second.has("x-weir-reason: actor_inflight\r\n"));
  EXPECT_EQ(first.ask("hello").status, 200);
  EXPECT_EQ(origin.heads(), 1);
  EXPECT_TRUE(gateway.settled());
}

TEST_F(ReceivedFirst, AClientThatLeavesHasReachedNobody) {
  CountingOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  for (const bool reset : {false, true}) {
    Client client(gateway.port());
    ASSERT_TRUE(client.send(upload_head(10, "x-weir-actor: alice\r\n") + "hello"));
    ASSERT_TRUE(holds(gateway, 5));
    reset ? client.reset() : client.close();
    ASSERT_TRUE(holds(gateway, 0));
  }
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 2U);
  EXPECT_EQ(origin.connections(), 0U);
  EXPECT_EQ(admitted(gateway), 0);
  EXPECT_EQ(buffers(gateway)["used"], 0);
}

TEST_F(ReceivedFirst, AClientBelowTheLowestRateIsEndedWith408) {
  CountingOrigin origin;
  config::Config config = config_for(origin.address());
  config.server.body_timeout = std::chrono::milliseconds(100);
  RunningGateway gateway(config);
  Client client(gateway.port());
  EXPECT_EQ(client.ask(upload_head(10) + "hello").status, 408);
  expect_nothing_held(gateway);
  EXPECT_EQ(gateway->status().aborted, 1U);
  EXPECT_EQ(origin.connections(), 0U);
}

TEST_F(ReceivedFirst, ADeadlineThatPassesMeanwhileEndsIt) {
  CountingOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  Client client(gateway.port());
  const Answer answer = client.ask(upload_head(10, "x-weir-deadline-ms: 50\r\n") + "hello");
  EXPECT_EQ(answer.status, 504);
  EXPECT_TRUE(answer.has("x-weir-reason: deadline\r\n"));
  expect_nothing_held(gateway);
  EXPECT_EQ(origin.connections(), 0U);
}

TEST_F(ReceivedFirst, BytesBeyondABudgetEndIt) {
  CountingOrigin origin;
  config::Config config = config_for(origin.address());
  config.admission.bytes_max = 6;
  RunningGateway gateway(config);
  Client client(gateway.port());
  const Answer answer = client.ask(upload_head(10, "x-weir-actor: alice\r\n") + "1234567");
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(answer.has("x-weir-reason: actor_bytes\r\n"));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(origin.connections(), 0U);
}

TEST_F(ReceivedFirst, ACriticalOneGetsItsPlaceHoweverFullTheLimitIs) {
  HeldOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  Client holder(gateway.port());
  ASSERT_TRUE(origin.hold(holder));
  Client client(gateway.port());
  ASSERT_TRUE(client.send(upload_head(10, "x-weir-priority: critical\r\n") + "hello"));
  ASSERT_TRUE(holds(gateway, 5));
  EXPECT_EQ(origin.held(), 1U);
  ASSERT_TRUE(client.send("world"));
  ASSERT_TRUE(origin.wait_for(2));
  origin.let_go();
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(holder.read().status, 200);
  expect_nothing_held(gateway);
}

// ---- what is forwarded as it comes

TEST_F(ReceivedFirst, OthersAreForwardedAsTheyCome) {
  struct Case {
    std::string_view what;
    std::string head;
  };
  const std::vector<Case> cases = {
      {"longer than buffer_request_max", upload_head(65'537)},
      {"longer than its route allows",
       "POST /small HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\n"},
      {"without a length",
       "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    CountingOrigin origin;
    config::Config config = config_for(origin.address());
    config.routes.insert(config.routes.begin(), config.routes.front());
    config.routes.front().path_prefix = "/small";
    config.routes.front().buffer_request_max = 4;
    RunningGateway gateway(config);
    Client client(gateway.port());
    ASSERT_TRUE(client.send(one.head));
    EXPECT_TRUE(eventually([&] { return origin.heads() == 1; }));
    EXPECT_EQ(buffers(gateway)["used"], 0);
    client.close();
    EXPECT_TRUE(gateway.settled());
  }
}

TEST_F(ReceivedFirst, GrpcIsForwardedAsItComes) {
  CountingOrigin origin;
  config::Config config = config_for(origin.address());
  config.upstreams[0].protocol = upstream::Protocol::kHttp2;
  RunningGateway gateway(config);
  H2Client client(gateway.port());
  const std::uint32_t id = client.post(
      "/pkg.Service/Method", {{"content-type", "application/grpc"}, {"content-length", "6"}});
  client.send(wire::data(id, "abc", 0));
  EXPECT_TRUE(eventually([&] { return origin.heads() == 1; }));
  EXPECT_EQ(buffers(gateway)["used"], 0);
  client.send(wire::data(id, "def", 1));
  EXPECT_EQ(client.finish(id).status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST_F(ReceivedFirst, WhileThePoolIsEmptyABodyIsForwardedAsItComes) {
  CountingOrigin origin;
  config::Config config = with_fixed_limit(config_for(origin.address()), 4);
  config.buffering.buffer_request_pool = 65'536;  // one body
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(first.send(upload_head(65'000) + std::string(50'000, 'x')));
  ASSERT_TRUE(holds(gateway, 50'000));
  EXPECT_EQ(buffers(gateway)["used"], 4);
  Client second(gateway.port());
  ASSERT_TRUE(second.send(upload_head(20'000) + std::string(5, 'x')));
  EXPECT_TRUE(eventually([&] { return origin.heads() == 1; }));
  EXPECT_GT(buffers(gateway)["exhausted"].get<int>(), 0);
  ASSERT_TRUE(second.send(std::string(19'995, 'x')));
  EXPECT_EQ(second.read().status, 200);
  ASSERT_TRUE(first.send(std::string(15'000, 'x')));
  EXPECT_EQ(first.read().status, 200);
  expect_nothing_held(gateway);
}

TEST_F(ReceivedFirst, WhileThePoolIsEmptyThoseThatAreTooSlowEndForOthers) {
  CountingOrigin origin;
  config::Config config = with_fixed_limit(config_for(origin.address()), 4);
  config.buffering.buffer_request_pool = 65'536;
  RunningGateway gateway(config);
  Client slow(gateway.port());
  ASSERT_TRUE(slow.send(upload_head(65'000) + "x"));  // far below 4 kB/s, after the grace of 1 s
  ASSERT_TRUE(holds(gateway, 1));
  int tries = 0;
  ASSERT_TRUE(eventually([&] {
    ++tries;
    EXPECT_EQ(Client(gateway.port()).ask(upload_head(40'000) + std::string(40'000, 'y')).status,
              200);
    return gateway->status().refused == 1;
  }));
  EXPECT_GT(tries, 1) << "within its grace it is not ended";
  const Answer ended = slow.read();
  EXPECT_EQ(ended.status, 408);
  EXPECT_TRUE(ended.has("x-weir-reason: slow_body\r\n"));
  expect_nothing_held(gateway);
}

/// A pool of two bodies, and uploads that send far more than the slow rate, but not all.
class ReceivedFirstShare : public ReceivedFirst {
 protected:
  static config::Config config_for_two(const std::string& address) {
    config::Config config = with_fixed_limit(config_for(address), 4);
    config.buffering.buffer_request_pool = 9 * 16'384;  // one block is for critical requests
    return config;
  }
  Client& upload(std::uint32_t from, std::size_t bytes = 60'000) {
    const server::testkit::From here(from);
    uploads_.push_back(std::make_unique<Client>(gateway_.port()));
    EXPECT_TRUE(uploads_.back()->send(upload_head(65'000) + std::string(bytes, 'x')));
    return *uploads_.back();
  }
  [[nodiscard]] bool in_pool(int blocks) const {
    return eventually([&] { return buffers(gateway_)["used"] == blocks; });
  }
  static Answer finish(Client& client) {
    EXPECT_TRUE(client.send(std::string(5'000, 'x')));
    return client.read();
  }
  /// Longer than the grace within which no body ends.
  static bool outlive_the_grace() {
    const TimePoint until = io::monotonic_now() + policy::kUploadGrace;
    return eventually([&] { return io::monotonic_now() > until; });
  }

  static constexpr std::uint32_t kGreedy = 0x7f000002;  // 127.0.0.2
  static constexpr std::uint32_t kOther = 0x7f000003;
  CountingOrigin origin_;
  RunningGateway gateway_{config_for_two(origin_.address())};
  std::vector<std::unique_ptr<Client>> uploads_;
};

TEST_F(ReceivedFirstShare, OneClientMayHaveTheWholePoolWhileNobodyElseWantsIt) {
  Client& first = upload(kGreedy);
  Client& second = upload(kGreedy);
  ASSERT_TRUE(in_pool(8));
  ASSERT_TRUE(outlive_the_grace());
  Client& third = upload(kGreedy);  // its own bodies do not end for it: it is forwarded as it comes
  EXPECT_TRUE(eventually([&] { return origin_.heads() == 1; }));
  for (Client* one : {&first, &second, &third}) EXPECT_EQ(finish(*one).status, 200);
  EXPECT_EQ(gateway_->status().refused, 0U);
  expect_nothing_held(gateway_);
}

TEST_F(ReceivedFirstShare, AClientThatHasAllOfItLosesWhatOthersNeed) {
  Client& first = upload(kGreedy);
  ASSERT_TRUE(in_pool(4));
  Client& slower = upload(kGreedy, 50'000);
  ASSERT_TRUE(in_pool(8));
  ASSERT_TRUE(outlive_the_grace());
  {
    const server::testkit::From here(kOther);
    const Answer served =
        Client(gateway_.port()).ask(upload_head(40'000) + std::string(40'000, 'y'));
    EXPECT_EQ(served.status, 200);
  }
  EXPECT_EQ(gateway_->status().refused, 1U);
  const Answer answer = slower.read();
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(answer.has("x-weir-reason: slow_body\r\n"));
  EXPECT_EQ(finish(first).status, 200);
  expect_nothing_held(gateway_);
}

TEST_F(ReceivedFirstShare, TwoThatHaveTheSameEndNothingOfEachOther) {
  Client& first = upload(kGreedy);
  ASSERT_TRUE(in_pool(4));
  Client& second = upload(kOther);
  ASSERT_TRUE(in_pool(8));
  ASSERT_TRUE(outlive_the_grace());
  Client& more = upload(kGreedy);
  Client& third = upload(kOther + 1);
  EXPECT_TRUE(eventually([&] { return origin_.heads() == 2; })) << "forwarded as they come";
  for (Client* one : {&first, &second, &more, &third}) EXPECT_EQ(finish(*one).status, 200);
  EXPECT_EQ(gateway_->status().refused, 0U);
  expect_nothing_held(gateway_);
}

// ---- drain and reload

TEST_F(ReceivedFirst, ADrainLetsItFinish) {
  CountingOrigin origin;
  RunningGateway gateway(config_for(origin.address()));
  Client client(gateway.port());
  ASSERT_TRUE(client.send(upload_head(10) + "hello"));
  ASSERT_TRUE(holds(gateway, 5));
  std::thread drain([&] { EXPECT_TRUE(gateway->drain(std::chrono::seconds(10))); });
  EXPECT_TRUE(eventually([&] { return gateway.stats()["draining"].get<bool>(); }));
  ASSERT_TRUE(client.send("world"));
  EXPECT_EQ(client.read().status, 200);
  client.close();
  drain.join();
  EXPECT_EQ(origin.heads(), 1);
}

TEST_F(ReceivedFirst, AReloadThatTakesItsUpstreamAwayLetsItFinishThere) {
  CountingOrigin before;
  CountingOrigin after;
  const config::Config config = config_for(before.address());
  RunningGateway gateway(config);
  Client client(gateway.port());
  ASSERT_TRUE(client.send(upload_head(10) + "hello"));
  ASSERT_TRUE(holds(gateway, 5));
  config::Config next = config;
  next.upstreams[0].name = next.routes[0].upstream = "next";
  next.upstreams[0].endpoints = {*upstream::parse_source(after.address())};
  const ReloadReport report = gateway->reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
  ASSERT_TRUE(client.send("world"));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(before.heads(), 1);
  EXPECT_EQ(after.heads(), 1);
  EXPECT_TRUE(gateway.settled());
}

}  // namespace
}  // namespace weir::gateway
