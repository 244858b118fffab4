// Ordinary clients hold every place; critical requests are still served.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "gateway_testing.h"
#include "server/h2/h2_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::gateway {
namespace {

using server::testkit::From;
using server::testkit::H2Client;
using server::testkit::TlsClient;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::Origin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;
using testkit::with_fixed_limit;
namespace wire = http::h2::wire;

constexpr std::uint32_t kPeer = 0x7f000002;  // 127.0.0.2
constexpr std::string_view kHold = "GET /hold HTTP/1.1\r\nhost: t\r\n\r\n";
constexpr std::string_view kCriticalGet =
    "GET / HTTP/1.1\r\nhost: t\r\nx-weir-priority: critical\r\n\r\n";
constexpr std::string_view kCriticalPost =
    "POST / HTTP/1.1\r\nhost: t\r\nx-weir-priority: critical\r\ncontent-length: 5\r\n\r\nhello";
constexpr std::string_view kCriticalHold =
    "GET /hold HTTP/1.1\r\nhost: t\r\nx-weir-priority: critical\r\n\r\n";
const wire::Fields kCritical = {{"x-weir-priority", "critical"}};

/// Answers at once, except /hold.
void hold_some(ScriptedHandler& handler) {
  handler.headers = [](ServerStream& stream, const ServerRequest& request) {
    stream.user_data = request.meta.path == "/hold" ? &stream : nullptr;
  };
  handler.complete = [](ServerStream& stream) {
    if (stream.user_data != nullptr) return;
    EXPECT_EQ(reply(stream, 200, std::to_string(stream.body_bytes_received())), SendResult::kSent);
  };
}

/// Room for 20 ordinary requests, 16 ordinary connections, 2 sessions and 4 HTTP/2 bodies.
config::Config tight(const std::string& origin) {
  config::Config config = with_fixed_limit(gateway_config({origin}), 64);
  ServerConfig& bounds = config.server;
  bounds.loops = 1;
  bounds.max_connections = 24;
  bounds.reserved_connections = 8;
  bounds.streams_max = 24;
  bounds.reserved_streams = 4;
  bounds.http2_sessions_max = 4;
  bounds.body_lease_pool_size = 8;
  bounds.high_watermark = 0.999;
  bounds.critical_watermark = 1.0;
  bounds.stall_grace = std::chrono::hours(1);
  bounds.tls.listen = {"127.0.0.1:0"};
  bounds.tls.certificate_pem = server::testkit::localhost().certificate_pem;
  bounds.tls.private_key_pem = server::testkit::localhost().key_pem;
  config.admission.max_concurrent = 20;
  config.admission.waiting_max = 0;
  config.upstreams[0].max_connections = 24;
  config.trust.peers = {*parse_ip_range("127.0.0.2")};
  return config;
}

/// Ordinary clients that hold everything available to ordinary requests.
struct Crowd {
  explicit Crowd(RunningGateway& to) : gateway(to) {
    for (std::size_t i = 0; i < 8; ++i) hold_one([&] { return add_h1(); });
    for (std::size_t i = 0; i < 4; ++i) hold_one([&] { return add_tls(); });
    // More sessions, bodies and streams than ordinary clients may have: each gets what is free.
    for (std::size_t i = 0; i < 4; ++i) {
      h2.push_back(std::make_unique<H2Client>(gateway.port()));
      static_cast<void>(h2.back()->in_step());
    }
    for (auto& client : h2) {
      for (int i = 0; i < 4; ++i) client->post("/hold");  // no body is sent: it holds a lease
      static_cast<void>(client->in_step());
    }
    for (auto& client : h2) {
      for (int i = 0; i < 8; ++i) client->get("/hold");
    }
    EXPECT_TRUE(eventually([&] { return gateway->status().in_flight == 20; }));
  }
  template <class Add>
  void hold_one(Add add) {
    const std::uint32_t before = gateway->status().in_flight;
    EXPECT_TRUE(add());
    EXPECT_TRUE(eventually([&] { return gateway->status().in_flight == before + 1; }));
  }
  bool add_h1() {
    plain.push_back(std::make_unique<Client>(gateway.port()));
    return plain.back()->send(kHold);
  }
  bool add_tls() {
    secure.push_back(std::make_unique<TlsClient>(gateway.tls_port()));
    return secure.back()->shake() && secure.back()->send(kHold);
  }

