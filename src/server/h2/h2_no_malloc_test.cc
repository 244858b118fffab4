// no_malloc_test.cc for HTTP/2: libnghttp2 allocates, but only inside the connection's block.
#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "http/h2/frame_writer_testing.h"
#include "memory/malloc_probe_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::RunningServer;
using testkit::small_config;
namespace wire = http::h2::wire;

/// Answers at once, or sends 100 KB as there is room.
class Short final : public Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    stream.make_state<std::size_t>() = request.meta.path == "/long" ? 100'000 : 0;
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    static constexpr ResponseField kFields[] = {{"content-type", "text/plain"}};
    static const std::string block(20'000, 'x');
    const ResponseHead head{.status = 200, .fields = kFields, .content_length = {}};
    auto& left = stream.state<std::size_t>();
    if (left == 0) {
      static_cast<void>(stream.send_response(head, "hello"));
      return;
    }
    if (!stream.response_started() && stream.send_headers(head) != SendResult::kSent) return;
    while (left > 0) {
      const std::size_t size = std::min(left, block.size());
      const std::size_t taken = stream.send_data({block.data(), size}, size == left);
      left -= taken;
      if (taken < size) return;
    }
  }
};

/// Sends prepared frames; only the stream number is overwritten for each use.
class FrugalPeer {
 public:
  explicit FrugalPeer(std::uint16_t port) : client_(port) {
    good_ = client_.send(wire::preface() + wire::settings({{4, 0x7fffffff}}) +
                         wire::window_update(0, 0x7fffffff - 65535) + wire::settings_ack());
  }

  /// Sends the frames for a new stream and reads until the server has ended it.
  bool exchange(std::string& frames) {
    for (std::size_t at = 0; at < frames.size();) {
      auto* head = reinterpret_cast<std::uint8_t*>(frames.data()) + at;
      http::h2::FrameHeader header = http::h2::read_frame_header(head);
      http::h2::write_u32(head + 5, next_);
      at += http::h2::kFrameHeaderBytes + header.length;
    }
    good_ = good_ && client_.send(frames);
    while (good_ && !ended_at(next_)) {
    }
    next_ += 2;
    return good_;
  }

 private:
  /// Reads one frame. True if it ends the stream.
  bool ended_at(std::uint32_t stream) {
    std::array<std::uint8_t, http::h2::kFrameHeaderBytes> head;
    read(head.data(), head.size());
    if (!good_) return true;
    const http::h2::FrameHeader header = http::h2::read_frame_header(head.data());
    read(payload_.data(), header.length);
    const bool message =
        header.is(http::h2::FrameType::kHeaders) || header.is(http::h2::FrameType::kData);
    good_ = good_ && !header.is(http::h2::FrameType::kGoaway) &&
            !header.is(http::h2::FrameType::kRstStream);
    return message && header.stream == stream && header.has(http::h2::flag::kEndStream);
  }
  void read(std::uint8_t* into, std::size_t size) {
    while (good_ && size > 0) {
      const ssize_t got = ::recv(client_.fd(), into, size, 0);
      good_ = got > 0;
      if (!good_) return;
      into += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  Client client_;
  std::array<std::uint8_t, http::h2::kFramePayloadMax> payload_{};
  std::uint32_t next_ = 1;
  bool good_ = true;
};

TEST(NoMalloc, Http2RequestsAfterWarmUpAllocateNothing) {
  if (!mallocs_are_counted()) GTEST_SKIP() << "the sanitizer has its own allocator";
  ServerConfig config = small_config();
  config.tick = std::chrono::milliseconds(1);
  config.sweep_interval = std::chrono::milliseconds(3);
  RunningServer server(config, [](const HandlerPlace&) { return std::make_unique<Short>(); });
  std::array<std::string, 4> kinds = {
      wire::headers(
          1, wire::with(wire::get(), {{"user-agent", "x"}, {"cookie", "a=1"}, {"cookie", "b=2"}})),
      wire::headers(1, wire::get("/long")),
      wire::headers(1, wire::post(), 0) + wire::data(1, std::string(9'000, 'y'), wire::kEnd),
      wire::headers(1, wire::post(), 0) + wire::data(1, "z") + wire::headers(1, {{"t", "v"}}),
  };
  FrugalPeer peer(server.port());
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (std::string& kind : kinds) {
        if (!peer.exchange(kind)) return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(run(50));
  const std::size_t before = mallocs_so_far();
  const bool served = run(500);
  const std::size_t after = mallocs_so_far();
  ASSERT_TRUE(served);
  EXPECT_EQ(after - before, 0U);
}

TEST(NoMalloc, NewHttp2ConnectionsAfterWarmUpAllocateNothing) {
  if (!mallocs_are_counted()) GTEST_SKIP() << "the sanitizer has its own allocator";
  RunningServer server(small_config(),
                       [](const HandlerPlace&) { return std::make_unique<Short>(); });
  const std::string hello = wire::preface() + wire::settings() + wire::headers(1, wire::get());
  std::array<char, 4096> input;
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Client client(server.port());
      if (!client.send(hello)) return false;
      std::size_t size = 0;
      while (!std::string_view(input.data(), size).ends_with("hello")) {
        const ssize_t got = ::recv(client.fd(), input.data() + size, input.size() - size, 0);
        if (got <= 0) return false;
        size += static_cast<std::size_t>(got);
      }
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
