// WebSocket tunnels over sockets, from clients of both protocols.
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/self_signed.h"

#include "gateway_testing.h"
#include "http/websocket_frames.h"
#include "http/websocket_key.h"
#include "server/h2/h2_testing.h"

namespace weir::gateway {
namespace {

using namespace std::string_literals;
using http::h2::FrameType;
using server::testkit::H2Client;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::pattern;
using testkit::RawOrigin;
using testkit::RunningGateway;
namespace wire = http::h2::wire;

constexpr std::string_view kAsk =
    "GET /chat HTTP/1.1\r\nhost: t\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n";
const std::string kHello = "\x81\x05hello"s;
const std::string kServerClose = "\x88\x02\x03\xe8"s;
const std::string kClientClose = "\x88\x82\x00\x00\x00\x00\x03\xe8"s;

const wire::Fields kConnect = {{":method", "CONNECT"}, {":protocol", "websocket"},
                               {":scheme", "http"},    {":authority", "t"},
                               {":path", "/chat"},     {"sec-websocket-version", "13"},
                               {"origin", "http://t"}};

std::string key_in(const std::string& head) {
  constexpr std::string_view kName = "sec-websocket-key: ";
  const std::size_t at = head.find(kName);
  return at == std::string::npos ? "" : head.substr(at + kName.size(), 24);
}

std::string switching(const std::string& head) {
  return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: " +
         std::string(http::WebSocketAccept(key_in(head)).view()) + "\r\n\r\n";
}

/// What is left of the connection, until its end.
std::string drained(int fd) {
  std::string all;
  char block[4096];
  for (;;) {
    const ssize_t got = ::recv(fd, block, sizeof block, 0);
    if (got <= 0) return all;
    all.append(block, static_cast<std::size_t>(got));
  }
}

void echo_until_end(int fd) {
  char block[4096];
  for (;;) {
    const ssize_t got = ::recv(fd, block, sizeof block, 0);
    if (got <= 0) return;
    RawOrigin::say(fd, {block, static_cast<std::size_t>(got)});
  }
}

void echo_socket(int fd, const std::string& head) {
  RawOrigin::say(fd, switching(head));
  echo_until_end(fd);
}

/// The value of a metric, with its labels; -1: there is none.
double metric(const RunningGateway& gateway, const std::string& series) {
  const std::string page = gateway.page("/metrics");
  const std::size_t at = page.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

bool ended_by(const RunningGateway& gateway, const std::string& by) {
  return eventually([&] {
    return metric(gateway, "weir_tunnels_ended_total{upstream=\"app\",ended_by=\"" + by + "\"}") ==
           1;
  });
}

TEST(GatewayTunnel, BytesBehindTheRequestAreTheTunnels) {
  RawOrigin origin(echo_socket);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.ask(std::string(kAsk) + "early");
  EXPECT_EQ(answer.status, 101);
  EXPECT_TRUE(answer.has("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_EQ(client.take(5), "early");
  EXPECT_EQ(metric(gateway, "weir_tunnels_open{upstream=\"app\"}"), 1);
  client.end_output();
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(ended_by(gateway, "client"));
  EXPECT_EQ(metric(gateway, "weir_tunnels_open{upstream=\"app\"}"), 0);
  EXPECT_EQ(metric(gateway, "weir_tunnel_bytes_total{upstream=\"app\",way=\"to_client\"}"), 5);
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayTunnel, AnAnswerOtherThan101LeavesBothConnectionsHttp) {
  std::atomic<int> requests = 0;
  RawOrigin origin([&](int fd, std::string head) {
    while (!head.empty()) {
      EXPECT_EQ(head.find("\r\n\r\n") + 4, head.size()) << "nothing came behind the request";
      const bool first = ++requests == 1;
      EXPECT_EQ(head.find("upgrade: websocket") != std::string::npos, first);
      RawOrigin::say(fd, first ? "HTTP/1.1 426 Upgrade Required\r\nsec-websocket-version: 13\r\n"
                                 "content-length: 3\r\n\r\nold"
                               : "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      head.clear();
      char block[4096];
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got > 0) head.assign(block, static_cast<std::size_t>(got));
    }
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  // A front that believed the request alone would let the second one through as raw bytes.
  ASSERT_TRUE(client.send(std::string(kAsk) + "GET /next HTTP/1.1\r\nhost: t\r\n\r\n"));
  const Answer refused = client.read();
  EXPECT_EQ(refused.status, 426);
  EXPECT_EQ(refused.body, "old");
  EXPECT_EQ(client.read().body, "ok");
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(origin.served(), 1) << "one connection";
  EXPECT_EQ(metric(gateway, "weir_tunnels_opened_total{upstream=\"app\"}"), 0);
}

TEST(GatewayTunnel, WhatIsNotAskedForIsNotATunnel) {
  struct Row {
    const char* why;
    std::string request;
    int status;  // 502: the origin's 101 was not asked for
  };
  const std::string head = "GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\n";
  const std::vector<Row> rows = {
      {"another protocol", head + "upgrade: foo\r\n\r\n", 502},
      {"cleartext HTTP/2", head + "upgrade: h2c\r\n\r\n", 502},
      {"two fields", head + "upgrade: websocket\r\nupgrade: websocket\r\n\r\n", 502},
      {"a length", head + "upgrade: websocket\r\ncontent-length: 0\r\n\r\n", 502},
      {"a body", head + "upgrade: websocket\r\ncontent-length: 2\r\n\r\nab", 502},
      {"a chunked body", head + "upgrade: websocket\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
       502},
      {"both framings",
       head + "upgrade: websocket\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nab",
       400},
      {"HTTP/1.0", "GET / HTTP/1.0\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
       502},
      {"not in Connection", "GET / HTTP/1.1\r\nhost: t\r\nupgrade: websocket\r\n\r\n", 502},
      {"POST", "POST / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
       502},
  };
  RawOrigin origin([](int fd, const std::string& seen) {
    EXPECT_THAT(seen, Not(HasSubstr("upgrade: ")));
    RawOrigin::say(fd, switching(seen) + "smuggled");
  });
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    RunningGateway gateway(gateway_config({origin.address()}));  // one would eject the endpoint
    Client client(gateway.port());
    const Answer answer = client.ask(row.request);
    EXPECT_EQ(answer.status, row.status);
    EXPECT_THAT(answer.body, Not(HasSubstr("smuggled")));
    EXPECT_TRUE(gateway.settled());
  }
}

TEST(GatewayTunnel, ASwitchToAnotherProtocolIsNotForwarded) {
  for (const char* upgrade : {"foo", "websocket, foo", ""}) {
    RawOrigin origin([&](int fd, const std::string&) {
      RawOrigin::say(fd, "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: "s +
                             upgrade + "\r\n\r\nsmuggled");
    });
    RunningGateway gateway(gateway_config({origin.address()}));
    Client client(gateway.port());
    const Answer answer = client.ask(kAsk);
    EXPECT_EQ(answer.status, 502) << upgrade;
    EXPECT_TRUE(answer.has("x-weir-reason: bad_response"));
    EXPECT_EQ(client.ask(kAsk).status, 502) << "the client's connection is still HTTP";
  }
}

TEST(GatewayTunnel, ARouteMayOfferNone) {
  RawOrigin origin([](int fd, const std::string& head) {
    EXPECT_THAT(head, Not(HasSubstr("upgrade: ")));
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  config::Config config = gateway_config({origin.address()});
  config.routes[0].upgrade.emplace();
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).ask(kAsk).body, "ok");
  H2Client client(gateway.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  EXPECT_EQ(client.finish(id).status, 501);
  EXPECT_EQ(client.reply(id).field("x-weir-reason"), "protocol_not_offered");
}

TEST(GatewayTunnel, AnUpstreamThatSpeaksOnlyHttp2HasNone) {
  config::Config config = gateway_config({"127.0.0.1:9"});
  config.upstreams[0].protocol = upstream::Protocol::kHttp2;
  RunningGateway gateway(config);
  const Answer answer = Client(gateway.port()).ask(kAsk);
  EXPECT_EQ(answer.status, 501);
  EXPECT_TRUE(answer.has("x-weir-reason: upgrade_needs_http1"));
  config.routes[0].upgrade = {UpgradeProtocol::kWebSocket};
  EXPECT_FALSE(config.validate().empty()) << "the file says that it wants what cannot be";
}

/// Agrees to every upgrade and sends back what it receives; answers other requests with "plain".
void agree(testkit::ScriptedHandler& handler) {
  handler.headers = [](ServerStream& stream, const ServerRequest& request) {
    const std::array<ResponseField, 1> fields = {{{"upgrade", "websocket"}}};
    const SendResult sent =
        request.upgrade
            ? stream.send_headers({.status = 101, .fields = fields, .content_length = {}})
            : testkit::reply(stream, 200, "plain");
    EXPECT_EQ(sent, SendResult::kSent);
  };
  handler.body = [](ServerStream& stream, const http::BodyChunk& chunk) {
    static_cast<void>(stream.send_data(chunk.text(), chunk.last()));
  };
}

/// An upstream whose endpoint prefers HTTP/2.
struct Http2Origin {
  Http2Origin()
      : made(io::make_certificate({.names = {"127.0.0.1"}, .signer_pem = {}, .authority = true})),
        server(server_config(made), testkit::every_loop(agree)) {}
  static ServerConfig server_config(const io::MadeCertificate& made) {
    ServerConfig config = testkit::small_config();
    config.tls.listen = {"127.0.0.1:0"};
    config.tls.certificate_pem = made.certificate_pem;
    config.tls.private_key_pem = made.key_pem;
    return config;
  }
  config::Config gateway() {
    config::Config config = gateway_config({server->tls_addresses().front().to_string()});
    config.upstreams[0].tls_enabled = true;
    config.upstreams[0].tls.ca_pem = made.certificate_pem;
    return config;
  }
  io::MadeCertificate made;
  testkit::RunningServer server;
};

TEST(GatewayTunnel, AnEndpointThatPrefersHttp2GetsAConnectionInHttp11) {
  Http2Origin origin;
  config::Config config = origin.gateway();
  config.server.loops = 1;  // so that the requests share a connection
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").body, "plain");
  EXPECT_EQ(origin.server.stats().h2_requests, 1U);
  Client first(gateway.port());
  Client second(gateway.port());
  for (Client* client : {&first, &second}) {
    ASSERT_EQ(client->ask(kAsk).status, 101);
    ASSERT_TRUE(client->send("hello"));
    EXPECT_EQ(client->take(5), "hello");
  }
  EXPECT_EQ(Client(gateway.port()).get("/").body, "plain");
  EXPECT_EQ(origin.server.stats().h2_requests, 2U) << "requests stay with HTTP/2";
  EXPECT_EQ(origin.server.stats().h2_connections, 1U);
  EXPECT_EQ(origin.server.stats().tunnels, 2U);
}

TEST(GatewayTunnel, AConnectionOfItsOwnIsBoundedAndCanFail) {
  Http2Origin origin;
  config::Config config = origin.gateway();
  config.server.loops = 1;
  config.server.reserved_streams = 0;
  config.upstreams[0].max_connections = 1;
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_EQ(first.ask(kAsk).status, 101);
  const Answer refused = Client(gateway.port()).ask(kAsk);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: no_connection")) << refused.head;

  config.upstreams[0].tls = {};  // nobody trusts this certificate
  config.upstreams[0].hold_max = Duration(0);
  RunningGateway stranger(config);
  EXPECT_EQ(Client(stranger.port()).ask(kAsk).status, 502);
  EXPECT_TRUE(stranger.settled());
}

// The client leaves while the connection for it is being opened: that one is kept for others.
TEST(GatewayTunnel, AClientThatLeavesDoesNotBreakTheConnectionOpenedForIt) {
  const auto listening = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(listening.has_value());  // accepts in the kernel, and never answers a ClientHello
  config::Config config = gateway_config({io::bound_name(listening->get()).to_string()});
  config.upstreams[0].tls_enabled = true;
  config.upstreams[0].tls.insecure = true;
  RunningGateway gateway(config);
  {
    Client client(gateway.port());
    ASSERT_TRUE(client.send(kAsk));
    ASSERT_TRUE(eventually(
        [&] { return metric(gateway, "weir_upstream_connects_total{upstream=\"app\"}") == 1; }));
  }
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway.stats()["requests"]["aborted"], 1);
}

TEST(GatewayTunnel, TheirNumberIsBounded) {
  testkit::Origin origin(agree);
  config::Config config = gateway_config({origin.address()});
  config.server.tunnels_max = 2;
  RunningGateway gateway(config);
  Client first(gateway.port());
  Client second(gateway.port());
  ASSERT_EQ(first.ask(kAsk).status, 101);
  ASSERT_EQ(second.ask(kAsk).status, 101);
  Client third(gateway.port());
  const Answer refused = third.ask(kAsk);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: no_tunnel"));
  EXPECT_TRUE(refused.has("retry-after: "));
  first.close();
  EXPECT_TRUE(ended_by(gateway, "client"));
  EXPECT_TRUE(eventually([&] { return third.ask(kAsk).status == 101; }));
}

TEST(GatewayTunnel, SilenceInBothDirectionsEndsIt) {
  RawOrigin origin(echo_socket);
  config::Config config = gateway_config({origin.address()});
  config.server.tunnel_idle_timeout = std::chrono::milliseconds(50);
  config.server.body_timeout = std::chrono::milliseconds(10);
  config.upstreams[0].inactivity_timeout = std::chrono::milliseconds(10);
  RunningGateway gateway(config);
  Client client(gateway.port());
  ASSERT_EQ(client.ask(kAsk).status, 101);
  EXPECT_TRUE(client.at_end());
  EXPECT_FALSE(client.timed_out());
  EXPECT_TRUE(ended_by(gateway, "idle"));
}

TEST(GatewayTunnel, TheUpstreamsEndIsTheClients) {
  RawOrigin origin([](int fd, const std::string& head) {
    RawOrigin::say(fd, switching(head) + kHello + kServerClose);
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_EQ(client.ask(kAsk).status, 101);
  EXPECT_EQ(client.take(kHello.size() + kServerClose.size()), kHello + kServerClose);
  EXPECT_TRUE(client.at_end());
  client.close();
  EXPECT_TRUE(ended_by(gateway, "upstream"));
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayTunnel, IsFlowControlledEndToEnd) {
  RawOrigin origin(echo_socket);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port(), 16 * 1024);
  ASSERT_EQ(client.ask(kAsk).status, 101);
  const std::string sent = pattern(std::size_t{8} * 1024 * 1024);
  auto sending = std::async(std::launch::async, [&] { return client.send(sent); });
  ASSERT_TRUE(eventually([&] { return gateway.stats()["admission"]["bytes"] > 0; }));
  EXPECT_LE(gateway.stats()["admission"]["bytes"], 1024 * 1024);
  EXPECT_EQ(client.take(sent.size()), sent);
  EXPECT_TRUE(sending.get());
  EXPECT_EQ(metric(gateway, "weir_tunnel_bytes_total{upstream=\"app\",way=\"to_upstream\"}"),
            static_cast<double>(sent.size()));
}

// ---- HTTP/2

TEST(GatewayTunnel, AnExtendedConnectIsAnUpgradeForTheUpstream) {
  RawOrigin origin([](int fd, const std::string& head) {
    EXPECT_EQ(head.substr(0, 19), "GET /chat HTTP/1.1\r");
    EXPECT_THAT(head, HasSubstr("\r\nhost: t\r\n"));
    EXPECT_THAT(head, HasSubstr("\r\norigin: http://t\r\n"));
    EXPECT_THAT(head, HasSubstr("\r\nsec-websocket-version: 13\r\n"));
    EXPECT_THAT(head, EndsWith("\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"));
    EXPECT_THAT(head, Not(HasSubstr("transfer-encoding")));
    EXPECT_THAT(head, Not(HasSubstr("client's own")));
    EXPECT_EQ(key_in(head).substr(22), "==");
    echo_socket(fd, head);
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  H2Client client(gateway.port());
  const std::uint32_t id =
      client.ask(wire::with(kConnect, {{"sec-websocket-key", "client's own"}}), 0);
  client.send(wire::data(id, "early "));
  ASSERT_TRUE(client.until(FrameType::kHeaders, id).has_value());
  EXPECT_EQ(client.reply(id).status, 200);
  EXPECT_EQ(client.reply(id).field("sec-websocket-accept"), "");
  EXPECT_EQ(client.reply(id).field("upgrade"), "");
  client.send(wire::data(id, kHello));
  while (client.reply(id).body.size() < 6 + kHello.size() && client.next()) {
  }
  EXPECT_EQ(client.reply(id).body, "early " + kHello);
  EXPECT_EQ(metric(gateway, "weir_tunnels_open{upstream=\"app\"}"), 1);
  client.send(wire::data(id, "", wire::kEnd));
  EXPECT_TRUE(client.finish(id).ended);
  EXPECT_TRUE(ended_by(gateway, "client"));
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayTunnel, AResetOfTheStreamClosesTheUpstreamsConnection) {
  std::promise<std::string> rest;
  RawOrigin origin([&](int fd, const std::string& head) {
    RawOrigin::say(fd, switching(head));
    rest.set_value(drained(fd));
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  H2Client client(gateway.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, id).has_value());
  client.send(wire::data(id, kHello) + wire::rst(id));
  EXPECT_THAT(kHello, ::testing::StartsWith(rest.get_future().get()));
  EXPECT_TRUE(ended_by(gateway, "client"));
  EXPECT_TRUE(client.in_step()) << "the connection lives";
}

TEST(GatewayTunnel, OnlyAProofThatOurKeyWasReadIsAgreement) {
  const std::vector<std::string> answers = {
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
      "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage",
      "HTTP/1.1 204 No Content\r\n\r\n",
  };
  for (const std::string& text : answers) {
    RawOrigin origin([&](int fd, const std::string&) { RawOrigin::say(fd, text); });
    RunningGateway gateway(gateway_config({origin.address()}));
    H2Client client(gateway.port());
    const std::uint32_t id = client.ask(kConnect, 0);
    EXPECT_EQ(client.finish(id).status, 502) << text;
    EXPECT_EQ(client.reply(id).field("x-weir-reason"), "bad_response");
  }
}

TEST(GatewayTunnel, ARefusalOfTheServiceIsForwardedAndEarlyBytesAreNot) {
  std::promise<std::string> rest;
  RawOrigin origin([&](int fd, const std::string& head) {
    EXPECT_EQ(head.find("\r\n\r\n") + 4, head.size());
    RawOrigin::say(fd,
                   "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno");
    ::shutdown(fd, SHUT_WR);
    rest.set_value(drained(fd));
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  H2Client client(gateway.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  client.send(wire::data(id, "GET /smuggled HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_EQ(client.finish(id).status, 403);
  EXPECT_EQ(client.reply(id).body, "no");
  EXPECT_EQ(rest.get_future().get(), "");
}

TEST(GatewayTunnel, PlainConnectAndUnknownProtocolsAreRefused) {
  RunningGateway gateway(gateway_config({"127.0.0.1:9"}));
  H2Client client(gateway.port());
  EXPECT_EQ(client.finish(client.ask({{":method", "CONNECT"}, {":authority", "t:443"}}, 0)).status,
            405);
  wire::Fields other = kConnect;
  other[1].second = "connect-udp";
  const std::uint32_t id = client.ask(other, 0);
  EXPECT_EQ(client.finish(id).status, 501);
  EXPECT_EQ(client.reply(id).field("x-weir-reason"), "protocol_not_offered");
  EXPECT_EQ(client.finish(client.ask(kConnect, wire::kEnd)).status, 501) << "it has ended its side";
}

// ---- drain

/// A frame that has begun is completed; then both sides get a Close frame, and nothing after it.
TEST(GatewayTunnel, ADrainEndsBothDirectionsBetweenFrames) {
  std::promise<int> agreed;
  std::promise<std::string> rest;
  std::promise<void> go_on;
  RawOrigin origin([&](int fd, const std::string& head) {
    RawOrigin::say(fd, switching(head) + kHello.substr(0, 3));
    agreed.set_value(fd);
    go_on.get_future().wait();
    RawOrigin::say(fd, kHello.substr(3) + kHello);
    rest.set_value(drained(fd));
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_EQ(client.ask(kAsk).status, 101);
  const int fd = agreed.get_future().get();
  EXPECT_EQ(client.take(3), kHello.substr(0, 3));
  auto drain =
      std::async(std::launch::async, [&] { return gateway->drain(std::chrono::seconds(10)); });
  // The upstream's side is at a boundary: its Close frame comes at once, masked.
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&one, 1, 10'000), 1);
  go_on.set_value();
  EXPECT_EQ(client.take(kHello.size() - 3), kHello.substr(3));
  EXPECT_EQ(client.take(http::kGoingAway.size()), http::kGoingAway);
  ASSERT_TRUE(client.send(kHello + kClientClose));
  EXPECT_TRUE(client.at_end()) << "the second frame came after the Close frame";
  client.close();
  EXPECT_TRUE(drain.get());
  const std::string told = rest.get_future().get();
  ASSERT_EQ(told.size(), http::kMaskedGoingAwayBytes);
  EXPECT_EQ(told.substr(0, 2), "\x88\x8c"s);
  EXPECT_TRUE(ended_by(gateway, "drain"));
}

TEST(GatewayTunnel, ADrainEndsAStreamOfHttp2WithACloseFrame) {
  RawOrigin origin([](int fd, const std::string& head) {
    RawOrigin::say(fd, switching(head));
    drained(fd);
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  H2Client client(gateway.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, id).has_value());
  auto drain =
      std::async(std::launch::async, [&] { return gateway->drain(std::chrono::seconds(10)); });
  while (client.reply(id).body.size() < http::kGoingAway.size() && client.next()) {
  }
  EXPECT_EQ(client.reply(id).body, http::kGoingAway);
  client.send(wire::data(id, kClientClose));
  EXPECT_TRUE(client.finish(id).ended);
  client.send(wire::data(id, "", wire::kEnd));
  client.socket().close();
  EXPECT_TRUE(drain.get());
  EXPECT_TRUE(ended_by(gateway, "drain"));
}

TEST(GatewayTunnel, ADrainCutsWhatDoesNotReachTheEndOfAFrame) {
  RawOrigin origin([](int fd, const std::string& head) {
    RawOrigin::say(fd, switching(head) + kHello.substr(0, 3));
    drained(fd);
  });
  config::Config config = gateway_config({origin.address()});
  config.admin.drain_timeout = std::chrono::milliseconds(50);
  RunningGateway gateway(config);
  Client client(gateway.port());
  ASSERT_EQ(client.ask(kAsk).status, 101);
  EXPECT_EQ(client.take(3), kHello.substr(0, 3));
  EXPECT_FALSE(gateway->drain(Duration(0)));
  EXPECT_FALSE(gateway->drain(Duration(0))) << "asked again, as long as somebody is left";
  EXPECT_TRUE(client.at_end()) << "no byte of a Close frame inside of another frame";
  EXPECT_FALSE(client.timed_out());
  EXPECT_TRUE(ended_by(gateway, "drain"));
}

}  // namespace
}  // namespace weir::gateway