  RunningGateway& gateway;
  std::vector<std::unique_ptr<Client>> plain;
  std::vector<std::unique_ptr<TlsClient>> secure;
  std::vector<std::unique_ptr<H2Client>> h2;
};

/// The status of a response on a stream of HTTP/2 over TLS.
int h2_status(TlsClient& client, wire::HeaderReader& headers, std::uint32_t stream) {
  while (true) {
    const std::string head = client.take(http::h2::kFrameHeaderBytes);
    if (head.size() < http::h2::kFrameHeaderBytes) return 0;
    const http::h2::FrameHeader frame =
        http::h2::read_frame_header(reinterpret_cast<const std::uint8_t*>(head.data()));
    const std::string payload = client.take(frame.length);
    if (frame.is(http::h2::FrameType::kRstStream)) return -1;
    if (!frame.is(http::h2::FrameType::kHeaders)) continue;
    const wire::Fields fields = headers.read(payload);
    if (frame.stream == stream) return std::stoi(fields.at(0).second);
  }
}

TEST(GatewayCritical, IsServedOnEveryProtocolWhileOrdinaryClientsHoldEveryPool) {
  Origin origin(hold_some);
  RunningGateway gateway(tight(origin.address()));
  const Crowd crowd(gateway);
  const auto stats = [&] { return nlohmann::json::parse(gateway.page("/pools")); };
  EXPECT_EQ(Client(gateway.port()).ask(kHold).status, 503) << "no place for a connection";
  H2Client& ordinary = *crowd.h2.front();
  EXPECT_TRUE(ordinary.finish(ordinary.get("/")).reset.has_value()) << "nor for a stream";

  const From peer(kPeer);
  Client h1(gateway.port());
  EXPECT_EQ(h1.ask(kCriticalGet).status, 200);
  EXPECT_EQ(h1.ask(kCriticalPost).body, "5");
  H2Client h2(gateway.port());
  EXPECT_EQ(h2.finish(h2.ask(wire::with(wire::get("/"), kCritical))).status, 200);
  const std::uint32_t posted = h2.post("/", kCritical);
  h2.send(wire::data(posted, "hello", wire::kEnd));
  EXPECT_EQ(h2.finish(posted).body, "5");
  TlsClient tls(gateway.tls_port());
  ASSERT_TRUE(tls.shake()) << tls.why();
  ASSERT_TRUE(tls.send(kCriticalGet));
  EXPECT_EQ(tls.read().status, 200);
  ASSERT_TRUE(tls.send(kCriticalPost));
  EXPECT_EQ(tls.read().body, "5");
  TlsClient both(gateway.tls_port(), {.protocols = {"h2"}});
  ASSERT_TRUE(both.shake()) << both.why();
  wire::HeaderReader headers;
  ASSERT_TRUE(both.send(wire::preface() + wire::settings({}) +
                        wire::headers(1, wire::with(wire::get("/"), kCritical))));
  EXPECT_EQ(h2_status(both, headers, 1), 200);
  ASSERT_TRUE(both.send(wire::headers(3, wire::with(wire::post(), kCritical), 0) +
                        wire::data(3, "hello", wire::kEnd)));
  EXPECT_EQ(h2_status(both, headers, 3), 200);

  EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 0) << stats().dump();
  EXPECT_EQ(gateway->status().in_flight, 20U) << "nobody had to make room";
}

TEST(GatewayCritical, ARefusalForWantOfAPlaceIsCounted) {
  Origin origin(hold_some);
  RunningGateway gateway(tight(origin.address()));
  const Crowd crowd(gateway);
  const From peer(kPeer);
  H2Client holder(gateway.port());
  for (int i = 0; i < 4; ++i) holder.ask(wire::with(wire::get("/hold"), kCritical));
  ASSERT_TRUE(eventually([&] { return origin.server().stats().requests == 24; }));
  EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 0);
  Client fifth(gateway.port());  // the reserved places are held, too
  EXPECT_EQ(fifth.ask(kCriticalHold).status, 503);
  EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 1);
}

TEST(GatewayCritical, ARefusalOfTheGatewaysOwnIsCounted) {
  Origin origin(hold_some);
  config::Config config = tight(origin.address());
  config.upstreams[0].max_connections = 1;
  RunningGateway gateway(config);
  Client holder(gateway.port());
  ASSERT_TRUE(holder.send(kHold));
  ASSERT_TRUE(eventually([&] { return gateway->status().in_flight == 1; }));
  const From peer(kPeer);
  Client client(gateway.port());
  const Answer answer = client.ask(kCriticalGet);
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("x-weir-reason: no_connection\r\n")) << answer.head;
  EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 1);
  EXPECT_NE(gateway.page("/metrics").find("weir_admission_critical_shed_total 1\n"),
            std::string::npos);
}

TEST(GatewayCritical, APeersOrdinaryRequestsLeaveTheReserve) {
  Origin origin(hold_some);
  config::Config config = tight(origin.address());
  config.server.streams_max = 8;
  RunningGateway gateway(config);
  const From peer(kPeer);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    clients.push_back(std::make_unique<Client>(gateway.port()));
    ASSERT_TRUE(clients.back()->send(kHold));
    ASSERT_TRUE(eventually([&] { return gateway->status().in_flight == i; }));
  }
  Client client(gateway.port());
  EXPECT_EQ(client.ask(kHold).status, 503);
  EXPECT_EQ(client.ask(kCriticalGet).status, 200);
  EXPECT_EQ(gateway.stats()["admission"]["critical_shed"], 0);
}

}  // namespace
}  // namespace weir::gateway
