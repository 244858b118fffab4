#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::every_loop;
using testkit::H2Client;
using testkit::reply;
using testkit::RunningServer;
using testkit::says_hello;
using testkit::ScriptedHandler;
using testkit::small_config;
namespace wire = http::h2::wire;

constexpr std::uint32_t kNoError = 0;
constexpr std::uint32_t kProtocolError = 1;
constexpr std::uint32_t kCalm = 11;

bool at_rest(const ServerStats& s) {
  return s.streams.used == 0 && s.body_leases.used == 0 && s.h2_sessions.used == 0 &&
         s.write_buffers.used == 0 && s.connections.used == 0 && s.read_regions.used == 0;
}

TEST(H2Session, AConnectionErrorEndsInGoawayAndTheEndOfTheConnection) {
  std::promise<CloseReason> why;
  std::promise<void> begun;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream&) { begun.set_value(); };
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  client.get("/");
  begun.get_future().wait();
  client.send(wire::frame(0, 0, 0, "DATA for no stream"));
  EXPECT_EQ(client.goaway_and_end(), kProtocolError);
  EXPECT_FALSE(client.socket().timed_out());
  EXPECT_EQ(why.get_future().get(), CloseReason::kProtocol);
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kProtocol), 1U);
}

TEST(H2Session, ConnectionErrorsSurviveWhatFollowsThem) {
  RunningServer server(small_config(), says_hello());
  H2Client client(server.port());
  std::string flood = wire::frame(6, 0, 0, "short");  // PING of a wrong length
  for (int i = 0; i < 2000; ++i) flood += wire::ping();
  client.send(flood);
  EXPECT_EQ(client.goaway_and_end(), std::uint32_t{6});  // FRAME_SIZE_ERROR, not a reset
  EXPECT_FALSE(client.socket().was_reset());
}

TEST(H2Session, AClientThatLeavesAbortsItsStreams) {
  std::promise<CloseReason> why;
  std::promise<void> begun;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream&) { begun.set_value(); };
                         handler.aborted = [&](ServerStream&, CloseReason reason) {
                           why.set_value(reason);
                         };
                       }));
  H2Client client(server.port());
  client.get("/");
  begun.get_future().wait();
  client.socket().close();
  EXPECT_EQ(why.get_future().get(), CloseReason::kClientAbort);
  EXPECT_TRUE(server.eventually(at_rest));
}

TEST(H2Session, GoawayOfTheClientLetsItsStreamsFinish) {
  RunningServer server(small_config(), says_hello());
  H2Client client(server.port());
  const std::uint32_t id = client.get("/");
  client.send(wire::goaway(0, 0));
  EXPECT_EQ(client.finish(id).body, "hello");
  while (client.next()) {
  }
  EXPECT_FALSE(client.socket().was_reset());
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kClient), 1U);
}

TEST(H2Session, IdleConnectionsAreToldGoodbye) {
  ServerConfig config = small_config();
  config.idle_timeout = std::chrono::milliseconds(50);
  RunningServer server(config, says_hello());
  H2Client client(server.port());
  EXPECT_EQ(client.finish(client.get("/")).body, "hello");
  EXPECT_EQ(client.goaway_and_end(), kNoError);
  EXPECT_EQ(client.goaway_last, std::vector<std::uint32_t>{1});
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdle), 1U);
}

TEST(H2Session, SettingsMustBeAcknowledged) {
  ServerConfig config = small_config();
  config.http2.settings_ack_timeout = std::chrono::milliseconds(50);
  RunningServer server(config, says_hello());
  H2Client client(server.port(), {.settings = {}, .acknowledge = false});
  EXPECT_EQ(client.finish(client.get("/")).body, "hello");
  EXPECT_EQ(client.goaway_and_end(), std::uint32_t{4});
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kHeaderTimeout), 1U);
}

TEST(H2Session, AHeaderBlockMustEnd) {
  ServerConfig config = small_config();
  config.http2.header_block_timeout = std::chrono::milliseconds(50);
  RunningServer server(config, says_hello());
  H2Client client(server.port());
  ASSERT_TRUE(client.in_step());  // nothing may be sent in the middle of a block
  client.send(wire::headers_raw(1, wire::block(wire::get()), wire::kEnd));
  EXPECT_EQ(client.goaway_and_end(), kCalm);
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
}

TEST(H2Session, APrefaceThatStopsIsNotWaitedFor) {
  ServerConfig config = small_config();
  config.header_timeout = std::chrono::milliseconds(50);
  RunningServer server(config, says_hello());
  H2Client client(server.port(), {.settings = {}, .greet = false});
  client.send("PRI * HTTP/2.0\r\n\r\nSM");
  EXPECT_FALSE(client.next().has_value());
  EXPECT_FALSE(client.socket().timed_out());
  EXPECT_TRUE(server.eventually(at_rest));
}

TEST(H2Session, DrainAnnouncesThenNamesTheLastStreamAndServesWhatIsUnderWay) {
  std::promise<ServerStream*> held;
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.headers = [&](ServerStream& stream, const ServerRequest& request) {
                           if (request.meta.path == "/held") held.set_value(&stream);
                         };
                       }));
  H2Client client(server.port());
  const std::uint32_t id = client.get("/held");
  ServerStream* stream = held.get_future().get();
  std::future<bool> drained =
      std::async(std::launch::async, [&] { return server->drain(std::chrono::seconds(8)); });
  const auto notice = client.until(http::h2::FrameType::kGoaway);
  ASSERT_TRUE(notice.has_value());
  EXPECT_EQ(notice->word(), 0x7fffffffU);
  EXPECT_EQ(notice->word(4), kNoError);
  const auto last = client.until(http::h2::FrameType::kGoaway);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->word(), id);
  stream->loop().post([stream] { EXPECT_EQ(reply(*stream, 200, "late"), SendResult::kSent); });
  EXPECT_EQ(client.finish(id).body, "late");
  while (client.next()) {
  }
  client.socket().close();
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(server.stats().closed_by(CloseReason::kShutdown), 1U);
}

