// The server carries out evaluate_pressure(): what it accepts, queues, drops, and how it recovers.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::every_loop;
using testkit::Gate;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";
constexpr std::size_t kBegun = 5;
constexpr std::string_view kRest = kGet.substr(kBegun);

/// Handlers that take an arena (pending if none is free), and answer when the gate opens.
RunningServer::Make gated_arenas(Gate& gate) {
  return every_loop([&gate](ScriptedHandler& h) {
    h.headers = [&gate](ServerStream& s, const ServerRequest&) {
      const ArenaAnswer answer = s.acquire_arena(ArenaWait::kQueue);
      if (answer.status == ArenaStatus::kRefused) s.send_503();
      if (answer.status == ArenaStatus::kGranted) gate.hold(s);
    };
    h.arena = [&gate](ServerStream& s, Arena* arena) {
      if (arena == nullptr) return s.send_503();
      gate.hold(s);
    };
    h.aborted = [&gate](ServerStream& s, CloseReason) { gate.forget(s); };
  });
}

struct Crowd {
  Crowd(const RunningServer& server, int count) {
    for (int i = 0; i < count; ++i) add(server);
  }
  Client& add(const RunningServer& server) {
    clients.push_back(std::make_unique<Client>(server.port()));
    return *clients.back();
  }
  /// All send part of a head: they are neither idle, which pressure would close, nor served.
  void begin_heads(const RunningServer& server) {
    const std::uint64_t before = server.stats().read_regions.used;
    send_all(kGet.substr(0, kBegun));
    ASSERT_TRUE(server.eventually(
        [&](const ServerStats& s) { return s.read_regions.used == before + clients.size(); }));
  }
  void send_all(std::string_view bytes) {
    for (auto& client : clients) ASSERT_TRUE(client->send(bytes));
  }
  std::vector<std::unique_ptr<Client>> clients;
};

/// New connections that were accepted or refused so far.
std::uint64_t decided(const ServerStats& s) {
  return s.accepted + s.refused_by(RefuseReason::kPressure) +
         s.refused_by(RefuseReason::kPressureShare) + s.refused_by(RefuseReason::kConnections);
}

TEST(Pressure, NormalOperation) {
  Gate gate;
  RunningServer server(small_config(), gate.holding());
  Crowd crowd(server, 20);
  crowd.send_all(kGet);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.requests == 20; }));
  EXPECT_EQ(server.stats().pressure, PressureLevel::kNormal);
  for (int i = 0; i < 20; ++i) gate.open_one();
  for (auto& client : crowd.clients) EXPECT_EQ(client->read().status, 200);
  for (const std::uint64_t refused : server.stats().refused) EXPECT_EQ(refused, 0U);
}

TEST(Pressure, ConnectionRejectionUnderPressure) {
  Gate gate;
  ServerConfig config = small_config();
  config.max_connections = 20;
  RunningServer server(config, gate.holding());
  Crowd busy(server, 0);
  // From 0.595 on, some are shed at random; from 17 of 20 (0.85) on, all.
  while (server.stats().connections.used < 17) {
    Client& client = busy.add(server);
    ASSERT_TRUE(client.send(kGet));
    ASSERT_TRUE(server.eventually([&](const ServerStats& s) {
      return s.requests + s.refused_by(RefuseReason::kPressureShare) == busy.clients.size();
    }));
  }
  for (int i = 0; i < 10; ++i) {
    Client refused(server.port());
    const Answer answer = refused.ask(kGet);
    EXPECT_EQ(answer.status, 503);
    EXPECT_TRUE(answer.has("connection: close"));
    EXPECT_TRUE(refused.at_end());
    EXPECT_FALSE(refused.was_reset());
  }
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kPressure), 10U);
  EXPECT_EQ(server.stats().connections.used, 17U) << "those inside are not disturbed";
  EXPECT_GE(server.stats().pressure, PressureLevel::kHigh);
}

