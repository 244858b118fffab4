// What a handler can do with an HTTP/2 stream besides sending: memory, precedence, a pause.
#include "h2/h2_stream.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/server/body_buffer.h"

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::every_loop;
using testkit::H2Client;
using testkit::pattern;
using testkit::reply;
using testkit::Reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;
namespace wire = http::h2::wire;

/// GET takes an arena and keeps it until the test ends it; POST queues for one and collects.
struct ArenaHandler {
  struct State {
    BodyBuffer body;
  };
  void bind(ScriptedHandler& h) {
    h.headers = [this](ServerStream& s, const ServerRequest& r) {
      State& state = s.make_state<State>();
      const bool collects = r.method == http::Method::kPost;
      if (r.headers->has(http::FieldId::kXApiKey)) s.set_critical(true);
      const ArenaAnswer answer = s.acquire_arena(ArenaWait::kQueue);
      EXPECT_EQ(s.acquire_arena(ArenaWait::kQueue).status, answer.status) << "asked twice";
      if (answer.status == ArenaStatus::kRefused) return s.send_503();
      if (answer.status == ArenaStatus::kPending) return;
      EXPECT_EQ(s.arena(), answer.arena);
      state.body = BodyBuffer(*answer.arena);
      if (!collects) ++holding;
    };
    h.arena = [](ServerStream& s, Arena* arena) {
      if (arena == nullptr) return s.send_503();
      s.state<State>().body = BodyBuffer(*arena);
    };
    h.body = [](ServerStream& s, const http::BodyChunk& chunk) {
      EXPECT_TRUE(s.state<State>().body.append(chunk));
    };
    h.complete = [](ServerStream& s) {
      if (s.body_bytes_received() == 0) return;
      EXPECT_EQ(reply(s, 200, s.state<State>().body.get()), SendResult::kSent);
    };
  }
  std::atomic<int> holding{0};
};

/// Ten arenas, of which the streams of one connection hold nine: the next stream is pending. It is
/// on the same connection, because others would be refused, or closed while they are idle.
struct ArenaQueue : testing::Test {
  void start(const ServerConfig& config) {
    server = std::make_unique<RunningServer>(
        config, every_loop([this](ScriptedHandler& h) { handler.bind(h); }));
    holder = std::make_unique<H2Client>(server->port());
    for (int i = 0; i < 9; ++i) held.push_back(holder->get("/"));
    ASSERT_TRUE(server->eventually([](const ServerStats& s) { return s.arenas.used == 9; }));
  }
  static ServerConfig config() {
    ServerConfig config = small_config();
    config.arena_pool_size = 10;
    return config;
  }
  void let_go() {
    for (const std::uint32_t id : held) holder->send(wire::rst(id));
  }
  ArenaHandler handler;
  std::unique_ptr<RunningServer> server;
  std::unique_ptr<H2Client> holder;
  std::vector<std::uint32_t> held;
};

