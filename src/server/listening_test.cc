// Listening sockets that come from another process, and what becomes of their queue; and how a
// drain treats connections that have no request.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/server/server.h"

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;

using testkit::says_hello;
using testkit::small_config;

io::Fd bound() {
  auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
  EXPECT_TRUE(fd.has_value());
  return std::move(*fd);
}

GivenSockets given_one(io::Fd fd, bool accept = true) {
  GivenSockets given;
  given.listen.push_back({.fd = std::move(fd), .shared = false});
  given.accept = accept;
  return given;
}

TEST(GivenSockets, TakeThePlaceOfAnAddressAndOthersAreBound) {
  ServerConfig config = small_config();
  config.listen = {"127.0.0.1:1", "127.0.0.1:0"};  // nobody could bind the first
  io::Fd fd = bound();
  const io::SocketName name = io::bound_name(fd.get());
  Server server(config, says_hello());
  ASSERT_TRUE(server.start(given_one(std::move(fd))).has_value());
  ASSERT_EQ(server.addresses().size(), 2U);
  EXPECT_EQ(server.addresses()[0], name);
  for (const io::SocketName& address : server.addresses()) {
    EXPECT_EQ(Client(address.address.port).get("/").status, 200);
  }
}

TEST(GivenSockets, OneThatDoesNotListenIsNamed) {
  io::Fd fd = bound();
  Result<io::Fd, io::IoError> connected = io::connect_to(io::bound_name(fd.get()), {});
  ASSERT_TRUE(connected.has_value());
  Server server(small_config(), says_hello());
  const auto started = server.start(given_one(std::move(*connected)));
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().error, io::IoError::kInvalid);
  EXPECT_EQ(started.error().where, small_config().listen.front());
}

TEST(GivenSockets, ConnectionsWaitUntilAcceptingBegins) {
  io::Fd fd = bound();
  Server server(small_config(), says_hello());
  ASSERT_TRUE(server.start(given_one(std::move(fd), false)).has_value());
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_EQ(server.stats().accepted, 0U);
  server.begin_accepting();
  EXPECT_EQ(client.read().status, 200);
}

TEST(GivenSockets, TheQueueOfAListenerSurvivesTheServerThatSharedIt) {
  Server first(small_config(), says_hello());
  ASSERT_TRUE(first.start().has_value());
  const std::uint16_t port = first.port();
  std::vector<io::Fd> duplicates = first.duplicate_listeners();
  ASSERT_EQ(duplicates.size(), 1U);
  ServerConfig more_loops = small_config();
  more_loops.loops = first.config().loops + 2;
  Server second(more_loops, says_hello());
  ASSERT_TRUE(second.start(given_one(std::move(duplicates[0]), false)).has_value());
  first.share_listener(0, true);
  EXPECT_TRUE(first.drain(std::chrono::seconds(10)));
  Client waiting(port);  // nobody accepts now
  ASSERT_TRUE(waiting.connected());
  ASSERT_TRUE(waiting.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  first.stop();
  second.begin_accepting();
  EXPECT_EQ(waiting.read().status, 200);
  EXPECT_TRUE(first.duplicate_listeners().empty()) << "nothing to give after the end";
}

TEST(Drain, WithAGraceAnIdleConnectionGetsItsNextRequestServedAndIsToldToClose) {
  testkit::RunningServer server(small_config(), says_hello());
  Client used(server.port());
  EXPECT_EQ(used.get("/").status, 200);
  Client unused(server.port());
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.accepted == 2; }));
  const DrainOptions graceful{.at_most = {}, .idle_grace = std::chrono::hours(1)};
  EXPECT_FALSE(server->drain(graceful));
  for (Client* client : {&used, &unused}) {
    const Answer answer = client->get("/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.has("connection: close"));
    EXPECT_TRUE(client->at_end());
  }
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
}

TEST(Drain, AfterItsGraceAnIdleConnectionIsClosed) {
  testkit::RunningServer server(small_config(), says_hello());
  Client idle(server.port());
  EXPECT_EQ(idle.get("/").status, 200);
  EXPECT_TRUE(server->drain(
      {.at_most = std::chrono::seconds(10), .idle_grace = std::chrono::milliseconds(20)}));
  EXPECT_TRUE(idle.at_end());
}

TEST(Drain, ARequestThatHasArrivedIsServedBeforeTheConnectionIsClosed) {
  for (int i = 0; i < 10; ++i) {
    testkit::RunningServer server(small_config(), says_hello());
    Client client(server.port());
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
    EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
    EXPECT_EQ(client.read().status, 200) << "it was complete before the drain";
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
