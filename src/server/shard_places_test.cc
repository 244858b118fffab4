// When stream places are short, those who wait for clients that do not read or send give theirs up.
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using std::chrono::milliseconds;
using testkit::Client;
using testkit::every_loop;
using testkit::H2Client;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
namespace wire = http::h2::wire;

constexpr unsigned kWindowSetting = 4;
constexpr std::uint32_t kCalmDown = 11;

ServerConfig eight_places() {
  ServerConfig config = small_config();
  config.streams_max = 8;
  config.reserved_streams = 0;
  config.tick = std::chrono::hours(1);  // only requests that find no place make room
  config.stall_grace = milliseconds(40);
  return config;
}

/// "/": twelve bytes; "/never": no answer.
RunningServer::Make twelve_bytes() {
  return every_loop([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      stream.user_data = request.meta.path == "/never" ? &stream : nullptr;
    };
    handler.complete = [](ServerStream& stream) {
      if (stream.user_data == nullptr) reply(stream, 200, "twelve bytes", BodyLife::kStream);
    };
  });
}

bool places_used(const RunningServer& server, std::uint64_t count) {
  return server.eventually([count](const ServerStats& s) { return s.streams.used == count; });
}

/// Asks until it is served: the clients before it have a grace.
bool served_in_the_end(std::uint16_t port) {
  Client client(port);
  for (int i = 0; i < 2000; ++i) {
    if (client.get("/").status == 200) return true;
    io::ThreadParker().park_until(io::monotonic_now() + milliseconds(1));
  }
  return false;
}

TEST(StreamPlacesInUse, ClosedWindowsLoseTheirPlacesWhenOthersNeedThem) {
  for (const std::uint32_t window : {0U, 1U}) {
    RunningServer server(eight_places(), twelve_bytes());
    H2Client greedy(server.port(), {.settings = {{kWindowSetting, window}}, .open_windows = false});
    std::vector<std::uint32_t> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(greedy.get("/"));
    ASSERT_TRUE(greedy.in_step());
    ASSERT_TRUE(places_used(server, 8)) << window;
    EXPECT_TRUE(served_in_the_end(server.port())) << window;
    EXPECT_GE(server.stats().blocked_ended, 1U);
    EXPECT_LT(server.stats().blocked_ended, 8U) << "no more than are needed";
    EXPECT_EQ(greedy.finish(ids.front()).reset, kCalmDown) << "the longest blocked one";
    EXPECT_TRUE(greedy.in_step()) << "its connection stays";
  }
}

TEST(StreamPlacesInUse, ASlowHandlerIsNotItsClientsFault) {
  RunningServer server(eight_places(), twelve_bytes());
  H2Client patient(server.port());
  for (int i = 0; i < 8; ++i) patient.get("/never");
  ASSERT_TRUE(patient.in_step());
  ASSERT_TRUE(places_used(server, 8));
  Client other(server.port());
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(other.get("/").status, 503);
    io::ThreadParker().park_until(io::monotonic_now() + milliseconds(1));
  }
  EXPECT_EQ(server.stats().blocked_ended, 0U);
  EXPECT_EQ(server.stats().streams.used, 8U);
}

TEST(StreamPlacesInUse, BodiesThatDoNotComeLoseTheirPlacesToo) {
  RunningServer server(eight_places(), twelve_bytes());
  H2Client streams(server.port());
  for (int i = 0; i < 4; ++i) streams.post("/");
  ASSERT_TRUE(streams.in_step());
  std::vector<std::unique_ptr<Client>> plain;
  for (int i = 0; i < 4; ++i) {
    plain.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(plain.back()->send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n"));
  }
  ASSERT_TRUE(places_used(server, 8));
  EXPECT_TRUE(served_in_the_end(server.port()));
  EXPECT_GE(server.stats().blocked_ended, 1U);
}

TEST(StreamPlacesInUse, AClientThatDoesNotReadItsConnectionLosesIt) {
  ServerConfig config = eight_places();
  config.streams_max = 1;
  config.socket_send_buffer_size = 4096;
  const std::string large(4'000'000, 'x');
  RunningServer server(
      config, every_loop([&](ScriptedHandler& handler) {
        handler.complete = [&](ServerStream& stream) {
          stream.make_state<std::size_t>() = 0;
          EXPECT_EQ(
              stream.send_headers({.status = 200, .fields = {}, .content_length = large.size()}),
              SendResult::kSent);
          stream.state<std::size_t>() += stream.send_data(large, false);
        };
      }));
  Client deaf(server.port(), 4096);
  ASSERT_TRUE(deaf.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  ASSERT_TRUE(places_used(server, 1));
  Client other(server.port());
  bool begun = false;
  for (int i = 0; i < 2000 && !begun; ++i) {
    ASSERT_TRUE(other.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
    begun = other.take(12) == "HTTP/1.1 200";
    if (!begun) other = Client(server.port());
    io::ThreadParker().park_until(io::monotonic_now() + milliseconds(1));
  }
  EXPECT_TRUE(begun);
  EXPECT_EQ(server.stats().blocked_ended, 1U);
}

TEST(StreamPlacesInUse, AtATickSomeAreFreedBeforeTheyAreNeeded) {
  ServerConfig config = eight_places();
  config.tick = milliseconds(5);
  RunningServer server(config, twelve_bytes());
  H2Client greedy(server.port(), {.settings = {{kWindowSetting, 0}}, .open_windows = false});
  for (int i = 0; i < 8; ++i) greedy.get("/");
  ASSERT_TRUE(greedy.in_step());
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.blocked_ended >= 1; }));
  EXPECT_TRUE(places_used(server, 7));
}

TEST(StreamPlacesInUse, PlacesOfAnotherLoopAreFreedToo) {
  ServerConfig config = eight_places();
  config.loops = 2;
  RunningServer server(config, twelve_bytes());
  H2Client greedy(server.port(), {.settings = {{kWindowSetting, 0}}, .open_windows = false});
  for (int i = 0; i < 8; ++i) greedy.get("/");
  ASSERT_TRUE(greedy.in_step());
  Client other(server.port());  // on the other loop, which has fewer connections
  bool served = false;
  for (int i = 0; i < 2000 && !served; ++i) {
    served = other.get("/").status == 200;
    io::ThreadParker().park_until(io::monotonic_now() + milliseconds(1));
  }
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace weir::inline v0::inline server