TEST_F(ArenaQueue, BodyWaitsInItsLeaseUntilThereIsAnArena) {
  start(config());
  H2Client& client = *holder;
  const std::uint32_t id = client.post("/");
  client.send(wire::data(id, pattern(10'000), wire::kEnd));
  ASSERT_TRUE(server->eventually([](const ServerStats& s) { return s.pending_streams.used == 1; }));
  ASSERT_TRUE(client.in_step());
  EXPECT_EQ(client.reply(id).status, 0);
  let_go();
  EXPECT_TRUE(client.finish(id).body == pattern(10'000));
  EXPECT_TRUE(server->eventually([](const ServerStats& s) {
    return s.arenas.used == 0 && s.body_leases.used == 0 && s.pending_streams.used == 0;
  }));
}

TEST_F(ArenaQueue, WaitsNoLongerThanItsTime) {
  ServerConfig impatient = config();
  impatient.pending_stream_timeout = std::chrono::milliseconds(30);
  start(impatient);
  H2Client& client = *holder;
  const std::uint32_t id = client.post("/");
  client.send(wire::data(id, "x", wire::kEnd));
  const Reply& answer = client.finish(id);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.field("retry-after"), "1");
  EXPECT_EQ(answer.field("x-weir-reason"), "no_place");
  EXPECT_EQ(server->stats().refused_by(RefuseReason::kArenaTimeout), 1U);
  EXPECT_TRUE(client.in_step()) << "only the stream is refused";
}

TEST_F(ArenaQueue, StreamThatIsResetLeavesNoTraceInIt) {
  start(config());
  H2Client& client = *holder;
  const std::uint32_t id = client.post("/");
  ASSERT_TRUE(server->eventually([](const ServerStats& s) { return s.pending_streams.used == 1; }));
  client.send(wire::rst(id));
  ASSERT_TRUE(client.in_step());
  EXPECT_EQ(server->stats().pending_streams.used, 0U);
  let_go();
  EXPECT_TRUE(server->eventually([](const ServerStats& s) { return s.arenas.used == 0; }));
}

TEST_F(ArenaQueue, CriticalStreamsTakeTheReserveAndDoNotWait) {
  ServerConfig reserving = config();
  reserving.reserved_arenas = 1;
  start(reserving);
  H2Client& client = *holder;
  const std::uint32_t id = client.post("/", {{"x-api-key", "k"}});
  client.send(wire::data(id, "critical", wire::kEnd));
  EXPECT_EQ(client.finish(id).body, "critical");
  EXPECT_EQ(server->stats().critical_shed, 0U);
  EXPECT_EQ(server->stats().arenas.peak, 10U);
}

TEST(H2Stream, APausedBodyFillsItsLeaseAndNoMore) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) { s.pause(); };
                       }));
  H2Client client(server.port());
  ASSERT_TRUE(client.in_step());
  const std::uint32_t id = client.post("/");
  std::uint64_t window = http::H2Limits{}.stream_window_bytes;
  client.send(wire::data(id, std::string(window, 'x')));
  const auto opened = client.until(http::h2::FrameType::kWindowUpdate, id);
  ASSERT_TRUE(opened.has_value()) << "as much as fits is asked for, though nobody takes it";
  window += opened->word();
  EXPECT_EQ(window, small_config().body_lease_size);
  for (std::uint64_t left = opened->word(); left > 0;) {
    const std::uint64_t piece = std::min<std::uint64_t>(left, 16'000);
    client.send(wire::data(id, std::string(piece, 'x')));
    ASSERT_TRUE(client.in_step());
    left -= piece;
  }
  EXPECT_FALSE(client.reply(id).reset.has_value());
  client.send(wire::data(id, "x"));
  EXPECT_TRUE(client.finish(id).reset.has_value()) << "not a byte more";
}

