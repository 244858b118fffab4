#include <string>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::H2Client;
using testkit::Reply;
using testkit::RunningServer;
using testkit::says_hello;
using testkit::small_config;
namespace wire = http::h2::wire;

TEST(H2Server, BothProtocolsOnOnePort) {
  RunningServer server(small_config(), says_hello());
  Client one(server.port());
  EXPECT_EQ(one.get("/").body, "hello");
  H2Client two(server.port());
  const Reply& answer = two.finish(two.get("/"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.field("content-length"), "5");
  EXPECT_FALSE(answer.field("date").empty());
  EXPECT_EQ(answer.data_frames, 1U);
  EXPECT_EQ(one.get("/").body, "hello");
}

TEST(H2Server, PrefaceByteByByteIsAPreface) {
  RunningServer server(small_config(), says_hello());
  H2Client client(server.port(), {.settings = {}, .greet = false});
  for (const char byte : wire::preface()) EXPECT_TRUE(client.send({&byte, 1}));
  client.send(wire::settings());
  EXPECT_EQ(client.finish(client.get("/")).status, 200);
}

TEST(H2Server, AnAlmostPrefaceIsHttp1) {
  RunningServer server(small_config(), says_hello());
  Client client(server.port());
  EXPECT_EQ(client.ask("PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n").status, 505);
  Client post(server.port());
  EXPECT_TRUE(post.send("P"));
  EXPECT_EQ(post.ask("OST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").status, 200);
}

TEST(H2Server, AnInvalidPrefaceEndsTheConnectionWithoutAWord) {
  RunningServer server(small_config(), says_hello());
  Client stranger(server.port());
  ASSERT_TRUE(stranger.send("INVALID CONNECTION PREFACE\r\n\r\n"));
  EXPECT_TRUE(stranger.at_end());
  EXPECT_FALSE(stranger.was_reset());
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kParseError) == 1; }));
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kBadRequest), 1U);
  EXPECT_EQ(server.stats().responses_4xx, 0U);
  // An invalid request line with "HTTP/" is answered.
  EXPECT_EQ(Client(server.port()).ask("GET /a b HTTP/1.1\r\nhost: t\r\n\r\n").status, 400);
  Client later(server.port());
  EXPECT_EQ(later.get("/").status, 200);
  EXPECT_EQ(later.ask("INVALID CONNECTION PREFACE\r\n\r\n").status, 400) << "no preface here";
  ServerConfig old = small_config();
  old.http2_enabled = false;
  RunningServer http1(old, says_hello());
  EXPECT_EQ(Client(http1.port()).ask("INVALID CONNECTION PREFACE\r\n\r\n").status, 400);
}

TEST(H2Server, ManyStreamsOnOneConnection) {
  RunningServer server(small_config(), says_hello());
  H2Client client(server.port());
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(client.get("/"));
    if (ids.size() % 50 == 0) {
      for (const std::uint32_t id : ids) EXPECT_EQ(client.finish(id).body, "hello") << id;
      ids.clear();
    }
  }
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.requests == 300; }));
}

}  // namespace
}  // namespace weir::inline v0::inline server
