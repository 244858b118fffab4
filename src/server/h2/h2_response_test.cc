#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::every_loop;
using testkit::H2Client;
using testkit::pattern;
using testkit::Reply;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
namespace wire = http::h2::wire;

constexpr unsigned kInitialWindow = 4;

RunningServer::Make answers(std::string body, BodyLife life = BodyLife::kCall) {
  auto kept = std::make_shared<std::string>(std::move(body));
  return every_loop([kept, life](ScriptedHandler& handler) {
    handler.complete = [kept, life](ServerStream& stream) {
      if (life == BodyLife::kStream) {
        EXPECT_EQ(reply(stream, 200, *kept, life), SendResult::kSent);
        return;
      }
      std::string passing = *kept;
      EXPECT_EQ(reply(stream, 200, passing), SendResult::kSent);
      std::fill(passing.begin(), passing.end(), '!');  // the response must have its own copy
    };
  });
}

/// Sends `size` bytes by send_data() whenever there is room.
struct Streamer {
  explicit Streamer(std::size_t size) : body(pattern(size)) {}

  void bind(ScriptedHandler& handler) {
    handler.complete = [this](ServerStream& stream) {
      stream.make_state<std::size_t>() = 0;
      ASSERT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                SendResult::kSent);
      proceed(stream);
    };
    handler.writable = [this](ServerStream& stream) {
      ++told;
      proceed(stream);
    };
    handler.finished = [this](ServerStream&) { ++finished; };
    handler.aborted = [this](ServerStream&, CloseReason reason) {
      why = reason;
      ++aborted;
    };
  }
  void proceed(ServerStream& stream) {
    auto& sent = stream.state<std::size_t>();
    sent += stream.send_data(std::string_view(body).substr(sent), true);
    EXPECT_EQ(stream.body_bytes_sent(), sent);
  }

  const std::string body;
  std::atomic<int> told{0};
  std::atomic<int> finished{0};
  std::atomic<int> aborted{0};
  std::atomic<CloseReason> why{CloseReason::kNone};
};

TEST(H2Response, HeadHasLengthAndNoBody) {
  RunningServer server(small_config(), answers("hello"));
  H2Client client(server.port());
  wire::Fields fields = wire::get();
  fields[0].second = "HEAD";
  const Reply& answer = client.finish(client.ask(fields));
  EXPECT_EQ(answer.field("content-length"), "5");
  EXPECT_EQ(answer.data_frames, 0U);
  EXPECT_TRUE(answer.ended);
}

TEST(H2Response, AWindowOfOneByteBringsOneByte) {
  RunningServer server(small_config(), answers("hello"));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 1}}, .open_windows = false});
  const std::uint32_t id = client.get("/");
  const auto first = client.until(http::h2::FrameType::kData, id);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->payload, "h");
  EXPECT_FALSE(first->ends());
  ASSERT_TRUE(client.in_step());
  EXPECT_EQ(client.reply(id).body, "h") << "no more than the window";
  client.send(wire::window_update(id, 2));
  EXPECT_EQ(client.until(http::h2::FrameType::kData, id)->payload, "el");
  client.send(wire::window_update(id, 100));
  EXPECT_EQ(client.finish(id).body, "hello");
}

TEST(H2Response, AWindowMayBecomeNegative) {
  Streamer source(30);
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { source.bind(h); }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 10}}, .open_windows = false});
  const std::uint32_t id = client.get("/");
  ASSERT_TRUE(client.until(http::h2::FrameType::kData, id).has_value());
  client.send(wire::settings({{kInitialWindow, 3}}));  // the window is now -7
  client.send(wire::window_update(id, 7));             // 0
  ASSERT_TRUE(client.in_step());
  EXPECT_EQ(client.reply(id).body.size(), 10U);
  client.send(wire::window_update(id, 1));
  ASSERT_TRUE(client.until(http::h2::FrameType::kData, id).has_value());
  EXPECT_EQ(client.reply(id).body.size(), 11U);
  client.send(wire::settings({{kInitialWindow, 1000}}));
  EXPECT_EQ(client.finish(id).body, source.body);
}

