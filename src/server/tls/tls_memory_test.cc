// A server with a memory bound for the TLS library: what happens at the bound, and what an idle
// connection costs. A separate program: the bound must be set before OpenSSL allocates anything.
#include "weir/experimental/io/tls_memory.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::answer_path;
using testkit::RunningServer;
using testkit::tls_config;
using testkit::TlsClient;

constexpr std::uint64_t kPlenty = 512U << 20U;

// Before main(), so that no test uses OpenSSL earlier.
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
  // Memory for some: clients connect and stay until none is left, at a different point each time.
  // They are in this process too, so the allocation that fails may be on their side.
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
  // An established connection continues, and a new one is accepted.
  EXPECT_EQ(standing.get("/still").body, "/still");
  TlsClient next(server->tls_port());
  ASSERT_TRUE(next.shake()) << next.why();
  EXPECT_EQ(next.get("/next").body, "/next");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.tls.handshake_slots.used == 0 && s.connections.used == 2;
  }));
}

/// A whole ClientHello. A client that sends these bytes itself needs no memory of OpenSSL.
std::string client_hello() {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_connect(ssl);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
  std::string hello(bytes, static_cast<std::size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return hello;
}

/// Handshakes with less and less memory: wherever an allocation fails, the connection ends once,
/// with one reason, and its memory is freed.
TEST_F(TlsServerMemory, EveryRefusedAllocationOfAHandshakeEndsItAlone) {
  RunningServer server(tls_config(), answer_path());
  TlsClient standing(server->tls_port());
  ASSERT_TRUE(standing.shake());
  ASSERT_EQ(standing.get("/").status, 200);
  const std::string hello = client_hello();
  const std::uint64_t refused_before = io::tls_memory_stats().refused;
  constexpr std::uint64_t kAtOnce = 8;  // one per slot: uses up what the loop kept
  std::uint64_t attempts = 1;
  std::uint64_t after_first_sweep = 0;
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (std::uint64_t room = 0; room < 480 * 1024; room += 4 * 1024 + 111) {
      SCOPED_TRACE(room);
      io::set_tls_memory_budget(io::tls_memory_stats().taken_bytes + room);
      {
        std::vector<std::unique_ptr<testkit::Client>> clients;
        for (std::uint64_t i = 0; i < kAtOnce; ++i) {
          clients.push_back(std::make_unique<testkit::Client>(server->tls_port()));
          ASSERT_TRUE(clients.back()->send(hello));
        }
        for (auto& client : clients) {
          static_cast<void>(client->take(1));  // an alert, a ServerHello, or the end
          EXPECT_FALSE(client->timed_out());
        }
      }
      io::set_tls_memory_budget(kPlenty);
      attempts += kAtOnce;
      ASSERT_TRUE(server.eventually([](const ServerStats& s) {
        return s.connections.used == 1 && s.tls.handshake_slots.used == 0;
      }));
    }
    if (sweep == 0) after_first_sweep = io::tls_memory_stats().taken_bytes;
  }
  EXPECT_LE(io::tls_memory_stats().taken_bytes, after_first_sweep + 128 * 1024)
      << "more than threads keep was not given back";
  const ServerStats stats = server.stats();
  const auto by = [&](HandshakeResult result) { return stats.tls.handshakes_by(result); };
  RecordProperty("no_memory", static_cast<int>(by(HandshakeResult::kNoMemory)));
  RecordProperty("failed", static_cast<int>(by(HandshakeResult::kFailed)));
  EXPECT_EQ(by(HandshakeResult::kFull), 1U);
  EXPECT_GT(by(HandshakeResult::kNoMemory), 10U);
  EXPECT_GT(by(HandshakeResult::kAborted), 10U) << "with enough room it is the client that leaves";
  EXPECT_EQ(by(HandshakeResult::kFull) + by(HandshakeResult::kNoMemory) +
                by(HandshakeResult::kFailed) + by(HandshakeResult::kAborted),
            attempts);
  EXPECT_GT(stats.tls.memory_refused, refused_before + 10);
  EXPECT_EQ(standing.get("/still").body, "/still");
  TlsClient next(server->tls_port());
  EXPECT_TRUE(next.shake()) << next.why();
}

TEST_F(TlsServerMemory, AnIdleConnectionHoldsLessThanTheBudgetCounts) {
  constexpr std::uint32_t kCount = 200;
  ServerConfig config = tls_config();
  config.max_connections = 2 * kCount;
  RunningServer server(config, answer_path());
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    clients.push_back(std::make_unique<TlsClient>(server->tls_port()));
    ASSERT_TRUE(clients.back()->shake());
    ASSERT_EQ(clients.back()->get("/").status, 200);
  }
  ASSERT_EQ(server.stats().connections.used, kCount);
  // Both ends are in this process; closing the server's ends frees only their memory.
  const std::uint64_t open = io::tls_memory_stats().taken_bytes;
  ASSERT_TRUE(server->drain(std::chrono::seconds(10)));
  const std::uint64_t each = (open - io::tls_memory_stats().taken_bytes) / kCount;
  RecordProperty("idle_bytes", static_cast<int>(each));
  EXPECT_LT(each, io::kTlsIdleBytes);
  EXPECT_GT(each, 8U * 1024) << "else it was not there";
}

}  // namespace
}  // namespace weir::inline v0::inline server
