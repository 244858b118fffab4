// After warm-up a request needs no heap allocation, in this code or in any library it uses.
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/experimental/server/body_buffer.h"

#include "memory/malloc_probe_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::RunningServer;
using testkit::small_config;

/// Answers every kind of request in every way a handler can, without allocating.
class AllKinds final : public Handler {
 public:
  struct State {
    BodyBuffer body;
    std::uint64_t left = 0;
    char kind = 0;
  };

  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    State& state = stream.make_state<State>();
    state.kind = request.meta.path[1];
    if (state.kind == 'a') {
      const ArenaAnswer answer = stream.acquire_arena();
      if (answer.arena == nullptr) return stream.send_503();
      state.body = BodyBuffer(*answer.arena);
    }
    if (state.kind == 'b') state.left = 300'000;
    if (state.kind == '5') stream.send_503();
  }
  void on_body(ServerStream& stream, const http::BodyChunk& chunk) override {
    State& state = stream.state<State>();
    if (state.kind == 'a' && !state.body.append(chunk)) stream.send_503();
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    State& state = stream.state<State>();
    static constexpr ResponseField kFields[] = {{"content-type", "text/plain"}};
    const ResponseHead head{.status = 200, .fields = kFields, .content_length = {}};
    if (state.kind == 'a') {
      static_cast<void>(stream.send_response(head, state.body.get(), BodyLife::kStream));
    } else if (state.kind == 'b') {
      stream_bytes(stream, state, head);
    } else {
      static_cast<void>(stream.send_response(head, "hello"));
    }
  }

 private:
  static void stream_bytes(ServerStream& stream, State& state, const ResponseHead& head) {
    static const std::string block(50'000, 'x');
    if (!stream.response_started() && stream.send_headers(head) != SendResult::kSent) return;
    while (state.left > 0) {
      const std::size_t size = std::min<std::size_t>(state.left, block.size());
      const std::size_t taken = stream.send_data({block.data(), size}, size == state.left);
      state.left -= taken;
      if (taken < size) return;
    }
  }
};

/// Sends and reads without allocating.
class FrugalClient {
 public:
  explicit FrugalClient(std::uint16_t port) : client_(port) {}

  /// Sends `request` and reads until `end`; false on failure.
  bool exchange(std::string_view request, std::string_view end) {
    while (!request.empty()) {
      const ssize_t put = ::send(client_.fd(), request.data(), request.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      request.remove_prefix(static_cast<std::size_t>(put));
    }
    std::size_t size = 0;
    while (true) {
      const ssize_t got = ::recv(client_.fd(), input_ + size, sizeof input_ - size, 0);
      if (got <= 0) return false;
      size += static_cast<std::size_t>(got);
      if (std::string_view(input_, size).ends_with(end)) return true;
      if (size == sizeof input_) {
        std::memmove(input_, input_ + size - end.size(), end.size());
        size = end.size();
      }
    }
  }

 private:
  Client client_;
  char input_[64 * 1024];
};

struct Exchange {
  std::string_view request;
  std::string_view end;
};

constexpr Exchange kExchanges[] = {
    {"GET /h HTTP/1.1\r\nhost: t\r\nuser-agent: x\r\naccept: */*\r\n\r\n", "hello"},
    {"HEAD /h HTTP/1.1\r\nhost: t\r\n\r\n", "\r\n\r\n"},
    {"POST /h HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\n0123456789", "hello"},
    {"POST /a HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n5\r\nmelon\r\n0\r\n\r\n",
     "melon"},
    {"GET /b HTTP/1.1\r\nhost: t\r\n\r\n", "\r\n0\r\n\r\n"},
    {"GET /5 HTTP/1.1\r\nhost: t\r\n\r\n", "\r\n\r\n"},
    {"GET /h HTTP/1.1\r\nhost: t\r\n\r\nGET /h HTTP/1.1\r\nhost: t\r\n\r\nPOST /a HTTP/1.1\r\n"
     "host: t\r\ncontent-length: 4\r\n\r\nlast",
     "last"},
};

TEST(NoMalloc, RequestsAfterWarmUpAllocateNothing) {
  if (!mallocs_are_counted()) GTEST_SKIP() << "the sanitizer has its own allocator";
  ServerConfig config = small_config();
  config.tick = std::chrono::milliseconds(1);  // ticks, sweeps and dates are part of serving
  config.sweep_interval = std::chrono::milliseconds(3);
  RunningServer server(config, [](const HandlerPlace&) { return std::make_unique<AllKinds>(); });
  FrugalClient client(server.port());
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const Exchange& exchange : kExchanges) {
        if (!client.exchange(exchange.request, exchange.end)) return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(run(50));
  const std::size_t before = mallocs_so_far();
  const bool served = run(500);
  const std::size_t after = mallocs_so_far();
  ASSERT_TRUE(served);
  EXPECT_EQ(after - before, 0U) << "in " << 500 * std::size(kExchanges) << " exchanges";
}

TEST(NoMalloc, NewConnectionsAfterWarmUpAllocateNothing) {
  if (!mallocs_are_counted()) GTEST_SKIP() << "the sanitizer has its own allocator";
  RunningServer server(small_config(),
                       [](const HandlerPlace&) { return std::make_unique<AllKinds>(); });
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      FrugalClient client(server.port());
      if (!client.exchange(kExchanges[0].request, kExchanges[0].end)) return false;
    }
    return true;
  };
  ASSERT_TRUE(run(100));
  const std::size_t before = mallocs_so_far();
  ASSERT_TRUE(run(200));
  EXPECT_EQ(mallocs_so_far() - before, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
