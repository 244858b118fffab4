#include "memory/write_buffer_queue.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "memory/write_slab_testing.h"
#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::EarlyClient;
using testkit::every_loop;
using testkit::H2Client;
using testkit::hoarded_config;
using testkit::Hoarders;
using testkit::kRest;
using testkit::pattern;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::send_many;

/// "/whole/N": N bytes, all or none. Otherwise as many bytes as the path says, as there is room.
void send_whole_or_many(ScriptedHandler& h) {
  send_many(h);
  const auto headers = h.headers;
  const auto writable = h.writable;
  h.headers = [headers](ServerStream& s, const ServerRequest& r) {
    constexpr std::string_view kWhole = "/whole/";
    s.user_data = nullptr;
    if (!r.meta.path.starts_with(kWhole)) return headers(s, r);
    std::size_t size = 0;
    const std::string_view digits = r.meta.path.substr(kWhole.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
    s.user_data = new std::string(pattern(size));
  };
  h.writable = [writable](ServerStream& s) {
    if (s.user_data == nullptr) return writable(s);
    const SendResult sent = reply(s, 200, *static_cast<std::string*>(s.user_data));
    EXPECT_TRUE(sent == SendResult::kSent || sent == SendResult::kBlocked);
  };
  h.complete = [&h](ServerStream& s) { h.writable(s); };
  const auto forget = [](ServerStream& s) { delete static_cast<std::string*>(s.user_data); };
  h.finished = forget;
  h.aborted = [forget](ServerStream& s, CloseReason) { forget(s); };
}

/// Without a tick: blocked connections are resumed only by released buffers.
ServerConfig tickless_config() {
  ServerConfig config = hoarded_config();
  config.tick = std::chrono::hours(1);
  return config;
}

/// That many requests have begun, and a connection is blocked on the write pool.
bool waits_after(const RunningServer& server, std::uint64_t requests) {
  return server.eventually([&](const ServerStats& s) {
    return s.requests == requests && s.pending_write_queue_len > 0;
  });
}

TEST(WriteBufferQueue, WholeResponseGetsAllItsBuffersWithoutATick) {
  RunningServer server(tickless_config(), every_loop(send_whole_or_many));
  EarlyClient waiting(server);
  Hoarders hoarders(server, 4);
  ASSERT_TRUE(waiting.send("whole/60000" + std::string(kRest)));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.pending_write_queue_len == 2;
  })) << "the hoarder that got none, and this one";
  hoarders.clients.clear();
  EXPECT_TRUE(waiting.read().body == pattern(60'000));
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.pending_write_queue_len == 0 && s.write_buffers.used == 0;
  }));
}

TEST(WriteBufferQueue, WhatWasGatheredForOneWhoLeftGoesToTheNext) {
  RunningServer server(tickless_config(), every_loop(send_whole_or_many));
  EarlyClient first(server);
  EarlyClient second(server);
  Hoarders hoarders(server, 4);
  ASSERT_TRUE(first.send("whole/60000" + std::string(kRest)));
  ASSERT_TRUE(waits_after(server, 5));
  ASSERT_TRUE(second.send("whole/50000" + std::string(kRest)));
  ASSERT_TRUE(waits_after(server, 6));
  hoarders.clients.pop_back();  // its buffers are not enough for the first
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 5; }));
  first.close();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 4; }));
  hoarders.clients.clear();
  EXPECT_TRUE(second.read().body == pattern(50'000));
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.pending_write_queue_len == 0 && s.write_buffers.used == 0;
  }));
}

/// Endless downloads, read as fast as they arrive.
class Downloads {
 public:
  Downloads(const RunningServer& server, int count) {
    const std::uint64_t before = server.stats().accepted;
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<Client>(server.port(), 16 * 1024));
    }
    EXPECT_TRUE(server.eventually([&](const ServerStats& s) {
      return s.accepted == before + static_cast<std::uint64_t>(count);
    }));
    for (auto& client : clients_) {
      EXPECT_TRUE(client->send("GET /100000000000" + std::string(kRest)));
    }
    reader_ = std::thread([this] { read(); });
  }
  ~Downloads() {
    stop_ = true;
    reader_.join();
  }
  [[nodiscard]] bool alive() const { return alive_; }

 private:
  void read() {
    std::vector<char> waste(64 * 1024);
    while (!stop_) {
      for (auto& client : clients_) {
        const ssize_t got = ::recv(client->fd(), waste.data(), waste.size(), MSG_DONTWAIT);
        if (got == 0) alive_ = false;
      }
      std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<Client>> clients_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> alive_{true};
  std::thread reader_;
};

/// Six downloads on four buffers: there is always one that is blocked on a single buffer.
void expect_whole_responses_between_downloads(std::uint32_t loops) {
  constexpr std::size_t kAskers = 4;
  constexpr int kRounds = 10;
  ServerConfig config = tickless_config();
  config.loops = loops;
  RunningServer server(config, every_loop(send_whole_or_many));
  std::vector<std::unique_ptr<EarlyClient>> askers;
  for (std::size_t i = 0; i < kAskers; ++i) {
    askers.push_back(std::make_unique<EarlyClient>(server));
  }
  const Downloads downloads(server, 6);
  std::atomic<int> whole{0};
  std::vector<std::thread> threads;
  for (auto& asker : askers) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        if (asker->ask("whole/60000" + std::string(kRest)).body == pattern(60'000)) ++whole;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole.load(), static_cast<int>(kAskers) * kRounds);
  EXPECT_TRUE(downloads.alive()) << "nobody was dropped for it";
  EXPECT_GT(server.stats().write_slab_exhaustion_count, 0U);
  EXPECT_LE(server.stats().write_buffers.peak, config.tcp_write_buffer_pool_size);
}

TEST(WriteBufferQueue, StreamsDoNotStarveWholeResponses) {
  expect_whole_responses_between_downloads(1);
}

TEST(WriteBufferQueue, LoopsTakeTurnsInGathering) {
  expect_whole_responses_between_downloads(3);
}

TEST(WriteBufferQueue, HttpTwoResponseIsKeptInTheBuffersItWaitedFor) {
  RunningServer server(tickless_config(), every_loop(send_whole_or_many));
  constexpr unsigned kInitialWindow = 4;
  H2Client client(server.port(), {.settings = {{kInitialWindow, 1000}}});
  client.post("/0");  // without END_STREAM: the connection is not idle
  ASSERT_TRUE(client.in_step());
  Hoarders hoarders(server, 4);
  const std::uint32_t id = client.get("/whole/60000");
  ASSERT_TRUE(waits_after(server, 6));
  hoarders.clients.clear();
  EXPECT_TRUE(client.finish(id).body == pattern(60'000)) << "by windows of a thousand bytes";
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.write_buffers.used == 0; }));
}

TEST(WriteBufferQueue, ResponseThatThePoolCanNeverHoldIsInvalidNotStuck) {
  ServerConfig config = hoarded_config();
  config.write_buffers_per_connection = 8;  // there are only four, one of them reserved
  config.reserved_write_buffers = 1;
  EXPECT_EQ(config.write_quota(), 3U);
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, pattern(100'000)), SendResult::kInvalid);
                           EXPECT_EQ(reply(s, 200, pattern(90'000)), SendResult::kSent);
                         };
                       }));
  EXPECT_TRUE(Client(server.port()).get("/").body == pattern(90'000));
}

}  // namespace
}  // namespace weir::inline v0::inline server
