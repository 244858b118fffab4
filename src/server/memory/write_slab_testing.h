#pragma once

// Servers with few write buffers, and clients that use them up.

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/server_testing.h"

namespace weir::inline v0::inline server::testkit {

/// Sends as many bytes as the path says, as fast as there is room. Byte i is 'a' + i % 23.
inline void send_many(ScriptedHandler& h) {
  struct State {
    std::uint64_t at;
    std::uint64_t size;
  };
  static const std::string pattern = [] {
    std::string text;
    for (int i = 0; i < 23 * 4000; ++i) text += static_cast<char>('a' + i % 23);
    return text;
  }();
  h.headers = [](ServerStream& s, const ServerRequest& r) {
    State& state = s.make_state<State>();
    std::from_chars(r.meta.path.data() + 1, r.meta.path.data() + r.meta.path.size(), state.size);
  };
  h.writable = [](ServerStream& s) {
    State& state = s.state<State>();
    if (!s.response_started()) {
      const ResponseHead head{.status = 200, .fields = {}, .content_length = state.size};
      if (s.send_headers(head) != SendResult::kSent) return;
    }
    while (state.at < state.size) {
      const std::size_t offset = state.at % 23;
      const std::size_t size = static_cast<std::size_t>(
          std::min<std::uint64_t>(pattern.size() - offset, state.size - state.at));
      const std::size_t taken =
          s.send_data({pattern.data() + offset, size}, state.at + size == state.size);
      state.at += taken;
      if (taken < size) return;
    }
  };
  h.complete = [&h](ServerStream& s) { h.writable(s); };
}

/// A client that connects before the buffers are used up and then sends half a head, so that it is
/// neither refused nor closed as idle.
class EarlyClient {
 public:
  explicit EarlyClient(const RunningServer& server) : client_(server.port()) {
    const std::uint64_t before = server.stats().read_regions.used;
    EXPECT_TRUE(client_.send("GET /"));
    EXPECT_TRUE(
        server.eventually([&](const ServerStats& s) { return s.read_regions.used == before + 1; }));
  }
  /// Sends the rest of the request, and half of the next.
  Answer ask(const std::string& rest) {
    return client_.send(rest + "GET /") ? client_.read() : Answer{};
  }
  bool send(std::string_view bytes) { return client_.send(bytes); }
  void close() { client_.close(); }
  Answer read() { return client_.read(); }

 private:
  Client client_;
};

inline constexpr const char* kRest = " HTTP/1.1\r\nhost: t\r\n\r\n";

/// Clients that request large responses and read nothing, until no buffer is free.
struct Hoarders {
  Hoarders(const RunningServer& server, std::uint32_t buffers) {
    const std::uint64_t before = server.stats().requests;
    for (std::uint32_t i = 0; i < buffers; ++i) {
      clients.push_back(std::make_unique<Client>(server.port(), 4096));
    }
    EXPECT_TRUE(
        server.eventually([&](const ServerStats& s) { return s.connections.used > buffers; }));
    for (auto& client : clients) EXPECT_TRUE(client->send("GET /100000000" + std::string(kRest)));
    EXPECT_TRUE(server.eventually([&](const ServerStats& s) {
      return s.requests == before + buffers && s.write_buffers.used == buffers;
    }));
  }
  std::vector<std::unique_ptr<Client>> clients;
};

/// Four buffers, and no connection is dropped for holding them.
inline ServerConfig hoarded_config() {
  ServerConfig config = small_config();
  config.tcp_write_buffer_pool_size = 4;
  config.write_buffers_per_connection = 2;
  config.socket_send_buffer_size = 8 * 1024;
  config.write_timeout = std::chrono::hours(1);
  config.stall_grace = std::chrono::hours(1);
  config.high_watermark = 1.0;
  config.critical_watermark = 1.0;
  return config;
}

}  // namespace weir::inline v0::inline server::testkit
