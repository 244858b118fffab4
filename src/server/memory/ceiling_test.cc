// A server in its own process, with every holder as full as clients can make it, including TLS and
// HTTP/2: the memory that the kernel reports, against memory_budget(). A separate program, because
// the TLS library's bound must be set before it allocates anything.
#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir/experimental/io/loop_threads.h"
#include "weir/experimental/io/tls_memory.h"
#include "weir/experimental/server/memory_budget.h"

#include "memory/stack_testing.h"
#include "server/h2/h2_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::every_loop;
using testkit::H2Client;
using testkit::ScriptedHandler;
using testkit::small_config;
using testkit::TlsClient;
using testkit::touched_stack_bytes;

constexpr std::uint32_t kPlain = 20;  // clients of each kind in cleartext
constexpr std::uint32_t kSecure = 40;
constexpr std::uint32_t kSessions = 16;
constexpr std::uint32_t kArenas = 8;

ServerConfig full_config(bool tls) {
  ServerConfig config = small_config();
  config.loops = 2;
  config.max_connections = 160;
  config.tcp_write_buffer_pool_size = 48;
  config.arena_pool_size = kArenas;
  config.arena_size = 512 * 1024;
  config.http2_sessions_max = 24;
  config.streams_max = 200;
  config.body_lease_pool_size = 32;
  config.connections_per_source_max = 160;
  config.high_watermark = config.critical_watermark = 1.0;  // full pools stay full
  config.stall_grace = config.write_timeout = config.body_timeout = std::chrono::hours(1);
  config.header_timeout = config.idle_timeout = std::chrono::hours(1);
  config.socket_send_buffer_size = 16 * 1024;
  config.sweep_interval = std::chrono::hours(1);
  if (tls) {
    const ServerConfig secure = testkit::tls_config();
    config.tls = secure.tls;
    config.handshake_slots = 16;
    config.reserved_handshakes = 0;
  }
  return config;
}

// Before main(), so that no test uses OpenSSL earlier; it bounds both ends.
const bool kBounded = io::install_tls_memory(256U << 20U);

/// A value of this process in /proc, in bytes.
std::uint64_t status_bytes(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

struct Measured {
  std::uint64_t before = 0;  // resident before the server was made: code, libraries, test
  std::uint64_t peak = 0;    // most that was resident
  std::uint64_t tables_before = 0;
  std::uint64_t tables = 0;
  std::uint64_t stack = 0;  // the deepest of the loops
  std::uint64_t tls_peak = 0;
  std::uint64_t arenas = 0;
  std::uint64_t buffers = 0;
  std::uint64_t leases = 0;
  std::uint64_t sessions = 0;
  std::uint64_t connections = 0;
};

/// /bytes: more than any client reads. /arena: an arena, all of it written. /hold: the body is not
/// read. No response is completed.
void hold_everything(ScriptedHandler& h) {
  h.headers = [](ServerStream& s, const ServerRequest& r) {
    if (r.meta.path == "/hold") s.pause();
    if (r.meta.path != "/arena") return;
    const ArenaAnswer answer = s.acquire_arena();
    if (answer.arena == nullptr) return s.send_503();
    const std::size_t size = answer.arena->capacity();
    std::memset(answer.arena->allocate(size, 1), 'a', size);
    s.pause();
  };
  h.writable = [](ServerStream& s) {
    static const std::string block(64 * 1024, 'x');
    while (s.send_data(block) == block.size()) {
    }
  };
  h.complete = [&h](ServerStream& s) {
    const ResponseHead head{.status = 200, .fields = {}, .content_length = {}};
    if (!s.response_started() && s.send_headers(head) == SendResult::kSent) h.writable(s);
  };
}

std::uint32_t clients_of(const ServerConfig& config) {
  return 3 * kPlain + kSessions + config.arena_pool_size + (config.tls.enabled() ? kSecure : 0);
}

/// The deepest stack of the loops.
std::uint64_t deepest_stack(io::LoopThreads& loops) {
  std::uint64_t deepest = 0;
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    std::promise<std::uint64_t> touched;
    loops.at(i).post([&] { touched.set_value(touched_stack_bytes()); });
    deepest = std::max(deepest, touched.get_future().get());
  }
  return deepest;
}