TEST(H2Response, WhatWindowsHoldBackIsKeptWhatever) {
  const std::string body = pattern(200'000);
  for (const BodyLife life : {BodyLife::kCall, BodyLife::kStream}) {
    RunningServer server(small_config(), answers(body, life));
    H2Client client(server.port());
    EXPECT_EQ(client.finish(client.get("/")).body, body);
    EXPECT_TRUE(server.eventually(
        [](const ServerStats& s) { return s.write_buffers.used == 0 && s.streams.used == 0; }));
  }
}

TEST(H2Response, FromTheArenaWhenNoBufferIsThere) {
  const std::string body = pattern(100'000);
  ServerConfig config = small_config();
  config.write_buffers_per_connection = 1;
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream& stream) {
                           ASSERT_EQ(stream.acquire_arena().status, ArenaStatus::kGranted);
                           EXPECT_EQ(reply(stream, 200, body), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.get("/")).body, body);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.arenas.used == 0; }));
}

TEST(H2Response, MoreThanAConnectionMayHoldIsInvalid) {
  ServerConfig config = small_config();
  config.write_buffers_per_connection = 2;
  const std::string body = pattern(3 * config.tcp_write_buffer_size);
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream& stream) {
                           EXPECT_EQ(reply(stream, 200, body), SendResult::kInvalid);
                           EXPECT_EQ(reply(stream, 500, ""), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.get("/")).status, 500);
}

TEST(H2Response, BlockedResponsesAreTriedAgainAndAllArrive) {
  // Each needs two buffers, and a connection has four: most responses are blocked on others.
  ServerConfig config = small_config();
  config.write_buffers_per_connection = 4;
  const std::string body = pattern(50'000);
  std::atomic<int> blocked{0};
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream& stream) {
                           if (reply(stream, 200, body) == SendResult::kBlocked) ++blocked;
                         };
                         handler.writable = handler.complete;
                       }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 1000}}});
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(client.get("/"));
  for (const std::uint32_t id : ids) EXPECT_EQ(client.finish(id).body, body);
  EXPECT_GT(blocked.load(), 0);
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.write_buffers.used == 0 && s.streams.used == 0; }));
}

TEST(H2Response, StreamedBodyIsToldWhenThereIsRoom) {
  Streamer source(3'000'000);
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { source.bind(h); }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  EXPECT_TRUE(client.finish(id).body == source.body);
  EXPECT_GT(source.told.load(), 10);
  EXPECT_TRUE(server.eventually([&](const ServerStats&) { return source.finished == 1; }));
}

TEST(H2Response, StreamsTakeTurns) {
  Streamer source(500'000);
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { source.bind(h); }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 0x7fffffff}}});
  std::string requests = wire::window_update(0, 0x7fffffff - 65535);
  const std::vector<std::uint32_t> ids = {1, 3, 5, 7};
  for (const std::uint32_t id : ids) requests += wire::headers(id, wire::get());
  client.send(requests);
  const auto size_of = [&](std::uint32_t id) { return client.reply(id).body.size(); };
  const auto over = [&](std::uint32_t id) { return client.reply(id).ended; };
  // From the time when all have begun until the first ends, no stream gets far ahead.
  while (std::any_of(ids.begin(), ids.end(), [&](auto id) { return size_of(id) == 0; })) {
    ASSERT_TRUE(client.next().has_value());
  }
  std::vector<std::size_t> before;
  for (const std::uint32_t id : ids) before.push_back(size_of(id));
  while (std::none_of(ids.begin(), ids.end(), over)) {
    ASSERT_TRUE(client.next().has_value());
    std::vector<std::size_t> grown;
    for (std::size_t i = 0; i < ids.size(); ++i) grown.push_back(size_of(ids[i]) - before[i]);
    const auto [least, most] = std::minmax_element(grown.begin(), grown.end());
    ASSERT_LE(*most - *least, 3U * 16 * 1024);
  }
  for (const std::uint32_t id : ids) EXPECT_TRUE(client.finish(id).body == source.body);
}

TEST(H2Response, AClosedWindowIsNotWaitedForForever) {
  ServerConfig config = small_config();
  config.write_timeout = std::chrono::milliseconds(60);
  Streamer source(1000);
  RunningServer server(config, every_loop([&](ScriptedHandler& h) { source.bind(h); }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 0}}, .open_windows = false});
  const std::uint32_t blocked = client.get("/");
  const Reply& answer = client.finish(blocked);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.reset, std::uint32_t{8});  // CANCEL
  EXPECT_EQ(source.why.load(), CloseReason::kWriteTimeout);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
  EXPECT_TRUE(client.in_step()) << "the connection lives on";
}

