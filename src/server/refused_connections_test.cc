// What a client without a place gets: an answer to its request, never a reset.
#include "refused_connections.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "http/h2/frame.h"
#include "server/server_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::Gate;
using testkit::RunningServer;
using testkit::small_config;
using testkit::tls_config;
using testkit::TlsClient;

constexpr std::string_view kPlainGet = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";

/// A refused socket; the test is its peer, and runs the loop step by step.
class RefusedConnectionsTest : public ::testing::Test {
 protected:
  RefusedConnectionsTest() {
    int pair[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    peer.reset(pair[0]);
    refused.add(io::Fd(pair[1]));
    step();
  }
  ~RefusedConnectionsTest() override {
    refused.close(io::Callback<>::to<&RefusedConnectionsTest::on_closed>(*this));
    while (!closed) loop.run_once(true);
  }
  void on_closed() { closed = true; }
  void step() {
    for (int i = 0; i < 5; ++i) loop.run_once();
  }
  void send(std::string_view bytes) {
    ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    step();
  }
  std::string heard() {
    char block[1024];
    const ssize_t got = ::recv(peer.get(), block, sizeof block, 0);
    return got > 0 ? std::string(block, static_cast<std::size_t>(got)) : std::string();
  }

  io::Loop loop;
  RefusedConnections refused{loop, 256};
  io::Fd peer;
  bool closed = false;
};

TEST_F(RefusedConnectionsTest, TheAnswerFollowsTheHeadInWhateverPiecesItComes) {
  for (const char& byte : kPlainGet.substr(0, kPlainGet.size() - 1)) {
    send({&byte, 1});
    ASSERT_EQ(heard(), "");
  }
  send("\n");
  const std::string answer = heard();
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(answer.find("\r\nx-weir-reason: no_place\r\n"), std::string::npos);
  EXPECT_NE(answer.find("\r\nconnection: close\r\n"), std::string::npos);
}

TEST_F(RefusedConnectionsTest, AnEndlessHeadIsAnsweredAtItsBound) {
  send(std::string(255, 'a'));
  EXPECT_EQ(heard(), "");
  send("a");
  EXPECT_EQ(heard().substr(0, 12), "HTTP/1.1 503");
}

TEST_F(RefusedConnectionsTest, SilenceIsAnsweredWhenItsTimeIsUp) {
  std::string answer;
  while (answer.empty()) {
    loop.run_once(true);
    answer = heard();
  }
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 503");
}

TEST_F(RefusedConnectionsTest, Http2IsToldInFrames) {
  send(http::h2::kClientPreface);
  const std::string answer = heard();
  constexpr auto kFrames = http::h2::refusal_frames();
  EXPECT_EQ(answer.size(), kFrames.size());
  EXPECT_EQ(answer[3], static_cast<char>(http::h2::FrameType::kSettings));
}

TEST_F(RefusedConnectionsTest, WhoEndsItsSideIsAnsweredAndLetGo) {
  ::shutdown(peer.get(), SHUT_WR);
  step();
  EXPECT_EQ(heard().substr(0, 12), "HTTP/1.1 503");
  char byte = 0;
  EXPECT_EQ(::recv(peer.get(), &byte, 1, 0), 0);
}

/// One connection is accepted, and its source may have no other.
struct FullServer {
  explicit FullServer(ServerConfig config)
      : server(
            [&config] {
              config.connections_per_source_max = 1;
              return config;
            }(),
            gate.holding()) {}
  [[nodiscard]] bool fill(Client& inside) {
    return inside.send(kPlainGet) &&
           server.eventually([this](const ServerStats&) { return gate.size() == 1; });
  }
  Gate gate;
  RunningServer server;
};

TEST(RefusedConnections, NoneOfManyClientsSeesAnEmptyReplyOrAReset) {
  FullServer full(small_config());
  Client inside(full.server.port());
  ASSERT_TRUE(full.fill(inside));
  const std::string post =
      "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 30000\r\n\r\n" + std::string(30000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&, i] {
      Client client(full.server.port());
      const Answer answer = client.ask(i % 2 == 0 ? std::string(kPlainGet) : post);
      EXPECT_EQ(answer.status, 503);
      EXPECT_TRUE(answer.has("x-weir-reason: no_place\r\n"));
      EXPECT_TRUE(client.at_end());
      EXPECT_FALSE(client.was_reset());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(full.server.stats().refused_by(RefuseReason::kSource), 40U);
}

TEST(RefusedConnections, WithTlsTheyAreReset) {
  FullServer full(tls_config());
  TlsClient inside(full.server->tls_port());
  ASSERT_TRUE(inside.shake());
  Client refused(full.server->tls_port());
  EXPECT_TRUE(refused.at_end());
  EXPECT_TRUE(refused.was_reset());
}

}  // namespace
}  // namespace weir::inline v0::inline server