TEST(Pressure, Stream503UnderArenaPressure) {
  Gate gate;
  ServerConfig config = small_config();
  config.arena_pool_size = 4;
  RunningServer server(config, gated_arenas(gate));
  // Connected and in the middle of a head, because at CRITICAL new connections are refused and idle
  // ones are closed.
  Crowd extra(server, 1);
  extra.begin_heads(server);
  Crowd holders(server, 4);
  holders.send_all(kGet);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 4; }));
  const Answer answer = extra.clients[0]->ask(kRest);
  EXPECT_EQ(answer.status, 503);
  EXPECT_FALSE(answer.has("connection: close")) << "only the stream is refused";
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kArena), 1U);
  for (int i = 0; i < 4; ++i) gate.open_one();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.arenas.used == 0 && s.pressure == PressureLevel::kNormal;
  }));
  Client fresh(server.port());
  ASSERT_TRUE(fresh.send(kGet));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
  gate.open_one();
  EXPECT_EQ(fresh.read().status, 200) << "once there is memory";
}

TEST(Pressure, PendingQueueDrainsOnArenaFree) {
  Gate gate;
  ServerConfig config = small_config();
  config.arena_pool_size = 10;
  RunningServer server(config, gated_arenas(gate));
  Crowd queued(server, 3);
  queued.begin_heads(server);
  Crowd holders(server, 9);  // 0.9: between high and critical
  holders.send_all(kGet);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 9; }));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queued.clients[static_cast<std::size_t>(i)]->send(kRest));
    ASSERT_TRUE(server.eventually([&](const ServerStats& s) {
      return s.pending_streams.used == static_cast<std::uint64_t>(i) + 1;
    }));
  }
  // Each freed pair brings usage below the watermark, so the oldest pending stream gets an arena.
  for (int i = 0; i < 9; ++i) gate.open_one();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.pending_streams.used == 0; }));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 3; }));
  for (int i = 0; i < 3; ++i) {
    gate.open_one();
    EXPECT_EQ(queued.clients[static_cast<std::size_t>(i)]->read().status, 200) << "oldest first";
  }
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kArena), 0U);
}

TEST(Pressure, PendingStreamIsAnswered503WhenItWaitedTooLong) {
  Gate gate;
  ServerConfig config = small_config();
  config.arena_pool_size = 10;
  config.pending_stream_timeout = std::chrono::milliseconds(30);
  RunningServer server(config, gated_arenas(gate));
  Crowd waiting(server, 1);
  waiting.begin_heads(server);
  Crowd holders(server, 9);
  holders.send_all(kGet);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 9; }));
  EXPECT_EQ(waiting.clients[0]->ask(kRest).status, 503);
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kArenaTimeout), 1U);
  EXPECT_EQ(server.stats().pending_streams.used, 0U);
}

TEST(Pressure, HandlerThatDoesNotAnswerForTheQueueRefusesByDefault) {
  struct Waiting final : Handler {
    void on_headers(ServerStream& s, const ServerRequest& r) override {
      holds = r.meta.path == "/hold";
      static_cast<void>(s.acquire_arena(ArenaWait::kQueue));
    }
    void on_complete(ServerStream& s) override {
      if (!holds) static_cast<void>(reply(s, 200, "granted"));
    }
    bool holds = false;
  };
  ServerConfig config = small_config();
  config.arena_pool_size = 10;
  config.pending_stream_timeout = std::chrono::milliseconds(30);
  RunningServer server(config, [](const HandlerPlace&) { return std::make_unique<Waiting>(); });
  Crowd waiting(server, 1);
  waiting.begin_heads(server);
  Crowd holders(server, 9);
  holders.send_all("GET /hold HTTP/1.1\r\nhost: t\r\n\r\n");
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 9; }));
  EXPECT_EQ(waiting.clients[0]->ask(kRest).status, 503);
  holders.clients.clear();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 0; }));
  EXPECT_EQ(Client(server.port()).ask(kGet).body, "granted");
}

