// Load, bursts, slow clients, large bodies, churn: pools return to zero and memory stays below the
// ceiling. A short run; with WEIR_STRESS_FULL a long one.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weir/base/rng.h"
#include "weir/experimental/server/body_buffer.h"
#include "weir/experimental/server/memory_budget.h"

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testkit::Client;
using testkit::RunningServer;
using testkit::small_config;

#ifdef WEIR_STRESS_FULL
constexpr Duration kSustained = seconds(60);
constexpr Duration kOthers = seconds(30);
#else
constexpr Duration kSustained = milliseconds(700);
constexpr Duration kOthers = milliseconds(400);
#endif

/// "/N": N bytes. POST: collects the body in an arena (or 503) and answers with its size.
class Worker final : public Handler {
 public:
  struct State {
    BodyBuffer body;
    std::uint64_t left = 0;
    bool post = false;
    bool refused = false;
  };
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    State& state = stream.make_state<State>();
    state.post = request.method == http::Method::kPost;
    if (!state.post) {
      const std::string_view path = request.meta.path;
      std::from_chars(path.data() + 1, path.data() + path.size(), state.left);
      return;
    }
    const ArenaAnswer answer = stream.acquire_arena(ArenaWait::kQueue);
    if (answer.status == ArenaStatus::kRefused) refuse(stream);
    if (answer.status == ArenaStatus::kGranted) state.body = BodyBuffer(*answer.arena);
  }
  void on_arena(ServerStream& stream, Arena* arena) override {
    if (arena == nullptr) return refuse(stream);
    stream.state<State>().body = BodyBuffer(*arena);
  }
  void on_body(ServerStream& stream, const http::BodyChunk& chunk) override {
    State& state = stream.state<State>();
    if (!state.refused && !state.body.append(chunk)) refuse(stream);
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    State& state = stream.state<State>();
    if (state.refused) return;
    if (state.post) {
      char text[24];
      const auto end = std::to_chars(text, text + sizeof text, state.body.size());
      static_cast<void>(testkit::reply(stream, 200, {text, end.ptr}));
      return;
    }
    if (!stream.response_started()) {
      const ResponseHead head{.status = 200, .fields = {}, .content_length = state.left};
      if (stream.send_headers(head, state.left == 0) != SendResult::kSent) return;
    }
    static const std::string block(64 * 1024, 'x');
    while (state.left > 0) {
      const std::size_t size = std::min<std::size_t>(state.left, block.size());
      const std::size_t taken = stream.send_data({block.data(), size}, size == state.left);
      state.left -= taken;
      if (taken < size) return;
    }
  }

 private:
  static void refuse(ServerStream& stream) {
    stream.state<State>().refused = true;
    stream.send_503();
  }
};

struct MemoryStress : testing::Test {
  explicit MemoryStress(const ServerConfig& given = make_config())
      : config(given),
        server(config, [](const HandlerPlace&) { return std::make_unique<Worker>(); }) {}

  static ServerConfig make_config() {
    ServerConfig config = small_config();
    config.loops = 2;
    config.max_connections = 128;
    config.tcp_write_buffer_pool_size = 64;
    config.arena_pool_size = 16;
    config.reserved_connections = 4;
    config.reserved_write_buffers = 4;
    config.reserved_arenas = 1;
    config.socket_send_buffer_size = 64 * 1024;
    config.stall_grace = milliseconds(200);
    config.pending_stream_timeout = milliseconds(200);
    return config;
  }

  /// Runs threads of clients until the time is over; each calls `act(rng)` repeatedly.
  void run(Duration how_long, unsigned threads, const std::function<void(Rng&)>& act) {
    const TimePoint end = io::monotonic_now() + how_long;
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < threads; ++i) {
      crowd.emplace_back([&, i] {
        Rng rng(i + 1);
        while (io::monotonic_now() < end) act(rng);
      });
    }
    for (std::thread& thread : crowd) thread.join();
  }

  static std::string get(std::uint64_t bytes) {
    return "GET /" + std::to_string(bytes) + " HTTP/1.1\r\nhost: t\r\n\r\n";
  }
  static std::string post(std::size_t bytes) {
    return "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'b');
  }

  /// Everything was given back, and a new client is served.
  void expect_recovered() {
    EXPECT_TRUE(server.eventually([](const ServerStats& s) {
      return s.connections.used == 0 && s.write_buffers.used == 0 && s.arenas.used == 0 &&
             s.pending_streams.used == 0 && s.read_regions.used == 0 && s.backpressure.used == 0 &&
             s.pending_write_queue_len == 0 && s.pressure == PressureLevel::kNormal;
    }));
    EXPECT_EQ(Client(server.port()).ask(get(5)).body, "xxxxx");
    const ServerStats stats = server.stats();
    EXPECT_EQ(stats.critical_shed, 0U);
    EXPECT_LE(stats.connections.peak, config.max_connections);
    EXPECT_LE(stats.write_buffers.peak, config.tcp_write_buffer_pool_size);
    EXPECT_LE(stats.arenas.peak, config.arena_pool_size);
    EXPECT_LE(stats.pending_streams.peak, config.pending_stream_pool_size);
  }

  ServerConfig config;
  RunningServer server;
};

