#include "weir/experimental/io/tls_memory.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include "weir/experimental/io/tls_client_config.h"

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

constexpr std::uint64_t kPlenty = 64U << 20U;

// Before main(), hence before any test uses OpenSSL.
const bool kInstalled = install_tls_memory(kPlenty);

struct TlsMemory : testing::Test {
  void SetUp() override { ASSERT_TRUE(kInstalled); }
  void TearDown() override { set_tls_memory_budget(kPlenty); }
};

std::uint64_t taken() {
  return tls_memory_stats().taken_bytes;
}

TEST_F(TlsMemory, CountsWhatOpensslHolds) {
  const std::uint64_t before = taken();
  void* large = OPENSSL_malloc(1U << 20U);
  ASSERT_NE(large, nullptr);
  EXPECT_GE(taken(), before + (1U << 20U));
  OPENSSL_free(large);
  EXPECT_LE(taken(), before + 128 * 1024) << "but for what the thread keeps";
}

TEST_F(TlsMemory, ReallocateKeepsContents) {
  auto* text = static_cast<char*>(OPENSSL_malloc(100));
  std::memset(text, 'a', 100);
  for (const std::size_t size : {200U, 3000U, 50'000U, 60'000U}) {
    text = static_cast<char*>(OPENSSL_realloc(text, size));
    ASSERT_NE(text, nullptr);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(text[i], 'a');
  }
  OPENSSL_free(text);
}