TEST(Pressure, RefusedClientsAreNotKept) {
  Gate gate;
  ServerConfig config = small_config();
  config.connections_per_source_max = 1;
  RunningServer server(config, gate.holding());
  Client inside(server.port());
  ASSERT_TRUE(inside.send(kGet));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
  // Each gets its answer, and none may keep its connection by sending more.
  Crowd refused(server, 80);
  for (auto& client : refused.clients) EXPECT_EQ(client->read().status, 503);
  io::ThreadParker parker;
  for (auto& client : refused.clients) {
    const TimePoint limit = io::monotonic_now() + std::chrono::seconds(10);
    bool closed = false;
    while (!closed && io::monotonic_now() < limit) {
      closed = !client->send("x");
      parker.park_until(io::monotonic_now() + std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kSource), 80U);
}

TEST(Pressure, ClientThatLeavesTheQueueLeavesNoTrace) {
  Gate gate;
  ServerConfig config = small_config();
  config.arena_pool_size = 10;
  RunningServer server(config, gated_arenas(gate));
  Crowd waiting(server, 1);
  waiting.begin_heads(server);
  Crowd holders(server, 9);
  holders.send_all(kGet);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 9; }));
  ASSERT_TRUE(waiting.clients[0]->send(kRest));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.pending_streams.used == 1; }));
  waiting.clients[0]->close();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.pending_streams.used == 0; }));
  for (int i = 0; i < 9; ++i) gate.open_one();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 0; }));
}

TEST(Pressure, BackpressureTimeoutDropsConnection) {
  ServerConfig config = small_config();
  config.backpressure_timeout = std::chrono::milliseconds(50);
  config.write_timeout = std::chrono::hours(1);
  config.socket_send_buffer_size = 16 * 1024;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.writable = [](ServerStream& s) {
                           static const std::string block(64 * 1024, 'x');
                           while (s.send_data(block) == block.size()) {
                           }
                         };
                         h.complete = [&h](ServerStream& s) {
                           ASSERT_EQ(
                               s.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                               SendResult::kSent);
                           h.writable(s);
                         };
                       }));
  Client deaf(server.port(), 4096);
  ASSERT_TRUE(deaf.send(kGet));
  ASSERT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kBackpressure) == 1; }));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  EXPECT_EQ(server.stats().write_buffers.used, 0U) << "what it held is free again";
  EXPECT_EQ(server.stats().backpressure.used, 0U);
  EXPECT_EQ(server.stats().backpressure.peak, 1U);
}

TEST(Pressure, AtCriticalThoseThatMadeNoProgressAreClosedThoughTheyAreNotIdle) {
  Gate gate;
  ServerConfig config = small_config();
  config.arena_pool_size = 1;
  config.stall_grace = std::chrono::milliseconds(20);
  RunningServer server(config, every_loop([&gate](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest& r) {
                           if (r.meta.path == "/critical") s.set_critical(true);
                           if (r.meta.path != "/arena") return;
                           static_cast<void>(s.acquire_arena(ArenaWait::kNo));
                         };
                         h.complete = [&gate](ServerStream& s) { gate.hold(s); };
                         h.aborted = [&gate](ServerStream& s, CloseReason) { gate.forget(s); };
                       }));
  constexpr std::string_view kHalfABody =
      "POST /upload HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nhalf";
  Client upload(server.port());
  ASSERT_TRUE(upload.send(kHalfABody));
  Client critical(server.port());
  ASSERT_TRUE(critical.send("POST /critical HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nhalf"));
  testkit::H2Client http2(server.port());
  const std::uint32_t stream = http2.post("/upload");
  Client served(server.port());
  ASSERT_TRUE(served.send(kGet));
  ASSERT_TRUE(
      server.eventually([&](const ServerStats& s) { return gate.size() == 1 && s.requests == 4; }));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdlePressure), 0U);
  Client filler(server.port());
  ASSERT_TRUE(filler.send("GET /arena HTTP/1.1\r\nhost: t\r\n\r\n"));  // no arena is free
  EXPECT_TRUE(upload.at_end());
  EXPECT_EQ(http2.finish(stream).status, 0);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 3; }));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdlePressure), 2U);
  EXPECT_EQ(server.stats().pressure, PressureLevel::kCritical);
  // A connection whose handler works on a request stays, and so does a critical one.
  EXPECT_EQ(gate.size(), 2U);
  gate.open_one();
  EXPECT_EQ(served.read().status, 200);
  ASSERT_TRUE(critical.send("more!"));
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 2; }));
  gate.open_one();
  gate.open_one();
  EXPECT_EQ(critical.read().status, 200);
}

