// After warm-up, the gateway serves, refuses and queues requests without an allocation.
#include <array>
#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

#include "base/allocation_probe.h"
#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testkit::gateway_config;
using testkit::Origin;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

/// A client that allocates nothing: the probe counts the whole process.
class BareClient {
 public:
  explicit BareClient(std::uint16_t port) : client_(port) {}

  /// The status of the answer; the answer must fit the buffer.
  int ask(std::string_view request) {
    EXPECT_EQ(::send(client_.fd(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::size_t size = 0;
    for (;;) {
      const ssize_t got = ::recv(client_.fd(), buffer_.data() + size, buffer_.size() - size, 0);
      if (got <= 0) return 0;
      size += static_cast<std::size_t>(got);
      const std::string_view seen(buffer_.data(), size);
      const std::size_t end = seen.find("\r\n\r\n");
      const std::size_t at = seen.find("content-length: ");
      if (end == std::string_view::npos || at == std::string_view::npos) continue;
      std::size_t length = 0;
      std::from_chars(seen.data() + at + 16, seen.data() + size, length);
      if (size < end + 4 + length) continue;
      int status = 0;
      std::from_chars(seen.data() + 9, seen.data() + 12, status);
      return status;
    }
  }
  /// Whether `bytes` come back through a tunnel.
  bool echoes(std::string_view bytes) {
    if (::send(client_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      return false;
    }
    return ::recv(client_.fd(), buffer_.data(), bytes.size(), MSG_WAITALL) ==
               static_cast<ssize_t>(bytes.size()) &&
           std::string_view(buffer_.data(), bytes.size()) == bytes;
  }
  /// Opens a tunnel; the status of the answer.
  int upgrade() {
    return client_
        .ask("GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        .status;
  }

 private:
  testkit::Client client_;
  std::array<char, 4096> buffer_{};
};

TEST(GatewayAllocations, ThereAreNoneOnceItIsWarm) {
  if (!allocations_are_counted()) GTEST_SKIP() << "the sanitizer counts its own";
  Origin origin([](ScriptedHandler& handler) {
    handler.complete = [](ServerStream& stream) { testkit::reply(stream, 200, "ok"); };
  });
  config::Config config = gateway_config({origin.address()});
  config.routes[0].path_prefix = "/api";
  config.server.loops = 1;
  config.memory.poll_interval = std::chrono::seconds(60);
  RunningGateway gateway(config);
  BareClient client(gateway.port());
  const auto round = [&] {
    EXPECT_EQ(client.ask("GET /api HTTP/1.1\r\nhost: t\r\nx-api-key: k\r\n\r\n"), 200);
    EXPECT_EQ(client.ask("POST /api/x HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello"), 200);
    EXPECT_EQ(client.ask("POST /api HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                         "2\r\nhi\r\n0\r\n\r\n"),
              200);
    EXPECT_EQ(client.ask("GET /elsewhere HTTP/1.1\r\nhost: t\r\naccept: application/json\r\n\r\n"),
              404);
  };
  for (int i = 0; i < 50; ++i) round();
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(allocations_so_far() - before, 0U);
}

TEST(GatewayAllocations, RefusingAndWaitingNeedNoneEither) {
  if (!allocations_are_counted()) GTEST_SKIP() << "the sanitizer counts its own";
  Origin origin([](ScriptedHandler& handler) {
    handler.complete = [](ServerStream&) {};  // keeps its one place forever
  });
  config::Config config = gateway_config({origin.address()});
  config.server.loops = 1;
  config.memory.poll_interval = std::chrono::seconds(60);
  config.admission.limit.policy = LimitKind::kFixed;
  config.admission.limit.initial_limit = 1;
  config.admission.normal_wait_max = std::chrono::milliseconds(1);
  RunningGateway gateway(config);
  testkit::Client holder(gateway.port());
  ASSERT_TRUE(holder.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  ASSERT_TRUE(testkit::eventually([&] { return gateway->status().in_flight == 1; }));
  BareClient client(gateway.port());
  const auto round = [&] { EXPECT_EQ(client.ask("GET / HTTP/1.1\r\nhost: t\r\n\r\n"), 503); };
  for (int i = 0; i < 20; ++i) round();
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(allocations_so_far() - before, 0U);
}

TEST(GatewayAllocations, TunnelsNeedNone) {
  if (!allocations_are_counted()) GTEST_SKIP() << "the sanitizer counts its own";
  Origin origin([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest&) {
      static constexpr std::array<ResponseField, 1> kFields = {{{"upgrade", "websocket"}}};
      EXPECT_EQ(stream.send_headers({.status = 101, .fields = kFields, .content_length = {}}),
                SendResult::kSent);
    };
    handler.body = [](ServerStream& stream, const http::BodyChunk& chunk) {
      EXPECT_EQ(stream.send_data(chunk.text(), chunk.last()), chunk.len);
    };
  });
  config::Config config = gateway_config({origin.address()});
  config.server.loops = 1;
  config.memory.poll_interval = std::chrono::seconds(60);
  RunningGateway gateway(config);
  BareClient client(gateway.port());
  ASSERT_EQ(client.upgrade(), 101);
  constexpr std::string_view kFrame = "\x82\x85\x01\x02\x03\x04hello";
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.echoes(kFrame));
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client.echoes(kFrame));
  EXPECT_EQ(allocations_so_far() - before, 0U);
}

}  // namespace
}  // namespace weir::gateway