constexpr std::uint64_t kMebibyte = 1024 * 1024;

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(MemoryStress, SustainedLoadNoLeaks) {
  std::atomic<std::uint64_t> served{0};
  const auto act = [&](Rng& rng) {
    Client client(server.port());
    for (int i = 0; i < 20; ++i) {
      const bool large = rng.chance(0.1);
      const std::string request =
          rng.chance(0.3) ? post(large ? 60'000 : 100) : get(large ? 200'000 : 128);
      if (client.ask(request).status != 200) break;
      ++served;
    }
  };
  run(kSustained / 4, 4, act);
  expect_recovered();
  const std::uint64_t warm = resident_bytes();
  run(kSustained, 4, act);
  expect_recovered();
  EXPECT_GT(served.load(), 100U);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
  EXPECT_LE(resident_bytes(), warm + kMebibyte) << "memory is flat after warm-up";
  EXPECT_LE(resident_bytes(), worst_case_bytes(config) + 4 * kMebibyte) << "with clients and test";
#else
  static_cast<void>(warm);
#endif
}

TEST_F(MemoryStress, BurstLoadRecovery) {
  const TimePoint end = io::monotonic_now() + kOthers;
  Rng rng(9);
  while (io::monotonic_now() < end) {
    // All at once: more connections, more output and more arenas than the pools have.
    std::vector<std::unique_ptr<Client>> burst;
    for (int i = 0; i < 200; ++i) {
      burst.push_back(std::make_unique<Client>(server.port(), 4096));
      static_cast<void>(burst.back()->send(rng.chance(0.5) ? get(1'000'000) : post(1000)));
    }
    burst.clear();
    ASSERT_TRUE(server.eventually([](const ServerStats& s) {
      return s.connections.used == 0 && s.pressure == PressureLevel::kNormal;
    }));
  }
  expect_recovered();
}

/// Two write buffers for each connection, as `weir check` advises: then slow readers alone do not
/// raise the pressure, which would shed some new connections.
struct AdvisedPoolsStress : MemoryStress {
  AdvisedPoolsStress() : MemoryStress(advised_config()) {}
  static ServerConfig advised_config() {
    ServerConfig config = make_config();
    config.tcp_write_buffer_pool_size = 2 * config.max_connections;
    return config;
  }
};

TEST_F(AdvisedPoolsStress, SlowClientsMixedFast) {
  // Half of the places are held by clients that read a little at a time.
  std::vector<std::unique_ptr<Client>> slow;
  for (std::uint32_t i = 0; i < config.max_connections / 2; ++i) {
    slow.push_back(std::make_unique<Client>(server.port(), 4096));
    ASSERT_TRUE(slow.back()->send(get(1'000'000'000)));
  }
  std::atomic<bool> stop{false};
  std::thread sipping([&] {
    Rng rng(7);
    while (!stop.load()) {
      for (auto& client : slow) {
        char sip[4096];
        const auto size = static_cast<std::size_t>(rng.between(1, sizeof sip));
        static_cast<void>(::recv(client->fd(), sip, size, MSG_DONTWAIT));
      }
      io::ThreadParker().park_until(io::monotonic_now() + milliseconds(rng.between(1, 20)));
    }
  });
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> answered{0};
  run(kOthers, 2, [&](Rng&) {
    Client fast(server.port());
    for (int i = 0; i < 10; ++i) {
      ++asked;
      if (fast.ask(get(1000)).status != 200) break;
      ++answered;
    }
  });
  stop = true;
  sipping.join();
  EXPECT_GE(server.stats().write_buffers.used, slow.size() / 2) << "nobody was slow";
  slow.clear();
  EXPECT_GE(answered.load() * 100, asked.load() * 99) << "fast clients are answered meanwhile";
  expect_recovered();
}

TEST_F(MemoryStress, LargeBodyStress) {
  std::atomic<std::uint64_t> whole{0};
  std::atomic<std::uint64_t> refused{0};
  run(kOthers, 4, [&](Rng& rng) {
    // Up to the arena's size it fits; beyond that, 503 in the middle of the body.
    const std::size_t size = rng.chance(0.5) ? 200'000 : 400'000;
    Client client(server.port());
    static_cast<void>(client.send(post(size)));
    const testkit::Answer answer = client.read();
    if (answer.status == 200) {
      EXPECT_EQ(answer.body, std::to_string(size));
      ++whole;
    } else {
      ++refused;
    }
  });
  EXPECT_GT(whole.load(), 0U);
  EXPECT_GT(refused.load(), 0U);
  expect_recovered();
}

TEST_F(MemoryStress, ConnectionChurn) {
  std::atomic<std::uint64_t> opened{0};
  run(kOthers, 4, [&](Rng& rng) {
    Client client(server.port());
    ++opened;
    switch (rng.below(5)) {
      case 0:
        break;  // sends nothing
      case 1:
        static_cast<void>(client.send("GET / HT"));
        break;
      case 2:
        static_cast<void>(client.send(get(500'000)));
        client.reset();
        break;
      case 3:
        static_cast<void>(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 99\r\n\r\nx"));
        break;
      default:
        static_cast<void>(client.ask(get(10)));
        break;
    }
  });
  EXPECT_GT(opened.load(), 50U);
  expect_recovered();
}

}  // namespace
}  // namespace weir::inline v0::inline server
