// How much of its stack a loop's thread touches, counted by the kernel, beside the addend for it.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "weir/server/memory_budget.h"

#include "server/stack_testing.h"
#include "server/tls_testing.h"

namespace weir::inline v0 {
namespace {

using testkit::Client;
using testkit::every_loop;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
using testkit::tls_config;
using testkit::TlsClient;
using testkit::touched_stack_bytes;

std::uint64_t stack_addend() {
  for (const MemoryAddend& addend : memory_budget(ServerConfig{}).addends) {
    if (addend.holder == "stacks") return addend.bytes_each;
  }
  return 0;
}

TEST(StackUse, LoopThreadsTouchLessThanTheirAddend) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  GTEST_SKIP() << "instrumented frames are larger";
#endif
  std::atomic<std::uint64_t> touched{0};
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) {
                         h.complete = [&](ServerStream& s) {
                           touched = touched_stack_bytes();
                           static_cast<void>(reply(s, 200, "ok"));
                         };
                       }));
  // Everything that goes deep: many fields, chunked bodies with trailers, pipelines, errors.
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
  Client broken(server.port());
  ASSERT_TRUE(broken.send("GET / HTTP/1.1\r\nhost : t\r\n\r\n"));
  EXPECT_EQ(broken.read().status, 400);
  EXPECT_EQ(Client(server.port()).get("/").status, 200);  // the last one measures
  EXPECT_GT(touched.load(), 0U);
  EXPECT_LE(touched.load(), stack_addend());
  RecordProperty("touched_stack_bytes", static_cast<int>(touched.load()));
}

}  // namespace
}  // namespace weir::inline v0
