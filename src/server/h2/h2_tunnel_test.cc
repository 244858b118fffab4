// Extended CONNECT (RFC 8441): a stream that becomes a tunnel.
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using http::h2::FrameType;
using testkit::every_loop;
using testkit::H2Client;
using testkit::pattern;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
namespace wire = http::h2::wire;

constexpr std::uint32_t kCancel = 8;

const wire::Fields kConnect = {{":method", "CONNECT"},
                               {":protocol", "websocket"},
                               {":scheme", "http"},
                               {":authority", "a"},
                               {":path", "/chat"}};

ServerConfig tunnel_config() {
  ServerConfig config = small_config();
  config.http2.extended_connect = true;
  return config;
}

/// Accepts every tunnel and sends back what it receives, with the end.
void echo(ScriptedHandler& handler) {
  handler.headers = [](ServerStream& stream, const ServerRequest& request) {
    EXPECT_EQ(request.meta.protocol, "websocket");
    EXPECT_EQ(request.meta.path, "/chat");
    EXPECT_TRUE(request.upgrade);
    EXPECT_FALSE(request.body_length.has_value());
    EXPECT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = {}}),
              SendResult::kSent);
  };
  handler.body = [](ServerStream& stream, const http::BodyChunk& chunk) {
    EXPECT_EQ(stream.send_data(chunk.text(), chunk.last()), chunk.len);
  };
}

TEST(H2Tunnel, CarriesBytesBothWaysUntilItsEnd) {
  RunningServer server(tunnel_config(), every_loop(echo));
  H2Client client(server.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, id).has_value());
  EXPECT_EQ(client.reply(id).status, 200);
  EXPECT_EQ(client.reply(id).field("content-length"), "");
  EXPECT_EQ(server.stats().tunnels, 1U);
  const std::string sent = pattern(200'000);
  std::string_view left = sent;
  while (!left.empty()) {  // within the first window: it is returned as the echo arrives
    const std::string_view piece = left.substr(0, 8 * 1024);
    client.send(wire::data(id, piece));
    left.remove_prefix(piece.size());
    const std::size_t wanted = sent.size() - left.size();
    while (client.reply(id).body.size() < wanted && client.next()) {
    }
  }
  client.send(wire::data(id, "", wire::kEnd));
  EXPECT_TRUE(client.finish(id).ended);
  EXPECT_EQ(client.reply(id).body, sent);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.tunnels == 0 && s.tunnel_places.used == 0 && s.streams.used == 0;
  }));
}

TEST(H2Tunnel, IsNotOfferedUnlessItsOwnerCanServeIt) {
  RunningServer server(small_config(), every_loop(echo));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.ask(kConnect, 0)).reset, 1U);
  EXPECT_EQ(server.stats().requests, 0U);
}

TEST(H2Tunnel, ARefusalIsAnOrdinaryResponse) {
  RunningServer server(tunnel_config(), every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest&) {
                           EXPECT_EQ(reply(stream, 501, "no such protocol"), SendResult::kSent);
                         };
                         handler.body = [](ServerStream&, const http::BodyChunk&) {
                           ADD_FAILURE() << "nobody wanted these bytes";
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.ask(kConnect, 0);
  client.send(wire::data(id, "early"));
  EXPECT_EQ(client.finish(id).status, 501);
  EXPECT_EQ(client.reply(id).body, "no such protocol");
  EXPECT_TRUE(client.in_step());
  EXPECT_EQ(server.stats().tunnels, 0U);
}

TEST(H2Tunnel, IsNotEndedByTheTimersOfBodies) {
  ServerConfig config = tunnel_config();
  config.body_timeout = std::chrono::milliseconds(20);
  RunningServer server(config, every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream&, const ServerRequest&) {};
                         handler.body = [](ServerStream&, const http::BodyChunk&) {};
                       }));
  H2Client client(server.port());
  const std::uint32_t silent = client.ask(kConnect, 0);
  const std::uint32_t slow = client.post("/upload");  // the timers run: this one ends
  EXPECT_EQ(client.finish(slow).status, 408);
  EXPECT_TRUE(client.in_step());
  EXPECT_FALSE(client.reply(silent).reset.has_value());
  EXPECT_EQ(client.reply(silent).status, 0);
}