TEST(H2Session, RequestsPerConnectionAreCountedAndTheRestSentElsewhere) {
  ServerConfig config = small_config();
  config.requests_per_connection_max = 3;
  RunningServer server(config, says_hello());
  H2Client client(server.port());
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(client.get("/"));
  for (const std::uint32_t id : ids) EXPECT_EQ(client.finish(id).body, "hello");
  EXPECT_EQ(client.goaway_and_end(), kNoError);
  EXPECT_EQ(client.goaway_last, std::vector<std::uint32_t>{5});
}

TEST(H2Session, WithoutASessionBlockTheClientIsTold) {
  ServerConfig config = small_config();
  config.http2_sessions_max = 1;
  RunningServer server(config, says_hello());
  H2Client first(server.port());
  EXPECT_EQ(first.finish(first.get("/")).body, "hello");
  H2Client second(server.port());
  second.get("/");
  EXPECT_EQ(second.goaway_and_end(), kCalm);
  EXPECT_EQ(second.settings_seen, 1U);
  testkit::Client third(server.port());
  EXPECT_EQ(third.get("/").body, "hello") << "HTTP/1 needs none";
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kSessions), 1U);
  first.socket().close();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.h2_sessions.used == 0; }));
  H2Client fourth(server.port());
  EXPECT_EQ(fourth.finish(fourth.get("/")).body, "hello");
}

TEST(H2Session, SwitchedOffItIsABadRequest) {
  ServerConfig config = small_config();
  config.http2_enabled = false;
  RunningServer server(config, says_hello());
  testkit::Client client(server.port());
  EXPECT_EQ(client.ask(wire::preface()).status, 505);
}

TEST(H2Session, RapidResetIsCountedAndEndsTheConnection) {
  ServerConfig config = small_config();
  config.http2.glitch_limit = 400;
  std::atomic<int> begun{0};
  std::atomic<int> open{0};
  std::atomic<int> most{0};
  RunningServer server(config, every_loop([&](ScriptedHandler& handler) {
                         handler.headers = [&](ServerStream&, const ServerRequest&) {
                           ++begun;
                           most = std::max(most.load(), ++open);
                         };
                         handler.finished = [&](ServerStream&) { --open; };
                         handler.aborted = [&](ServerStream&, CloseReason) { --open; };
                       }));
  H2Client client(server.port());
  std::string flood;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    flood += wire::headers(2 * i + 1, wire::get()) + wire::rst(2 * i + 1);
  }
  client.send(flood);
  EXPECT_EQ(client.goaway_and_end(), kCalm);
  client.socket().close();
  EXPECT_TRUE(server.eventually(at_rest));
  EXPECT_LT(begun.load(), 420);
  EXPECT_LE(most.load(), 100);
  EXPECT_EQ(open.load(), 0);
  const ServerStats stats = server.stats();
  EXPECT_GE(stats.h2_glitches[static_cast<std::size_t>(http::H2Glitch::kEarlyReset)], 300U);
  EXPECT_EQ(stats.h2_goaways, 1U);
}

TEST(H2Session, ABrowserThatCancelsAHundredStreamsLives) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& handler) {
                         handler.headers = [](ServerStream& stream, const ServerRequest& request) {
                           if (request.meta.path != "/") return;
                           EXPECT_EQ(reply(stream, 200, "hello"), SendResult::kSent);
                         };
                       }));
  H2Client client(server.port());
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(client.get("/never"));
  for (const std::uint32_t id : ids) client.send(wire::rst(id));
  EXPECT_EQ(client.finish(client.get("/")).body, "hello");
  EXPECT_FALSE(client.goaway_code.has_value());
}

TEST(H2Session, OneConnectionsRequestsDoNotStarveAnother) {
  // One connection sends 20,000 requests at once; another is answered long before the last.
  std::atomic<int> served{0};
  RunningServer server(small_config(), every_loop([&](ScriptedHandler& handler) {
                         handler.complete = [&](ServerStream& stream) {
                           ++served;
                           EXPECT_EQ(reply(stream, 200, ""), SendResult::kSent);
                         };
                       }));
  H2Client modest(server.port());
  EXPECT_EQ(modest.finish(modest.get("/")).status, 200);
  // Two threads share it: the thread that reads does not send.
  H2Client greedy(server.port(), {.settings = {}, .open_windows = false, .acknowledge = false});
  std::thread flood([&] {
    std::string bytes;
    for (std::uint32_t i = 0; i < 20'000; ++i) bytes += wire::headers(2 * i + 1, wire::get());
    greedy.send(bytes);
  });
  std::thread reader([&] {
    for (std::uint32_t i = 0; i < 20'000; ++i) greedy.finish(2 * i + 1);
  });
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return served > 1000; }));
  EXPECT_EQ(modest.finish(modest.get("/")).status, 200);
  EXPECT_LT(served.load(), 19'000);
  flood.join();
  reader.join();
}

}  // namespace
}  // namespace weir::inline v0::inline server
