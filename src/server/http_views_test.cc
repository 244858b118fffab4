// What handlers get: views into the connection's region, and an arena only on request.
#include <algorithm>
#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "weir/experimental/server/body_buffer.h"

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::every_loop;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;

TEST(HttpViews, SimpleGetRequest) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest& r) {
                           EXPECT_EQ(r.meta.method, "GET");
                           EXPECT_EQ(r.method, http::Method::kGet);
                           EXPECT_EQ(r.meta.scheme, "http");
                           EXPECT_EQ(r.meta.authority, "example.org");
                           EXPECT_EQ(r.meta.path, "/a?b=c");
                           EXPECT_EQ(r.version, HttpVersion::k11);
                           EXPECT_EQ(r.body_length, 0U);
                           EXPECT_EQ(r.headers->value(http::FieldId::kUserAgent), "test");
                           EXPECT_EQ(r.peer.ip[0], 127);
                           EXPECT_EQ(s.peer(), r.peer);
                           s.user_data = new std::string;
                         };
                         h.header = [](ServerStream& s, const http::HeaderView& header) {
                           auto* seen = static_cast<std::string*>(s.user_data);
                           seen->append(header.name).append("=").append(header.value).append(";");
                         };
                         h.complete = [](ServerStream& s) {
                           auto* seen = static_cast<std::string*>(s.user_data);
                           EXPECT_EQ(reply(s, 200, *seen), SendResult::kSent);
                           delete seen;
                         };
                       }));
  Client client(server.port());
  const Answer answer = client.ask(
      "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\nX-One:  1 \r\n\r\n");
  EXPECT_EQ(answer.body, "Host=example.org;User-Agent=test;X-One=1;");
}

TEST(HttpViews, PostBodySingleChunk) {
  static std::atomic<int> pieces{0};
  pieces = 0;
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& h) {
        h.headers = [](ServerStream&, const ServerRequest& r) { EXPECT_EQ(r.body_length, 11U); };
        h.body = [](ServerStream&, const http::BodyChunk& c) {
          ++pieces;
          EXPECT_EQ(c.text(), "hello world");
          EXPECT_TRUE(c.last());
        };
        h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent); };
      }));
  Client client(server.port());
  EXPECT_EQ(
      client.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 11\r\n\r\nhello world").status,
      200);
  EXPECT_EQ(pieces.load(), 1);
}

TEST(HttpViews, PostBodyMultipleChunks) {
  static std::atomic<int> pieces{0};
  static std::atomic<int> lasts{0};
  pieces = lasts = 0;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.body = [](ServerStream&, const http::BodyChunk& c) {
                           ++pieces;
                           if (c.last()) ++lasts;
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(s.body_bytes_received(), 300'000U);
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 300000\r\n\r\n"));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(client.send(std::string(10'000, 'x')));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_GT(pieces.load(), 1);
  EXPECT_EQ(lasts.load(), 1);
}

/// Takes an arena and collects the body there.
void buffering(ScriptedHandler& h) {
  h.headers = [](ServerStream& s, const ServerRequest&) {
    const ArenaAnswer answer = s.acquire_arena();
    ASSERT_EQ(answer.status, ArenaStatus::kGranted);
    s.make_state<BodyBuffer>() = BodyBuffer(*answer.arena);
  };
  h.body = [](ServerStream& s, const http::BodyChunk& c) {
    EXPECT_TRUE(s.state<BodyBuffer>().append(c));
  };
  h.complete = [](ServerStream& s) {
    EXPECT_EQ(reply(s, 200, s.state<BodyBuffer>().get(), BodyLife::kStream), SendResult::kSent);
  };
}

TEST(HttpViews, BufferingHandlerReceivesCompleteBody) {
  RunningServer server(small_config(), every_loop(buffering));
  Client client(server.port());
  std::string body;
  for (int i = 0; body.size() < 200'000; ++i) body += std::to_string(i) + ",";
  ASSERT_TRUE(client.send(
      "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n"));
  ASSERT_TRUE(client.send(body));
  EXPECT_EQ(client.read().body, body);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 0; }))
      << "released when the stream ended";
  EXPECT_EQ(server.stats().arenas.peak, 1U);
}

TEST(HttpViews, StreamingHandlerZeroCopy) {
  static std::uintptr_t lowest = 0;
  static std::uintptr_t highest = 0;
  lowest = UINTPTR_MAX;
  highest = 0;
  const ServerConfig config = small_config();
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.body = [](ServerStream&, const http::BodyChunk& c) {
                           const auto at = reinterpret_cast<std::uintptr_t>(c.data);
                           if (c.len == 0) return;
                           lowest = std::min(lowest, at);
                           highest = std::max(highest, at + c.len);
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\n"));
  ASSERT_TRUE(client.send(std::string(1'000'000, 'x')));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_LE(highest - lowest, config.conn_decrypted_buf_size) << "all views lie in one region";
  EXPECT_EQ(server.stats().bytes_copied_in, 0U) << "received once, moved never";
}

TEST(HttpViews, HandlerArenaLazyAcquisition) {
  static std::promise<void> before;
  static std::promise<void> after;
  before = {};
  after = {};
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& h) {
        h.headers = [](ServerStream& s, const ServerRequest&) {
          EXPECT_EQ(s.arena(), nullptr);
          before.set_value();
        };
        h.body = [](ServerStream& s, const http::BodyChunk& c) {
          const ArenaAnswer answer = s.acquire_arena();
          ASSERT_EQ(answer.status, ArenaStatus::kGranted);
          EXPECT_EQ(s.acquire_arena().arena, answer.arena) << "asking again gives the same";
          if (!c.last()) after.set_value();
        };
        h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent); };
      }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 4\r\n\r\n"));
  before.get_future().wait();
  EXPECT_EQ(server.stats().arenas.used, 0U) << "headers alone take none";
  ASSERT_TRUE(client.send("ab"));
  after.get_future().wait();
  EXPECT_EQ(server.stats().arenas.used, 1U);
  EXPECT_EQ(client.ask("cd").status, 200);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 0; }));
}

TEST(HttpViews, HandlerNoArenaForStreaming) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           s.make_state<std::uint64_t>() = 0;
                         };
                         h.body = [](ServerStream& s, const http::BodyChunk& c) {
                           s.state<std::uint64_t>() += c.len;
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, std::to_string(s.state<std::uint64_t>())),
                                     SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\n"));
    ASSERT_TRUE(client.send(std::string(100'000, 'x')));
    EXPECT_EQ(client.read().body, "100000");
  }
  EXPECT_EQ(server.stats().arenas.peak, 0U);
}

TEST(HttpViews, ConcurrentStreamsIndependentViews) {
  // Eight uploads in small, alternating pieces; each handler must see only its own letter.
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest& r) {
                           s.make_state<char>() = r.meta.path[1];
                         };
                         h.body = [](ServerStream& s, const http::BodyChunk& c) {
                           const char own = s.state<char>();
                           EXPECT_TRUE(std::all_of(c.text().begin(), c.text().end(),
                                                   [own](char letter) { return letter == own; }));
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  std::vector<std::unique_ptr<Client>> clients;
  for (char letter = 'a'; letter < 'i'; ++letter) {
    clients.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(clients.back()->send("POST /" + std::string(1, letter) +
                                     " HTTP/1.1\r\nhost: t\r\ncontent-length: 50000\r\n\r\n"));
  }
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      ASSERT_TRUE(clients[i]->send(std::string(1000, static_cast<char>('a' + i))));
    }
  }
  for (auto& client : clients) EXPECT_EQ(client->read().status, 200);
}

}  // namespace
}  // namespace weir::inline v0::inline server