/// The server's process. It sends its ports, waits for a byte, and sends what it has measured.
[[noreturn]] void serve(const ServerConfig& config, int in, int out) {
  Measured measured;
  measured.before = status_bytes("VmRSS:");
  measured.tables_before = status_bytes("VmPTE:");
  if (config.tls.enabled()) io::set_tls_memory_budget(tls_memory_bytes(config));
  io::LoopThreads loops({.count = config.loops, .pin = false, .name = "ceiling"});
  loops.start();
  Server server(config, loops, every_loop(hold_everything));
  server.set_critical_peers([](const io::Address&) { return true; });  // no connection is refused
  if (!server.start().has_value()) ::_exit(3);
  const std::array<std::uint16_t, 2> ports{server.port(), server.tls_port()};
  if (::write(out, ports.data(), sizeof ports) < 0) ::_exit(4);
  char go = 0;
  if (::read(in, &go, 1) < 0) ::_exit(5);
  static_cast<void>(testkit::eventually(server, [&](const ServerStats& s) {
    return s.write_buffers.used == config.tcp_write_buffer_pool_size &&
           s.arenas.used == config.arena_pool_size && s.pending_write_queue_len > 0 &&
           s.connections.used == clients_of(config);
  }));
  const ServerStats stats = server.stats();
  measured.stack = deepest_stack(loops);
  measured.tls_peak = stats.tls.memory_peak_bytes;
  measured.arenas = stats.arenas.peak;
  measured.buffers = stats.write_buffers.peak;
  measured.leases = stats.body_leases.peak;
  measured.sessions = stats.h2_sessions.peak;
  measured.connections = stats.connections.peak;
  measured.tables = status_bytes("VmPTE:");
  measured.peak = status_bytes("VmHWM:");
  if (::write(out, &measured, sizeof measured) < 0) ::_exit(6);
  ::_exit(0);
}

/// Runs the server, then `fill` with its ports (cleartext, TLS); the result of `fill` is kept until
/// all is measured.
template <class Fill>
Measured measure(const ServerConfig& config, Fill fill) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  Measured measured;
  if (::pipe(to.data()) != 0 || ::pipe(from.data()) != 0) return measured;
  const pid_t child = ::fork();
  if (child == 0) serve(config, to[0], from[1]);
  std::array<std::uint16_t, 2> ports{};
  EXPECT_EQ(::read(from[0], ports.data(), sizeof ports), static_cast<ssize_t>(sizeof ports));
  {
    const auto held = fill(ports);
    EXPECT_EQ(::write(to[1], "!", 1), 1);
    EXPECT_EQ(::read(from[0], &measured, sizeof measured), static_cast<ssize_t>(sizeof measured));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {to[0], to[1], from[0], from[1]}) ::close(fd);
  return measured;
}

struct Held {
  std::vector<std::unique_ptr<Client>> plain;
  std::vector<std::unique_ptr<H2Client>> http2;
  std::vector<std::unique_ptr<TlsClient>> secure;
};

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nhost: t\r\n\r\n";
}