TEST_F(TlsMemory, LargePiecesAreKeptForTheNextUse) {
  void* first = OPENSSL_malloc(16'704);
  OPENSSL_free(first);
  const std::uint64_t before = taken();
  for (int i = 0; i < 1000; ++i) {
    void* again = OPENSSL_malloc(16'704);
    ASSERT_EQ(again, first);
    OPENSSL_free(again);
  }
  EXPECT_EQ(taken(), before);
}

TEST_F(TlsMemory, PastTheBudgetThereIsNothing) {
  const std::uint64_t refused = tls_memory_stats().refused;
  set_tls_memory_budget(taken() + (1U << 20U));
  std::vector<void*> pieces;
  while (void* piece = OPENSSL_malloc(10'000)) {
    pieces.push_back(piece);
    ASSERT_LE(taken(), tls_memory_stats().budget_bytes);
  }
  EXPECT_GT(pieces.size(), 50U);
  EXPECT_LE(pieces.size(), 120U);
  EXPECT_GT(tls_memory_stats().refused, refused);
  void* last = pieces.back();
  pieces.pop_back();
  OPENSSL_free(last);
  void* next = OPENSSL_malloc(10'000);
  EXPECT_NE(next, nullptr) << "what came back can be had again";
  OPENSSL_free(next);
  for (void* piece : pieces) OPENSSL_free(piece);
}

TEST_F(TlsMemory, WhatAThreadKeepsIsUsedBeforeItIsRefused) {
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(OPENSSL_malloc(30'000));
  for (void* piece : pieces) OPENSSL_free(piece);  // 240 KB on a shelf
  set_tls_memory_budget(taken());
  void* other = OPENSSL_malloc(100'000);
  EXPECT_NE(other, nullptr) << "the shelf is emptied for it";
  OPENSSL_free(other);
}

TEST_F(TlsMemory, ThreadsGiveBackWhatTheyKeep) {
  const std::uint64_t before = taken();
  for (int round = 0; round < 20; ++round) {
    std::thread worker([] {
      std::vector<void*> pieces;
      for (std::size_t i = 0; i < 100; ++i) pieces.push_back(OPENSSL_malloc(2000 + 300 * i));
      for (void* piece : pieces) OPENSSL_free(piece);
    });
    worker.join();
  }
  EXPECT_LE(taken(), before + 4096);
}

TEST_F(TlsMemory, PiecesMayBeFreedByAnotherThread) {
  const std::uint64_t before = taken();
  std::vector<void*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(OPENSSL_malloc(5000));
  std::thread worker([&] {
    for (void* piece : pieces) OPENSSL_free(piece);
  });
  worker.join();
  EXPECT_LE(taken(), before + 256 * 1024);
}

/// Opens connections until the budget is used up: the next fails, the others continue.
TEST_F(TlsMemory, AHandshakeWithoutMemoryFailsAloneAndCleanly) {
  const TlsContext::Ptr server = context_of(server_setup());
  const TlsContext::Ptr client = context_of(client_setup());
  std::vector<std::unique_ptr<TlsPair>> standing;
  standing.push_back(std::make_unique<TlsPair>());
  ASSERT_TRUE(standing[0]->connect(server, client));
  set_tls_memory_budget(taken() + 600 * 1024);
  int failed = 0;
  for (int i = 0; i < 100 && failed == 0; ++i) {
    auto pair = std::make_unique<TlsPair>();
    if (pair->server.tls.begin(server, pair->server.socket) &&
        pair->client.tls.begin(client, pair->client.socket, {.name = "localhost"})) {
      const auto [s, c] = pair->shake();
      if (s == TlsHandshake::kDone && c == TlsHandshake::kDone) {
        standing.push_back(std::move(pair));
        continue;
      }
    }
    ++failed;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_GT(standing.size(), 3U);
  EXPECT_LE(tls_memory_stats().taken_bytes, tls_memory_stats().budget_bytes);
  set_tls_memory_budget(kPlenty);
  for (auto& pair : standing)
    EXPECT_EQ(carry(pair->client, pair->server, "still here"), "still here");
}

/// A handshake with each size of budget: whichever allocation fails, it fails and frees everything.
TEST_F(TlsMemory, EveryRefusedAllocationOfAHandshakeIsSurvived) {
  const TlsContext::Ptr server = context_of(server_setup());
  const TlsContext::Ptr client = context_of(client_setup());
  // The first handshake of a process allocates the library's own tables; it has enough memory here.
  ASSERT_TRUE(TlsPair().connect(server, client));
  int done = 0;
  int failed = 0;
  for (std::uint64_t room = 0; room <= 320 * 1024; room += 1024) {
    // In a new thread, which keeps no memory from before.
    std::thread worker([&] {
      set_tls_memory_budget(taken() + room);
      TlsPair pair;
      const bool began = pair.server.tls.begin(server, pair.server.socket) &&
                         pair.client.tls.begin(client, pair.client.socket, {.name = "localhost"});
      const bool both =
          began && pair.shake() == std::pair(TlsHandshake::kDone, TlsHandshake::kDone);
      ++(both ? done : failed);
    });
    worker.join();
    set_tls_memory_budget(kPlenty);
  }
  EXPECT_GT(done, 20);
  EXPECT_GT(failed, 50);
}

/// The memory ceiling of a server relies on these sizes.
TEST_F(TlsMemory, SizesOfAConnection) {
  const TlsContext::Ptr server = context_of(server_setup());
  const TlsContext::Ptr client = context_of(client_setup());
  constexpr int kCount = 50;
  const auto measure = [&](bool data) {
    std::vector<std::unique_ptr<TlsPair>> pairs;
    TlsPair warm;
    EXPECT_TRUE(warm.connect(server, client));
    const std::uint64_t before = taken();
    for (int i = 0; i < kCount; ++i) {
      pairs.push_back(std::make_unique<TlsPair>());
      EXPECT_TRUE(pairs.back()->connect(server, client));
      if (data) carry(pairs.back()->client, pairs.back()->server, std::string(5000, 'x'));
      pairs.back()->client.tls.end();
    }
    return (taken() - before) / kCount;
  };
  const std::uint64_t idle = measure(true);
  RecordProperty("idle_bytes", static_cast<int>(idle));
  EXPECT_LT(idle, 20U * 1024) << "an idle connection holds no record buffers";
}

/// A server whose chain has five certificates.
TlsContext::Ptr server_with_chain() {
  TlsSetup setup = server_setup();
  std::string& chain = setup.identities[0].certificate_pem;
  chain += test_authority().certificate_pem;
  for (int i = 0; i < 3; ++i) {
    chain += make_certificate({.names = {"filler"}, .signer_pem = {}}).certificate_pem;
  }
  return context_of(setup);
}

/// The memory for connections to upstreams relies on these.
TEST_F(TlsMemory, SizesOfAClientsConnectionAndItsSession) {
  const TlsContext::Ptr server = server_with_chain();
  const TlsContext::Ptr client = context_of(client_setup());
  constexpr std::uint64_t kCount = 50;
  std::vector<TlsSessions> sessions(kCount);
  std::vector<std::unique_ptr<TlsPair>> pairs;
  TlsPair warm;
  ASSERT_TRUE(warm.connect(server, client));
  const std::uint64_t before = taken();
  for (TlsSessions& kept : sessions) {
    TlsPair& pair = *pairs.emplace_back(std::make_unique<TlsPair>());
    ASSERT_TRUE(pair.server.tls.begin(server, pair.server.socket));
    ASSERT_TRUE(pair.client.tls.begin(client, pair.client.socket,
                                      {.name = "localhost", .sessions = &kept}));
    ASSERT_EQ(pair.shake().second, TlsHandshake::kDone);
    carry(pair.server, pair.client, std::string(5000, 'x'));
    ASSERT_EQ(kept.size(), 1U);
    pair.server.tls.end();
  }
  const std::uint64_t idle = (taken() - before) / kCount;
  for (const auto& pair : pairs) pair->client.tls.end();
  const std::uint64_t session = (taken() - before) / kCount;
  RecordProperty("idle_bytes", static_cast<int>(idle));
  RecordProperty("session_bytes", static_cast<int>(session));
  EXPECT_LE(idle, kTlsClientIdleBytes);
  EXPECT_LE(session, kTlsSessionBytes);
}

/// In a new thread, which keeps no memory from before: enough for both sides is enough.
TEST_F(TlsMemory, AClientsHandshakeFitsIntoWhatIsCounted) {
  const TlsContext::Ptr server = server_with_chain();
  const TlsContext::Ptr client = context_of(client_setup());
  ASSERT_TRUE(TlsPair().connect(server, client));
  bool done = false;
  std::thread worker([&] {
    set_tls_memory_budget(taken() + kTlsHandshakeBytes + kTlsClientHandshakeBytes);
    TlsPair pair;
    done = pair.connect(server, client);
  });
  worker.join();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace weir::inline v0::io
