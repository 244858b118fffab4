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

constexpr std::uint32_t kRefused = 7;

/// Sends `body` in frames of `piece` bytes, without regard to windows.
void send_body(H2Client& client, std::uint32_t id, std::string_view body, std::size_t piece) {
  while (body.size() > piece) {
    client.send(wire::data(id, body.substr(0, piece)));
    body.remove_prefix(piece);
  }
  client.send(wire::data(id, body, wire::kEnd));
}

/// Collects bodies and answers with what was received.
struct Collector {
  std::string body;
  std::string trailers;
  int lasts = 0;
  int completes = 0;

  void bind(ScriptedHandler& handler) {
    handler.body = [this](ServerStream&, const http::BodyChunk& chunk) {
      EXPECT_EQ(lasts, 0);
      body += chunk.text();
      lasts += chunk.last() ? 1 : 0;
    };
    handler.trailers = [this](ServerStream&, const http::HeaderList& list) {
      EXPECT_EQ(lasts, 0);
      for (const http::HeaderView& field : list) {
        trailers += std::string(field.name) + "=" + std::string(field.value) + ";";
      }
    };
    handler.complete = [this](ServerStream& stream) {
      ++completes;
      EXPECT_EQ(reply(stream, 200, std::to_string(body.size())), SendResult::kSent);
    };
  }
};