TEST(H2Tunnel, SilenceEndsItByItsOwnTimer) {
  ServerConfig config = tunnel_config();
  config.tunnel_idle_timeout = std::chrono::milliseconds(30);
  std::mutex mutex;
  std::vector<CloseReason> reasons;
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         echo(handler);
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           const std::scoped_lock lock(mutex);
                           reasons.push_back(reason);
                         };
                       }));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.ask(kConnect, 0)).reset, kCancel);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.tunnels == 0; }));
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(reasons, std::vector<CloseReason>{CloseReason::kTunnelIdle});
}

TEST(H2Tunnel, AResetIsTheEndOfTheTunnelInBothDirections) {
  RunningServer server(tunnel_config(), every_loop([](ScriptedHandler& handler) {
                         echo(handler);
                         handler.body = [](ServerStream& stream, const http::BodyChunk&) {
                           stream.reset();
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t ours = client.ask(kConnect, 0);
  client.send(wire::data(ours, "x"));
  EXPECT_EQ(client.finish(ours).reset, kCancel);
  const std::uint32_t theirs = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, theirs).has_value());
  client.send(wire::rst(theirs, kCancel));
  EXPECT_TRUE(client.in_step());
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.tunnels == 0 && s.tunnel_places.used == 0; }));
}

TEST(H2Tunnel, HasAPlaceOfItsOwn) {
  ServerConfig config = tunnel_config();
  config.tunnels_max = 1;
  RunningServer server(config, every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest&) {
                           const SendResult sent = stream.send_headers(
                               {.status = 200, .fields = {}, .content_length = {}});
                           if (sent == SendResult::kInvalid) stream.send_503();
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t first = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, first).has_value());
  EXPECT_EQ(client.finish(client.ask(kConnect, 0)).status, 503);
  client.send(wire::rst(first, kCancel));
  ASSERT_TRUE(client.in_step());
  const std::uint32_t third = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, third).has_value());
  EXPECT_EQ(client.reply(third).status, 200);
}

// Each holds a body lease as long as it lasts: without a bound of their own idle tunnels would end
// all uploads.
TEST(H2Tunnel, LeavesHalfOfTheBodyLeasesToBodies) {
  ServerConfig config = tunnel_config();
  config.body_lease_pool_size = 4;
  config.reserved_streams = 0;
  RunningServer server(config, every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest& request) {
                           if (!request.upgrade) return;
                           if (!stream.reserve_tunnel()) return stream.send_503();
                           const SendResult sent = stream.send_headers(
                               {.status = 200, .fields = {}, .content_length = {}});
                           EXPECT_EQ(sent, SendResult::kSent);
                         };
                         handler.complete = [](ServerStream& stream) {
                           EXPECT_EQ(reply(stream, 200, "got it"), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  std::vector<std::uint32_t> tunnels;
  for (int i = 0; i < 2; ++i) {
    tunnels.push_back(client.ask(kConnect, 0));
    ASSERT_TRUE(client.until(FrameType::kHeaders, tunnels.back()).has_value());
    EXPECT_EQ(client.reply(tunnels.back()).status, 200);
  }
  EXPECT_EQ(client.finish(client.ask(kConnect, 0)).status, 503);
  EXPECT_EQ(server.stats().h2_tunnel_places.exhausted, 1U);
  EXPECT_EQ(server.stats().tunnel_places.used, 2U) << "what was refused holds nothing";
  const std::uint32_t upload = client.post("/upload");
  client.send(wire::data(upload, "bytes", wire::kEnd));
  EXPECT_EQ(client.finish(upload).body, "got it");
  client.send(wire::rst(tunnels.front(), kCancel));
  ASSERT_TRUE(client.in_step());
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.h2_tunnel_places.used == 1; }));
  const std::uint32_t again = client.ask(kConnect, 0);
  ASSERT_TRUE(client.until(FrameType::kHeaders, again).has_value());
  EXPECT_EQ(client.reply(again).status, 200);
}

}  // namespace
}  // namespace weir::inline v0::inline server
