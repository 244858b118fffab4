// HTTP/2 with failures below it: no memory for the codec, at any allocation; a socket that fails at
// any call. The connection ends with a counted reason; nothing leaks; others continue.
#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "breakable_testing.h"
#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::BreakableCalls;
using testkit::Client;
using testkit::every_loop;
using testkit::H2Client;
using testkit::reply;
using testkit::ScriptedHandler;
using testkit::small_config;

constexpr std::uint32_t kToldToBeCalm =
    static_cast<std::uint32_t>(http::h2::ErrorCode::kEnhanceYourCalm);

std::uint64_t ended_by(const ServerStats& stats, http::h2::SessionEnd why) {
  return stats.h2_ended[static_cast<std::size_t>(why)];
}

bool nothing_held(const ServerStats& s, std::uint64_t connections) {
  return s.connections.used == connections && s.h2_sessions.used == 0 && s.streams.used == 0 &&
         s.body_leases.used == 0 && s.write_buffers.used == 0 && s.read_regions.used == 0 &&
         s.arenas.used == 0;
}

/// Answers with a head of 2 KB, so that the answer needs memory of the codec too.
testkit::RunningServer::Make answer_largely(std::atomic<int>& open) {
  return every_loop([&open](ScriptedHandler& handler) {
    handler.headers = [&open](ServerStream&, const ServerRequest&) { ++open; };
    handler.complete = [](ServerStream& stream) {
      const std::string value(500, 'v');
      const std::vector<ResponseField> fields = {
          {"x-a", value}, {"x-b", value}, {"x-c", value}, {"x-d", value}};
      static_cast<void>(stream.send_response(
          {.status = 200, .fields = fields, .content_length = {}}, "a body", BodyLife::kStream));
    };
    handler.finished = [&open](ServerStream&) { --open; };
    handler.aborted = [&open](ServerStream&, CloseReason) { --open; };
  });
}

/// A client that makes the codec need memory: streams that stay open, fields in the HPACK table.
/// Returns whether its connection is still open.
bool ask_for_much(H2Client& client) {
  for (int i = 0; i < 90; ++i) {
    client.ask(http::h2::wire::with(http::h2::wire::get("/"),
                                    {{"x-" + std::to_string(i), std::string(64, 'f')}}));
  }
  return client.in_step();
}

TEST(H2Fault, WhereverTheCodecsMemoryEndsTheConnectionEndsWithIt) {
  std::atomic<int> open{0};
  int refused = 0;
  int broke = 0;
  int lived = 0;
  for (std::uint32_t bytes = 16 * 1024; bytes <= 96 * 1024; bytes += 1499) {
    SCOPED_TRACE(bytes);
    ServerConfig config = small_config();
    config.http2.session_bytes_max = bytes / 16 * 16;  // also below the option's minimum
    Server server(config, answer_largely(open));
    ASSERT_TRUE(server.start().has_value());
    Client other(server.port());
    ASSERT_EQ(other.get("/").status, 200);
    {
      H2Client client(server.port(), {.settings = {{4, 0}}});  // no body is sent: streams stay open
      if (ask_for_much(client)) {
        ++lived;
        EXPECT_FALSE(client.goaway_code.has_value());
      } else {
        ASSERT_EQ(client.goaway_code, kToldToBeCalm)
            << "told why, with the last words of the connection";
        EXPECT_FALSE(client.socket().was_reset());
        const ServerStats stats = server.stats();
        const std::uint64_t at_start = stats.refused_by(RefuseReason::kSessions);
        EXPECT_EQ(at_start + ended_by(stats, http::h2::SessionEnd::kMemory), 1U) << "counted once";
        ++(at_start == 1 ? refused : broke);
      }
    }
    EXPECT_TRUE(
        testkit::eventually(server, [](const ServerStats& s) { return nothing_held(s, 1); }));
    EXPECT_EQ(open.load(), 0) << "a handler was not told of its end";
    EXPECT_EQ(other.get("/").status, 200) << "the neighbour";
    EXPECT_EQ(server.stats().critical_shed, 0U);
  }
  EXPECT_GT(refused, 3) << "too little to begin with";
  EXPECT_GT(broke, 10) << "too little for what came";
  EXPECT_GT(lived, 3);
}

TEST(H2Fault, ASocketThatFailsAtAnyCallEndsItsConnectionAndNothingElse) {
  int broke = 0;
  int lived = 0;
  for (const int error : {ECONNRESET, EIO, EPIPE, ENOBUFS}) {
    BreakableCalls breakable;
    io::LoopThreads loops{{.count = 1, .pin = false, .name = "fault"}};
    loops.at(0).use(BreakableCalls::calls());
    loops.start();
    std::atomic<int> open{0};
    Server server(small_config(), loops, answer_largely(open));
    ASSERT_TRUE(server.start().has_value());
    Client other(server.port());
    ASSERT_EQ(other.get("/").status, 200);
    std::uint64_t closed = 0;
    for (int at = 0; at < 24; ++at) {
      SCOPED_TRACE(std::to_string(error) + " at call " + std::to_string(at));
      BreakableCalls::break_at(at, error);
      {
        H2Client client(server.port());
        const std::uint32_t first = client.post("/up");
        client.send(http::h2::wire::data(first, std::string(3000, 'x')));
        client.send(http::h2::wire::data(first, "", http::h2::wire::kEnd));
        bool served = client.finish(first).status == 200 && client.reply(first).ended;
        for (int i = 0; served && i < 4; ++i) served = client.finish(client.get("/")).ended;
        ++(served ? lived : broke);
      }
      BreakableCalls::mend();
      EXPECT_TRUE(
          testkit::eventually(server, [](const ServerStats& s) { return nothing_held(s, 1); }));
      EXPECT_EQ(open.load(), 0);
      EXPECT_EQ(other.get("/").status, 200);
      const ServerStats stats = server.stats();
      std::uint64_t sum = 0;
      for (const std::uint64_t count : stats.closed) sum += count;
      EXPECT_EQ(sum, ++closed) << "each connection was closed for one reason";
    }
    server.stop();
  }
  EXPECT_GT(broke, 20);
  EXPECT_GT(lived, 4) << "it is over after fewer calls than that";
}

}  // namespace
}  // namespace weir::inline v0::inline server