TEST(H2Request, HeadIsTheSameAsInHttp1) {
  std::string seen;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.headers = [&](ServerStream& stream, const ServerRequest& request) {
                           EXPECT_EQ(request.version, HttpVersion::k2);
                           EXPECT_EQ(request.method, http::Method::kGet);
                           EXPECT_EQ(request.meta.authority, "a");
                           EXPECT_EQ(request.meta.path, "/x?y=1");
                           EXPECT_EQ(request.body_length, std::uint64_t{0});
                           EXPECT_FALSE(request.upgrade);
                           EXPECT_TRUE(request.te_trailers);
                           EXPECT_FALSE(request.secure);
                           EXPECT_GT(request.peer.port, 0);
                           for (const http::HeaderView& field : *request.headers) {
                             seen += std::string(field.name) + "=" + std::string(field.value) + ";";
                           }
                           EXPECT_EQ(reply(stream, 200, "ok"), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.ask(
      wire::with(wire::get("/x?y=1"),
                 {{"cookie", "a=1"}, {"accept", "*/*"}, {"cookie", "b=2"}, {"te", "trailers"}}));
  EXPECT_EQ(client.finish(id).status, 200);
  EXPECT_NE(seen.find("cookie=a=1; b=2;"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("cookie=b=2"), std::string::npos) << seen;
  EXPECT_EQ(seen.find(':'), std::string::npos) << "a pseudo-header: " << seen;
}

TEST(H2Request, BodyComesInOrderAndEndsOnce) {
  Collector seen;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { seen.bind(h); }));
  H2Client client(server.port());
  const std::string body = pattern(60'000);
  const std::uint32_t id = client.post("/");
  send_body(client, id, body, 7'001);
  EXPECT_EQ(client.finish(id).body, "60000");
  EXPECT_EQ(seen.body, body);
  EXPECT_EQ(seen.lasts, 1);
  EXPECT_EQ(seen.completes, 1);
}

TEST(H2Request, LargeBodyFollowsTheWindowsThatAreOpened) {
  Collector seen;
  ServerConfig config = small_config();
  config.http2.connection_window_bytes = 65535;
  RunningServer server(config, every_loop([&](ScriptedHandler& h) { seen.bind(h); }));
  H2Client client(server.port());
  ASSERT_TRUE(client.in_step());  // SETTINGS are acknowledged: windows begin at 16 KB
  const std::string body = pattern(400'000);
  const std::uint32_t id = client.post("/");
  std::int64_t stream_window = 16 * 1024;
  std::int64_t connection_window = 65535;
  std::size_t sent = 0;
  while (sent < body.size()) {
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(
        0, std::min({stream_window, connection_window, std::int64_t{16 * 1024}})));
    if (room == 0) {
      const auto frame = client.next();
      ASSERT_TRUE(frame.has_value());
      ASSERT_FALSE(frame->is(http::h2::FrameType::kRstStream));
      if (!frame->is(http::h2::FrameType::kWindowUpdate)) continue;
      (frame->header.stream == 0 ? connection_window : stream_window) += frame->word();
      continue;
    }
    const std::string piece = body.substr(sent, room);
    sent += piece.size();
    stream_window -= static_cast<std::int64_t>(piece.size());
    connection_window -= static_cast<std::int64_t>(piece.size());
    client.send(wire::data(id, piece, sent == body.size() ? wire::kEnd : 0));
  }
  EXPECT_EQ(client.finish(id).body, "400000");
  EXPECT_EQ(seen.body, body);
}

/// Pauses at the head; release() resumes from another thread.
struct Pausing : Collector {
  void bind_paused(ScriptedHandler& handler) {
    bind(handler);
    handler.headers = [this](ServerStream& stream, const ServerRequest& request) {
      if (request.meta.path != "/paused") return;
      stream.pause();
      held.set_value(&stream);
    };
    handler.complete = [this, inner = handler.complete](ServerStream& stream) {
      if (body.empty() && completes == 0 && lasts == 0) {
        EXPECT_EQ(reply(stream, 200, "other"), SendResult::kSent);
        return;
      }
      inner(stream);
    };
  }
  void release() {
    ServerStream* stream = held.get_future().get();
    std::promise<void> done;
    stream->loop().post([&] {
      stream->resume();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::promise<ServerStream*> held;
};

TEST(H2Request, WhatAPausedHandlerWillNotTakeWaitsInItsLease) {
  Pausing seen;
  RunningServer server(small_config(),
                       every_loop([&](ScriptedHandler& h) { seen.bind_paused(h); }));
  // A client may use 65,535 bytes before it receives our SETTINGS.
  H2Client client(server.port(), {.settings = {}, .acknowledge = false});
  const std::string body = pattern(65'535);
  const std::uint32_t id = client.post("/paused");
  send_body(client, id, body, 16 * 1024);
  ASSERT_TRUE(client.in_step());
  EXPECT_EQ(server.stats().body_leases.used, 1U);
  // Other streams on the same connection are not delayed.
  EXPECT_EQ(client.finish(client.get("/")).body, "other");
  EXPECT_TRUE(seen.body.empty());
  seen.release();
  EXPECT_EQ(client.finish(id).body, "65535");
  EXPECT_EQ(seen.body, body);
  EXPECT_EQ(seen.lasts, 1);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.body_leases.used == 0; }));
}

TEST(H2Request, TrailersComeAfterTheBody) {
  Collector seen;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { seen.bind(h); }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/");
  client.send(wire::data(id, "body"));
  client.send(wire::headers(id, {{"checksum", "17"}, {"x", "y"}}));
  EXPECT_EQ(client.finish(id).body, "4");
  EXPECT_EQ(seen.trailers, "checksum=17;x=y;");
  EXPECT_EQ(seen.lasts, 1);
}

TEST(H2Request, TrailersOfAPausedStreamAreKept) {
  Pausing seen;
  RunningServer server(small_config(),
                       every_loop([&](ScriptedHandler& h) { seen.bind_paused(h); }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/paused");
  client.send(wire::data(id, "body"));
  client.send(wire::headers(id, {{"checksum", "17"}, {"x", std::string(3'000, 'z')}}));
  ASSERT_TRUE(client.in_step());
  EXPECT_TRUE(seen.trailers.empty());
  seen.release();
  EXPECT_EQ(client.finish(id).body, "4");
  EXPECT_EQ(seen.trailers, "checksum=17;x=" + std::string(3'000, 'z') + ";");
}

TEST(H2Request, ContinueIsSaidWhenTheBodyIsWanted) {
  Collector seen;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) { seen.bind(h); }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/", {{"expect", "100-continue"}});
  while (client.reply(id).informed.empty() && client.next()) {
  }
  EXPECT_EQ(client.reply(id).informed, std::vector<int>{100});
  client.send(wire::data(id, "body", wire::kEnd));
  EXPECT_EQ(client.finish(id).body, "4");
}

TEST(H2Request, ContinueIsNotSaidWhenTheAnswerIsThere) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest& request) {
                           EXPECT_TRUE(request.expect_continue);
                           EXPECT_EQ(reply(stream, 417, ""), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/", {{"expect", "100-continue"}});
  const Reply& answer = client.finish(id);
  EXPECT_EQ(answer.status, 417);
  EXPECT_TRUE(answer.informed.empty());
}

TEST(H2Request, WithoutALeaseABodyIsRefusedAndTheConnectionGoesOn) {
  ServerConfig config = small_config();
  config.body_lease_pool_size = 1;
  Pausing seen;
  RunningServer server(config, every_loop([&](ScriptedHandler& h) { seen.bind_paused(h); }));
  H2Client client(server.port());
  const std::uint32_t first = client.post("/paused");
  const std::uint32_t second = client.post("/");
  client.send(wire::data(second, pattern(16'000)));
  EXPECT_EQ(client.finish(second).reset, kRefused);
  // The connection's window was restored: as many bytes as before may follow.
  EXPECT_EQ(client.finish(client.get("/")).body, "other");
  client.send(wire::data(first, "body", wire::kEnd));
  seen.release();
  EXPECT_EQ(client.finish(first).body, "4");
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.refused_by(RefuseReason::kBodyLease), 1U);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.body_leases.used == 0; }));
}

TEST(H2Request, StreamsAreBoundedOverAllConnections) {
  ServerConfig config = small_config();
  config.streams_max = 3;
  config.reserved_streams = 1;
  std::mutex mutex;
  std::vector<ServerStream*> open;
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream& stream) {
                           const std::lock_guard lock(mutex);
                           open.push_back(&stream);
                         };
                       }));
  H2Client one(server.port());
  H2Client two(server.port());
  one.get("/");
  ASSERT_TRUE(one.in_step());
  const std::uint32_t served = two.get("/");
  ASSERT_TRUE(two.in_step());
  const std::uint32_t refused = two.get("/");  // one place is reserved for critical requests
  EXPECT_EQ(two.finish(refused).reset, kRefused);
  EXPECT_EQ(server.stats().streams.used, 2U);
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kStreams), 1U);
  for (ServerStream* stream : open) {
    stream->loop().post([stream] { EXPECT_EQ(reply(*stream, 200, "now"), SendResult::kSent); });
  }
  EXPECT_EQ(two.finish(served).body, "now");
  EXPECT_EQ(one.finish(1).body, "now");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
}

TEST(H2Request, ABodyThatDoesNotComeIsNotWaitedFor) {
  ServerConfig config = small_config();
  config.body_timeout = std::chrono::milliseconds(50);
  std::promise<CloseReason> why;
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [](ServerStream& stream) {
                           EXPECT_EQ(reply(stream, 200, "ok"), SendResult::kSent);
                         };
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/");
  client.send(wire::data(id, "x"));
  EXPECT_EQ(client.finish(id).status, 408);
  EXPECT_EQ(why.get_future().get(), CloseReason::kBodyTimeout);
  EXPECT_EQ(client.finish(client.get("/")).status, 200) << "the connection lives on";
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.streams.used == 0 && s.body_leases.used == 0; }));
}

TEST(H2Request, ABodyThatMayBeSilentIsWaitedFor) {
  ServerConfig config = small_config();
  config.body_timeout = std::chrono::milliseconds(50);
  std::atomic<int> aborted{0};
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest& request) {
                           if (request.meta.path == "/silent") stream.expect_silence();
                         };
                         handler.complete = [](ServerStream& stream) {
                           EXPECT_EQ(reply(stream, 200, "ok"), SendResult::kSent);
                         };
                         handler.aborted = [&](ServerStream&, CloseReason) { ++aborted; };
                       }));
  H2Client client(server.port());
  const std::uint32_t silent = client.post("/silent");
  client.send(wire::data(silent, "x"));
  const std::uint32_t other = client.post("/");
  client.send(wire::data(other, "x"));
  EXPECT_EQ(client.finish(other).status, 408) << "so the time of the first has passed, too";
  client.send(wire::data(silent, "y", true));
  EXPECT_EQ(client.finish(silent).status, 200);
  EXPECT_EQ(aborted, 1);
}

TEST(H2Request, ABodyUnlikeItsLengthIsReset) {
  std::promise<CloseReason> why;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.post("/", {{"content-length", "5"}});
  client.send(wire::data(id, "four", wire::kEnd));
  EXPECT_EQ(client.finish(id).reset, std::uint32_t{1});
  EXPECT_EQ(why.get_future().get(), CloseReason::kProtocol);
}

TEST(H2Request, AResetByTheClientReachesTheHandler) {
  std::promise<CloseReason> why;
  std::promise<void> begun;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream&) { begun.set_value(); };
                         handler.aborted = [&](ServerStream& stream, CloseReason reason) {
                           EXPECT_EQ(reply(stream, 200, "late"), SendResult::kClosed);
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  begun.get_future().wait();
  client.send(wire::rst(id));
  EXPECT_EQ(why.get_future().get(), CloseReason::kClientAbort);
  EXPECT_TRUE(client.in_step());
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.streams.used == 0; }));
}

}  // namespace
}  // namespace weir::inline v0::inline server
