// A server whose TLS library has a bound: what happens at it, and what an idle connection costs.
// A program of its own: the bound must be set before OpenSSL allocates anything.
#include "weir/io/tls_memory.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "weir/server/memory_budget.h"

#include "server/tls_testing.h"

namespace weir::inline v0 {
namespace {

using testkit::answer_path;
using testkit::RunningServer;
using testkit::tls_config;
using testkit::TlsClient;

constexpr std::uint64_t kPlenty = 512U << 20U;

// Before main(), hence before any test touches OpenSSL.
const bool kInstalled = io::install_tls_memory(kPlenty);

struct TlsServerMemory : testing::Test {
  void SetUp() override { ASSERT_TRUE(kInstalled); }
  void TearDown() override { io::set_tls_memory_budget(kPlenty); }
};

TEST_F(TlsServerMemory, WithoutMemoryHandshakesFailAndLaterOnesDoNot) {
  RunningServer server(tls_config(), answer_path());
  TlsClient standing(server->tls_port());
  ASSERT_TRUE(standing.shake());
  ASSERT_EQ(standing.get("/").status, 200);
  // Memory for some: clients come and stay until nothing is left, at a different place each time.
  // They live in this process too, so it may be their end that gets none.
  int failed = 0;
  for (std::uint64_t spare = 0; spare < 512 * 1024; spare += 128 * 1024 + 999) {
    std::vector<std::unique_ptr<TlsClient>> made;
    for (int i = 0; i < 24; ++i) made.push_back(std::make_unique<TlsClient>(server->tls_port()));
    io::set_tls_memory_budget(io::tls_memory_stats().taken_bytes + spare);
    for (auto& client : made) failed += client->shake() ? 0 : 1;
    io::set_tls_memory_budget(kPlenty);
  }
  EXPECT_GT(failed, 5);
  EXPECT_GT(io::tls_memory_stats().refused, 5U);
  // One that stood before goes on, and the next comes in.
  EXPECT_EQ(standing.get("/still").body, "/still");
  TlsClient next(server->tls_port());
  ASSERT_TRUE(next.shake()) << next.why();
  EXPECT_EQ(next.get("/next").body, "/next");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.tls.handshake_slots.used == 0 && s.connections.used == 2;
  }));
}

TEST_F(TlsServerMemory, TheComputedBudgetHoldsAllSlotsAndAllConnections) {
  ServerConfig config = tls_config();
  config.max_connections = 400;
  const std::uint64_t before = io::tls_memory_stats().taken_bytes;
  RunningServer server(config, answer_path());
  const std::uint64_t rest = io::tls_memory_stats().taken_bytes;
  std::vector<std::unique_ptr<TlsClient>> clients;
  std::uint64_t of_clients = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t without = io::tls_memory_stats().taken_bytes;
    clients.push_back(std::make_unique<TlsClient>(server->tls_port()));
    of_clients += io::tls_memory_stats().taken_bytes - without;
    ASSERT_TRUE(clients.back()->shake());
    ASSERT_EQ(clients.back()->get("/").status, 200);
  }
  ASSERT_EQ(server.stats().connections.used, 200U);
  // Both ends are counted, and the client's is the larger one: each has a context of its own.
  const std::uint64_t both = io::tls_memory_stats().taken_bytes - rest;
  RecordProperty("both_ends_bytes_each", static_cast<int>(both / 200));
  EXPECT_LT(both - of_clients, 200 * 2 * kTlsIdleBytes);
  EXPECT_LT(rest - before, kTlsFixedBytes);
  EXPECT_GT(tls_memory_bytes(config), 200 * kTlsIdleBytes + 8 * kTlsHandshakeBytes);
}

}  // namespace
}  // namespace weir::inline v0
