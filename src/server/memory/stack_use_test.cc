// How much of its stack a loop's thread touches, measured by the kernel, against its addend.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "weir/experimental/server/memory_budget.h"

#include "memory/stack_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::every_loop;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
using testkit::TlsClient;
using testkit::touched_stack_bytes;
using testkit::WithClientCa;

std::uint64_t stack_addend() {
  for (const MemoryAddend& addend : memory_budget(ServerConfig{}).addends) {
    if (addend.holder == "stacks") return addend.bytes_each;
  }
  return 0;
}

/// Handlers that record how much of their loop's stack was touched so far, and answer.
RunningServer::Make measuring(std::atomic<std::uint64_t>& touched) {
  return every_loop([&touched](ScriptedHandler& h) {
    h.complete = [&touched](ServerStream& s) {
      touched = touched_stack_bytes();
      static_cast<void>(reply(s, 200, "ok"));
    };
  });
}

void expect_within_addend(std::uint64_t touched) {
  EXPECT_GT(touched, 0U);
  EXPECT_LE(touched, stack_addend());
  testing::Test::RecordProperty("touched_stack_bytes", static_cast<int>(touched));
}

struct StackUse : testing::Test {
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
    GTEST_SKIP() << "instrumented frames are larger";
#endif
  }
};

TEST_F(StackUse, LoopThreadsTouchLessThanTheirAddend) {
  std::atomic<std::uint64_t> touched{0};
  RunningServer server(small_config(), measuring(touched));
  // Requests that need a deep stack: many fields, chunked bodies with trailers, pipelines, errors.
  std::string fields;
  for (int i = 0; i < 90; ++i) fields += "x-field-" + std::to_string(i) + ": some value\r\n";
  const std::string requests[] = {
      "GET / HTTP/1.1\r\nhost: t\r\n" + fields + "\r\n",
      "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" +
          std::string("x-trailer: 1\r\n\r\n"),
      "POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nok",
      "HEAD / HTTP/1.1\r\nhost: t\r\n\r\nGET / HTTP/1.1\r\nhost: t\r\n\r\n",
  };
  for (const std::string& request : requests) {
    Client client(server.port());
    ASSERT_TRUE(client.send(request));
    ASSERT_NE(client.read().status, 0);
  }
  // A client that is answered 400 and continues to send: its bytes are read and discarded.
  Client broken(server.port());
  ASSERT_TRUE(broken.send("GET / HTTP/1.1\r\nhost : t\r\n\r\n"));
  EXPECT_EQ(broken.read().status, 400);
  for (int i = 0; i < 20; ++i) static_cast<void>(broken.send(std::string(16 * 1024, 'x')));
  EXPECT_EQ(Client(server.port()).get("/").status, 200);  // the last one measures
  expect_within_addend(touched.load());
}

TEST_F(StackUse, TlsHandshakesAndHttpTwoTouchLessThanTheirAddend) {
  std::atomic<std::uint64_t> touched{0};
  RunningServer server(WithClientCa(io::ClientCertificate::kOptional).config, measuring(touched));
  const io::MadeCertificate own = testkit::signed_for({"stack.test"});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server->tls_port(), {.version_max = version, .own = &own});
    ASSERT_TRUE(client.shake()) << client.why();
    ASSERT_EQ(client.get("/").status, 200);
    ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\n" +
                            std::string(100'000, 'b')));
    ASSERT_EQ(client.read().status, 200);
  }
  expect_within_addend(touched.load());
}

}  // namespace
}  // namespace weir::inline v0::inline server