TEST(Pressure, RecoveryAfterPressure) {
  Gate gate;
  ServerConfig config = small_config();
  config.max_connections = 20;
  RunningServer server(config, gate.holding());
  std::uint64_t arrivals = 0;
  for (int round = 0; round < 3; ++round) {
    Crowd crowd(server, 0);
    const std::uint64_t before = server.stats().refused_by(RefuseReason::kPressure);
    while (server.stats().refused_by(RefuseReason::kPressure) == before) {
      ++arrivals;
      ASSERT_TRUE(crowd.add(server).send(kGet));
      ASSERT_TRUE(server.eventually([&](const ServerStats& s) { return arrivals == decided(s); }));
    }
    ASSERT_GE(server.stats().pressure, PressureLevel::kHigh);
    crowd.clients.clear();
    ASSERT_TRUE(server.eventually([](const ServerStats& s) {
      return s.connections.used == 0 && s.pressure == PressureLevel::kNormal;
    })) << "the level falls when the load does";
    ++arrivals;
    Client fresh(server.port());
    ASSERT_TRUE(fresh.send(kGet));
    ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
    gate.open_one();
    ASSERT_EQ(fresh.read().status, 200);
  }
}

TEST(Pressure, MetricsUpdatedCorrectly) {
  Gate gate;
  ServerConfig config = small_config();
  config.max_connections = 20;
  config.arena_pool_size = 4;
  RunningServer server(config, gated_arenas(gate));
  Crowd crowd(server, 6);
  crowd.begin_heads(server);
  crowd.send_all(kRest);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.requests == 6; }));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.responses_5xx == 2; }));
  // The refused ones are idle and may be closed: counted at once, the place freed a turn later.
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.connections.used + s.closed_by(CloseReason::kIdlePressure) == 6;
  }));
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.connections.capacity, 20U);
  EXPECT_EQ(stats.arenas.used, 4U);
  EXPECT_EQ(stats.arenas.peak, 4U);
  EXPECT_EQ(stats.arenas.capacity, 4U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kArena), 2U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kOverload503), 2U);
  EXPECT_EQ(stats.pressure, PressureLevel::kCritical) << "all arenas are out";
  EXPECT_EQ(stats.read_regions.capacity, 20U);
  EXPECT_EQ(stats.write_buffers.capacity, config.tcp_write_buffer_pool_size);
  for (int i = 0; i < 4; ++i) gate.open_one();
  // The level may fall while the last stream still holds its arena.
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.pressure == PressureLevel::kNormal && s.responses_2xx == 4 && s.arenas.used == 0;
  }));
  EXPECT_EQ(server.stats().critical_shed, 0U);
}

TEST(Pressure, IdleConnectionsMakeRoomOldestFirstAndNobodyIsRefused) {
  ServerConfig config = small_config();
  config.max_connections = 20;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  // Far more clients than places, all idle after one request: connection usage refuses none.
  Crowd crowd(server, 0);
  for (int i = 0; i < 100; ++i) {
    Client& client = crowd.add(server);
    ASSERT_EQ(client.ask(kGet).status, 200) << "client " << i;
  }
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.refused_by(RefuseReason::kPressure), 0U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kConnections), 0U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kPressureShare), 0U);
  EXPECT_GE(stats.closed_by(CloseReason::kIdlePressure), 80U);
  EXPECT_TRUE(crowd.clients.front()->at_end()) << "the oldest went";
  EXPECT_EQ(crowd.clients.back()->ask(kGet).status, 200) << "the newest stayed";
}

TEST(Pressure, HalfAHeadMakesRoomWhenItIsLate) {
  const auto answer = every_loop([](ScriptedHandler& h) {
    h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent); };
  });
  ServerConfig config = small_config();
  config.max_connections = 20;
  config.stall_grace = std::chrono::milliseconds(20);
  RunningServer server(config, answer);
  Crowd crowd(server, 0);
  const auto full = [](const ServerStats& s) { return s.pressure >= PressureLevel::kElevated; };
  while (!full(server.stats())) ASSERT_TRUE(crowd.add(server).send(kGet.substr(0, kBegun)));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kIdlePressure) > 0 && s.pressure == PressureLevel::kNormal;
  })) << "as many go as must";
  // A slow head is read to its end if there is room.
  Client slow(server.port());
  ASSERT_TRUE(slow.send(kGet.substr(0, kBegun)));
  ASSERT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.idle_connections == s.connections.used; }));
  EXPECT_EQ(slow.ask(kRest).status, 200);
  EXPECT_EQ(server.stats().closed_by(CloseReason::kHeaderTimeout), 0U);
}