TEST(H2Response, AWindowOpenedByteByByteIsTooSlow) {
  ServerConfig config = small_config();
  config.write_timeout = std::chrono::milliseconds(200);
  config.write_min_rate = 512;  // 102 bytes in that time
  Streamer source(100'000);
  RunningServer server(config, every_loop([&](ScriptedHandler& h) { source.bind(h); }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 1}}, .open_windows = false});
  const std::uint32_t id = client.get("/");
  // One byte per answer, so that the budget of WINDOW_UPDATE frames does not end it.
  io::ThreadParker parker;
  for (int i = 0; i < 100 && !client.reply(id).reset; ++i) {
    client.send(wire::window_update(id, 1));
    parker.park_until(io::monotonic_now() + std::chrono::milliseconds(10));
    if (i % 5 == 4 && !client.in_step()) break;
  }
  EXPECT_EQ(client.finish(id).reset, std::uint32_t{8});
  EXPECT_EQ(source.why.load(), CloseReason::kWriteTimeout);
  EXPECT_LT(client.reply(id).body.size(), 110U);
}

TEST(H2Response, TheEndComesWithTheLastByteWhenTheLengthIsKnown) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& handler) {
        handler.complete = [](ServerStream& stream) {
          ASSERT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = 5}),
                    SendResult::kSent);
          EXPECT_EQ(stream.send_data("hel", false), 3U);
          EXPECT_EQ(stream.send_data("lo", false), 2U);
          EXPECT_EQ(stream.send_data("", true), 0U);
        };
      }));
  H2Client client(server.port());
  const Reply& answer = client.finish(client.get("/"));
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.data_frames, 2U);
}

TEST(H2Response, TheEndAloneIsSentWhenTheLengthIsNotKnown) {
  std::atomic<int> finished{0};
  RunningServer server(
      small_config(), every_loop([&](ScriptedHandler& handler) {
        handler.complete = [](ServerStream& stream) {
          ASSERT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                    SendResult::kSent);
          EXPECT_EQ(stream.send_data("hello", false), 5U);
          EXPECT_EQ(stream.send_data("", true), 0U);
        };
        handler.finished = [&](ServerStream&) { ++finished; };
      }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 5}}});
  const Reply& answer = client.finish(client.get("/"));
  EXPECT_EQ(answer.body, "hello");
  EXPECT_TRUE(answer.ended);
  EXPECT_TRUE(server.eventually([&](const ServerStats&) { return finished == 1; }));
}

TEST(H2Response, MoreOrLessThanAnnouncedIsReset) {
  std::vector<CloseReason> why;
  RunningServer server(
      small_config(), every_loop([&](ScriptedHandler& handler) {
        handler.headers = [](ServerStream& stream, const ServerRequest& request) {
          ASSERT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = 5}),
                    SendResult::kSent);
          const bool more = request.meta.path == "/more";
          EXPECT_EQ(stream.send_data(more ? "sixsix" : "four", true), 0U);
        };
        handler.aborted = [&](ServerStream&, CloseReason reason) { why.push_back(reason); };
      }));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.get("/more")).reset, std::uint32_t{2});
  EXPECT_EQ(client.finish(client.get("/less")).reset, std::uint32_t{2});
  EXPECT_EQ(why, (std::vector<CloseReason>{CloseReason::kReset, CloseReason::kReset}));
}

TEST(H2Response, TrailersEndTheBody) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& handler) {
        handler.complete = [](ServerStream& stream) {
          const ResponseField type[] = {{"Content-Type", "application/grpc"}};
          const ResponseField trailers[] = {{"grpc-status", "0"}};
          ASSERT_EQ(stream.send_headers({.status = 200, .fields = type, .content_length = {}}),
                    SendResult::kSent);
          EXPECT_EQ(stream.send_data("hello", false), 5U);
          EXPECT_EQ(stream.send_trailers(trailers), SendResult::kSent);
        };
      }));
  H2Client client(server.port());
  const Reply& answer = client.finish(client.get("/"));
  EXPECT_EQ(answer.field("content-type"), "application/grpc") << "names go out in lower case";
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.trailers, (wire::Fields{{"grpc-status", "0"}}));
}