/// A request whose body is not read, with as much of it as a read region holds.
std::string held_body() {
  return "POST /hold HTTP/1.1\r\nhost: t\r\ncontent-length: 999999\r\n\r\n" +
         std::string(40'000, 'b');
}

void fill_http2(Held& held, std::uint16_t port) {
  for (std::uint32_t i = 0; i < kSessions; ++i) {
    held.http2.push_back(std::make_unique<H2Client>(port));
    H2Client& client = *held.http2.back();
    for (int k = 0; k < 2; ++k) {
      const std::uint32_t id = client.post("/hold");
      for (int piece = 0; piece < 4; ++piece) {
        EXPECT_TRUE(client.in_step()) << "else the window may not be open";
        client.send(http::h2::wire::data(id, std::string(16'000, 'd')));
      }
    }
  }
}

void fill_plain(Held& held, std::uint16_t port) {
  const auto add = [&](std::string_view bytes) {
    held.plain.push_back(std::make_unique<Client>(port, 4096));
    EXPECT_TRUE(held.plain.back()->send(bytes));
  };
  for (std::uint32_t i = 0; i < kPlain; ++i) {
    add(held_body());
    add("GET / HTTP/1.1\r\nhost: t\r\na: " + std::string(16'000, 'h'));
  }
  for (std::uint32_t i = 0; i < kArenas; ++i) add(get("/arena"));
  for (std::uint32_t i = 0; i < kPlain; ++i) add(get("/bytes"));
  for (auto& client : held.http2) client->get("/bytes");
}

/// When all are connected, half of them request responses that they do not read.
void fill_secure(Held& held, std::uint16_t port) {
  for (std::uint32_t i = 0; i < kSecure; ++i) {
    held.secure.push_back(std::make_unique<TlsClient>(port));
    TlsClient& client = *held.secure.back();
    ASSERT_TRUE(client.shake()) << client.why();
    EXPECT_TRUE(client.send(i % 2 == 0 ? held_body() : "GET /bytes HTTP/1.1\r\n"));
  }
  for (std::uint32_t i = 1; i < kSecure; i += 2) {
    EXPECT_TRUE(held.secure[i]->send("host: t\r\n\r\n"));
  }
}

std::uint64_t addend(const MemoryBudget& budget, std::string_view holder) {
  std::uint64_t bytes = 0;
  for (const MemoryAddend& one : budget.addends) {
    if (one.holder == holder) bytes += one.bytes();
  }
  return bytes;
}

class Ceiling : public testing::TestWithParam<bool> {};

TEST_P(Ceiling, HoldsWithEveryHolderFull) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__) || \
    defined(WEIR_COVERAGE)
  GTEST_SKIP() << "instrumented code is larger";
#endif
  ASSERT_TRUE(kBounded);
  const bool tls = GetParam();
  const ServerConfig config = full_config(tls);
  ASSERT_EQ(config.validate(), ConfigErrors{});
  const MemoryBudget budget = memory_budget(config);
  const Measured got = measure(config, [&](const std::array<std::uint16_t, 2>& ports) {
    Held held;
    fill_http2(held, ports[0]);
    if (tls) fill_secure(held, ports[1]);
    fill_plain(held, ports[0]);
    return held;
  });
  const std::uint64_t fixed = addend(budget, "fixed");
  const std::uint64_t tables = addend(budget, "page tables");
  const std::uint64_t holders = budget.total_bytes() - fixed - tables;
  // All pools were filled.
  EXPECT_EQ(got.arenas, config.arena_pool_size);
  EXPECT_EQ(got.buffers, config.tcp_write_buffer_pool_size);
  EXPECT_EQ(got.leases, config.body_lease_pool_size);
  EXPECT_EQ(got.sessions, kSessions);
  EXPECT_EQ(got.connections, clients_of(config));
  // The memory stays within the budget: as a whole, and for each part.
  EXPECT_LE(got.peak, budget.total_bytes());
  EXPECT_LE(got.peak - got.before, holders) << "without code and libraries";
  EXPECT_LE(got.before, fixed);
  EXPECT_LE(got.tables - got.tables_before, tables);
  EXPECT_LE(got.tls_peak, tls_memory_bytes(config));
  EXPECT_GT(got.stack, 0U);
  EXPECT_LE(got.stack, addend(budget, "stacks") / (config.loops + 1));
  RecordProperty("before_kb", static_cast<int>(got.before / 1024));
  RecordProperty("peak_kb", static_cast<int>(got.peak / 1024));
  RecordProperty("grown_kb", static_cast<int>((got.peak - got.before) / 1024));
  RecordProperty("holders_kb", static_cast<int>(holders / 1024));
  RecordProperty("tables_kb", static_cast<int>((got.tables - got.tables_before) / 1024));
  RecordProperty("tables_said_kb", static_cast<int>(tables / 1024));
  RecordProperty("tls_peak_kb", static_cast<int>(got.tls_peak / 1024));
  RecordProperty("stack_kb", static_cast<int>(got.stack / 1024));
}

INSTANTIATE_TEST_SUITE_P(Transports, Ceiling, testing::Bool(),
                         [](const auto& shown) { return shown.param ? "Tls" : "Clear"; });

}  // namespace
}  // namespace weir::inline v0::inline server