TEST(Pressure, BusyClientIsNotTakenForAnIdleOne) {
  ServerConfig config = small_config();
  config.max_connections = 20;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  Client regular(server.port());  // the oldest connection, but in regular use
  Crowd crowd(server, 0);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(regular.ask(kGet).status, 200) << "round " << i;
    ASSERT_EQ(crowd.add(server).ask(kGet).status, 200);
  }
}

TEST(Pressure, ElevatedSparesThoseBetweenTwoRequests) {
  ServerConfig config = small_config();
  config.max_connections = 20;
  config.tick = std::chrono::milliseconds(1);
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  Crowd crowd(server, 13);  // 65 %, all of them in use
  for (int round = 0; round < 20; ++round) {
    for (auto& client : crowd.clients) ASSERT_EQ(client->ask(kGet).status, 200);
  }
  EXPECT_EQ(server.stats().pressure, PressureLevel::kElevated);
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdlePressure), 0U);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.pressure == PressureLevel::kNormal && s.connections.used > 0;
  })) << "once they are quiet, as many go as must";
  EXPECT_GT(server.stats().closed_by(CloseReason::kIdlePressure), 0U);
}

TEST(Pressure, OneSourceCannotTakeEveryPlace) {
  Gate gate;
  ServerConfig config = small_config();
  config.max_connections = 20;
  config.connections_per_source_max = 3;
  RunningServer server(config, gate.holding());
  Crowd crowd(server, 3);
  crowd.send_all(kGet);
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 3; }));
  for (std::uint64_t i = 1; i <= 5; ++i) {
    Client fourth(server.port());
    EXPECT_EQ(fourth.read().status, 503) << "told, and closed";
    EXPECT_EQ(server.stats().refused_by(RefuseReason::kSource), i);
  }
  EXPECT_EQ(server.stats().connections.used, 3U);
  crowd.clients.clear();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  Crowd again(server, 3);
  again.send_all(kGet);
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 3; }));
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kSource), 5U) << "places came back";
}

TEST(Pressure, CriticalPeersAreNotCountedToTheirSource) {
  Gate gate;
  ServerConfig config = small_config();
  config.connections_per_source_max = 1;
  Server server(config, gate.holding());
  server.set_critical_peers([](const io::Address&) { return true; });
  ASSERT_TRUE(server.start().has_value());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(clients.back()->send(kGet));
  }
  EXPECT_TRUE(testkit::eventually(server, [&](const ServerStats&) { return gate.size() == 4; }));
  EXPECT_EQ(server.stats().critical_shed, 0U);
}

TEST(Pressure, CriticalPeersUseTheReservedPlaces) {
  Gate gate;
  ServerConfig config = small_config();
  config.max_connections = 8;
  config.reserved_connections = 2;
  config.high_watermark = 0.99;
  config.critical_watermark = 1.0;
  for (const bool critical : {false, true}) {
    Server server(config, gate.holding());
    if (critical) server.set_critical_peers([](const io::Address&) { return true; });
    ASSERT_TRUE(server.start().has_value());
    std::vector<std::unique_ptr<Client>> clients;
    int refused = 0;
    for (int i = 0; i < 200 && server.stats().connections.used < 8 && refused == 0; ++i) {
      clients.push_back(std::make_unique<Client>(server.port()));
      ASSERT_TRUE(clients.back()->send(kGet));
      ASSERT_TRUE(testkit::eventually(server, [&](const ServerStats& s) {
        return s.requests + s.refused_by(RefuseReason::kConnections) +
                   s.refused_by(RefuseReason::kPressureShare) ==
               clients.size();
      }));
      refused = static_cast<int>(server.stats().refused_by(RefuseReason::kConnections));
    }
    EXPECT_EQ(server.stats().connections.used, critical ? 8U : 6U);
    EXPECT_EQ(server.stats().critical_shed, 0U);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
