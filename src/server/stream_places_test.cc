#include "stream_places.h"

#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::Gate;
using testkit::H2Client;
using testkit::RunningServer;
using testkit::small_config;

TEST(StreamPlaces, OrdinaryOnesLeaveTheReserveToCriticalOnes) {
  StreamPlaces places({.count = 5, .reserved = 2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(places.take(io::Access::kOrdinary));
  EXPECT_FALSE(places.take(io::Access::kOrdinary));
  EXPECT_TRUE(places.take(io::Access::kCritical));
  EXPECT_TRUE(places.take(io::Access::kCritical));
  EXPECT_FALSE(places.take(io::Access::kCritical));
  places.give();
  EXPECT_FALSE(places.take(io::Access::kOrdinary)) << "the reserve is filled first";
  EXPECT_EQ(places.stats(), (PoolStats{.used = 4, .peak = 5, .capacity = 5, .exhausted = 3}));
}

TEST(StreamPlaces, ExactlyAsManyAsThereAreUnderAnyInterleaving) {
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint32_t kPlaces = 5;
  StreamPlaces places({.count = kPlaces, .reserved = 0});
  std::atomic<std::uint32_t> inside{0};
  std::atomic<std::uint32_t> taken{0};
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        together.arrive_and_wait();
        const bool got = places.take(io::Access::kOrdinary);
        if (got) taken.fetch_add(1);
        together.arrive_and_wait();
        if (got) {
          EXPECT_LE(inside.fetch_add(1) + 1, kPlaces);
          inside.fetch_sub(1);
          places.give();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), 200 * kPlaces);
  EXPECT_EQ(places.stats().used, 0U);
  EXPECT_EQ(places.stats().peak, kPlaces);
  EXPECT_EQ(places.stats().exhausted, 200 * (kThreads - kPlaces));
}

constexpr std::string_view kAnyGet = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";

TEST(StreamPlaces, RequestsOfBothProtocolsShareThem) {
  Gate gate;
  ServerConfig config = small_config();
  config.streams_max = 4;
  config.reserved_streams = 0;
  RunningServer server(config, gate.holding());
  H2Client multiplexed(server.port());
  for (int i = 0; i < 2; ++i) multiplexed.get("/");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<Client>(server.port()));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(clients[static_cast<std::size_t>(i)]->send(kAnyGet));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 4; }));

  const Answer refused = clients[2]->ask(kAnyGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.has("connection: close")) << "only the request is refused";
  EXPECT_TRUE(refused.has("x-weir-reason: no_place\r\n"));
  ServerStats stats = server.stats();
  EXPECT_EQ(stats.refused_by(RefuseReason::kStreams), 1U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kOverload503), 0U) << "by the server, not by a handler";
  EXPECT_EQ(stats.requests, 4U);
  EXPECT_EQ(stats.critical_shed, 0U);
  EXPECT_EQ(stats.streams, (PoolStats{.used = 4, .peak = 4, .capacity = 4, .exhausted = 1}));

  gate.open_one();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 3; }));
  ASSERT_TRUE(clients[2]->send(kAnyGet));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 4; }));
  for (int i = 0; i < 4; ++i) gate.open_one();
  EXPECT_EQ(clients[2]->read().status, 200);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
}

TEST(StreamPlaces, BodyOfARefusedRequestIsReadOffAndTheNextRequestServed) {
  Gate gate;
  ServerConfig config = small_config();
  config.streams_max = 1;
  config.reserved_streams = 0;
  RunningServer server(config, gate.holding());
  Client first(server.port());
  ASSERT_TRUE(first.send(kAnyGet));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
  Client second(server.port());
  EXPECT_EQ(second
                .ask("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                     "5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n")
                .status,
            503);
  gate.open_one();
  EXPECT_EQ(first.read().status, 200);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
  ASSERT_TRUE(second.send(kAnyGet));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
  gate.open_one();
  EXPECT_EQ(second.read().status, 200);
}

TEST(StreamPlaces, ClientThatLeavesGivesItsPlaceBack) {
  Gate gate;
  ServerConfig config = small_config();
  config.streams_max = 2;
  config.reserved_streams = 1;
  RunningServer server(config, gate.holding());
  for (int i = 0; i < 3; ++i) {
    Client client(server.port());
    ASSERT_TRUE(client.send(kAnyGet));
    ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
    client.close();
    ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
  }
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kStreams), 0U);
  EXPECT_EQ(gate.size(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