TEST(H2Stream, PausedHandlerIsToldWhenItsOutputIsNearlyOut) {
  std::promise<ServerStream*> stopped;
  std::atomic<int> told{0};
  ServerConfig config = small_config();
  config.socket_send_buffer_size = 8 * 1024;
  RunningServer server(config, every_loop([&](ScriptedHandler& h) {
                         h.complete = [&](ServerStream& s) {
                           const ResponseHead head{
                               .status = 200, .fields = {}, .content_length = 60'000};
                           ASSERT_EQ(s.send_headers(head), SendResult::kSent);
                           EXPECT_EQ(s.send_data(pattern(60'000).substr(0, 50'000)), 50'000U);
                           s.pause();
                           stopped.set_value(&s);
                         };
                         h.writable = [&](ServerStream& s) {
                           if (told++ > 0) return;
                           s.resume();
                           EXPECT_EQ(s.send_data(pattern(60'000).substr(50'000), true), 10'000U);
                         };
                       }));
  H2Client client(server.port(), {.settings = {}, .receive_buffer = 4096});
  const std::uint32_t id = client.get("/");
  stopped.get_future().wait();
  EXPECT_EQ(told.load(), 0) << "nobody has read yet";
  EXPECT_TRUE(client.finish(id).body == pattern(60'000));
  EXPECT_EQ(told.load(), 1);
}

TEST(H2Stream, SaysHowMuchCanBeWritten) {
  constexpr unsigned kInitialWindow = 4;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(s.writable_bytes(), 3000U) << "the window";
                           const ResponseHead head{
                               .status = 200, .fields = {}, .content_length = {}};
                           ASSERT_EQ(s.send_headers(head), SendResult::kSent);
                           EXPECT_EQ(s.send_data(pattern(1000)), 1000U);
                           EXPECT_EQ(s.writable_bytes(), 2000U);
                           EXPECT_EQ(s.send_data(pattern(500), true), 500U);
                           EXPECT_EQ(s.writable_bytes(), 0U) << "all is said";
                         };
                       }));
  H2Client client(server.port(), {.settings = {{kInitialWindow, 3000}}});
  ASSERT_TRUE(client.in_step());
  const std::uint32_t id = client.get("/");
  EXPECT_EQ(client.finish(id).body, pattern(1000) + pattern(500));
}

TEST(H2Stream, BodyOfAHeadRequestGoesNowhere) {
  std::atomic<int> finished{0};
  RunningServer server(
      small_config(), every_loop([&](ScriptedHandler& h) {
        h.complete = [](ServerStream& s) {
          const ResponseHead head{.status = 200, .fields = {}, .content_length = 5};
          ASSERT_EQ(s.send_headers(head), SendResult::kSent);
          EXPECT_EQ(s.send_data("hello"), 5U);
          const ResponseField trailer{"x-sum", "1"};
          EXPECT_EQ(s.send_trailers({&trailer, 1}), SendResult::kSent);
          EXPECT_EQ(s.send_trailers({&trailer, 1}), SendResult::kClosed) << "it is over";
        };
        h.finished = [&](ServerStream&) { ++finished; };
      }));
  H2Client client(server.port());
  wire::Fields fields = wire::get("/");
  fields[0].second = "HEAD";
  const std::uint32_t id = client.ask(fields);
  const Reply& answer = client.finish(id);
  EXPECT_EQ(answer.field("content-length"), "5");
  EXPECT_EQ(answer.body, "");
  EXPECT_TRUE(answer.trailers.empty());
  EXPECT_TRUE(server.eventually([&](const ServerStats&) { return finished == 1; }));
}

TEST(H2Stream, TrailersInsteadOfAnnouncedBytesAreAReset) {
  std::promise<CloseReason> why;
  RunningServer server(
      small_config(), every_loop([&](ScriptedHandler& h) {
        h.complete = [](ServerStream& s) {
          const ResponseHead head{.status = 200, .fields = {}, .content_length = 5};
          ASSERT_EQ(s.send_headers(head), SendResult::kSent);
          const ResponseField trailer{"x-sum", "1"};
          EXPECT_EQ(s.send_trailers({&trailer, 1}), SendResult::kClosed);
          s.reset();  // a second call has no effect
        };
        h.aborted = [&](ServerStream&, CloseReason reason) { why.set_value(reason); };
      }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  EXPECT_TRUE(client.finish(id).reset.has_value());
  EXPECT_EQ(why.get_future().get(), CloseReason::kReset);
  EXPECT_TRUE(client.in_step());
}

TEST(H2Stream, TrailersThatWouldBreakFramingAreInvalid) {
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           const ResponseHead head{
                               .status = 200, .fields = {}, .content_length = {}};
                           ASSERT_EQ(s.send_headers(head), SendResult::kSent);
                           const ResponseField bad{"x-sum", "a\r\nb"};
                           EXPECT_EQ(s.send_trailers({&bad, 1}), SendResult::kInvalid);
                           const std::vector<ResponseField> many(500, ResponseField{"x", "1"});
                           EXPECT_EQ(s.send_trailers(many), SendResult::kInvalid);
                           const ResponseField good{"x-sum", "1"};
                           EXPECT_EQ(s.send_trailers({&good, 1}), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  EXPECT_EQ(client.finish(id).trailers, (wire::Fields{{"x-sum", "1"}}));
}

}  // namespace
}  // namespace weir::inline v0::inline server