TEST(H2Response, TrailersThatComeAloneAreSentAtOnce) {
  std::atomic<ServerStream*> open{nullptr};
  RunningServer server(
      small_config(), every_loop([&](ScriptedHandler& handler) {
        handler.headers = [&](ServerStream& stream, const ServerRequest&) {
          ASSERT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                    SendResult::kSent);
          EXPECT_EQ(stream.send_data("hello", false), 5U);
          open = &stream;
        };
      }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  ASSERT_TRUE(client.until(http::h2::FrameType::kData, id));
  ASSERT_TRUE(client.in_step());
  open.load()->loop().post([&] {
    const ResponseField trailers[] = {{"grpc-status", "0"}};
    EXPECT_EQ(open.load()->send_trailers(trailers), SendResult::kSent);
  });
  EXPECT_EQ(client.finish(id).trailers, (wire::Fields{{"grpc-status", "0"}}));
}

TEST(H2Response, InformationComesBeforeTheAnswer) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& handler) {
        handler.complete = [](ServerStream& stream) {
          const ResponseField link[] = {{"link", "</a.css>"}};
          EXPECT_EQ(stream.send_headers({.status = 103, .fields = link, .content_length = {}}),
                    SendResult::kSent);
          EXPECT_FALSE(stream.response_started());
          EXPECT_EQ(stream.send_headers({.status = 101, .fields = {}, .content_length = {}}),
                    SendResult::kInvalid);
          EXPECT_EQ(reply(stream, 200, "ok"), SendResult::kSent);
        };
      }));
  H2Client client(server.port());
  const Reply& answer = client.finish(client.get("/"));
  EXPECT_EQ(answer.informed, std::vector<int>{103});
  EXPECT_EQ(answer.body, "ok");
}

TEST(H2Response, FieldsThatWouldBreakFramingAreInvalid) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& handler) {
        handler.complete = [](ServerStream& stream) {
          for (const ResponseField& field :
               {ResponseField{"connection", "close"}, ResponseField{"a b", "c"},
                ResponseField{"x", "y\r\nz: 1"}, ResponseField{"transfer-encoding", "chunked"}}) {
            EXPECT_EQ(stream.send_response(
                          {.status = 200, .fields = {&field, 1}, .content_length = {}}, "x"),
                      SendResult::kInvalid)
                << field.name;
          }
          stream.send_503();
        };
      }));
  H2Client client(server.port());
  const Reply& answer = client.finish(client.get("/"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.field("retry-after"), "1");
  EXPECT_EQ(answer.field("x-weir-reason"), "no_place");
}

TEST(H2Response, ResetIsSeenByTheClientAndTheHandler) {
  std::promise<CloseReason> why;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [](ServerStream& stream) { stream.reset(); };
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.get("/")).reset, std::uint32_t{2});
  EXPECT_EQ(why.get_future().get(), CloseReason::kReset);
}

TEST(H2Response, WithoutWriteBuffersShortAnswersStillGoOut) {
  // All buffers are held by clients that do not read.
  ServerConfig config = small_config();
  config.tcp_write_buffer_pool_size = 2;
  config.write_buffers_per_connection = 2;
  config.socket_send_buffer_size = 4096;
  config.backpressure_timeout = config.stall_grace = std::chrono::seconds(30);
  Streamer source(5'000'000);
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         source.bind(handler);
                         handler.headers = [](ServerStream& stream, const ServerRequest& request) {
                           if (request.meta.path == "/503") stream.send_503();
                         };
                       }));
  H2Client modest(server.port());
  ASSERT_TRUE(modest.in_step());
  const H2Client::Options deaf = {
      .settings = {{kInitialWindow, 0x7fffffff}}, .open_windows = false, .receive_buffer = 4096};
  H2Client one(server.port(), deaf);
  H2Client two(server.port(), deaf);
  ASSERT_TRUE(one.in_step() && two.in_step());
  for (H2Client* client : {&one, &two}) {
    client->send(wire::window_update(0, 0x7fffffff - 65535));
    client->get("/");
  }
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.write_buffers.used == 2; }));
  EXPECT_EQ(modest.finish(modest.get("/503")).status, 503);
  EXPECT_TRUE(modest.in_step());
}

}  // namespace
}  // namespace weir::inline v0::inline server
