// Every kind of slow client is ended by a deadline.
#include <string>

#include <gtest/gtest.h>

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testkit::Answer;
using testkit::Client;
using testkit::every_loop;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;

/// All deadlines are long; each test shortens its own.
ServerConfig patient_config() {
  ServerConfig config = testkit::small_config();
  config.header_timeout = hours(1);
  config.body_timeout = hours(1);
  config.write_timeout = hours(1);
  config.idle_timeout = hours(1);
  config.backpressure_timeout = hours(1);
  return config;
}

void answer_ok(ScriptedHandler& h) {
  h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent); };
}

TEST(Deadlines, HeadMustBeWholeInTimeHoweverItDrips) {
  ServerConfig config = patient_config();
  config.header_timeout = milliseconds(60);
  RunningServer server(config, every_loop(answer_ok));
  Client dripping(server.port());
  // A byte now and then does not extend an absolute deadline.
  std::future<void> drip = std::async(std::launch::async, [&] {
    io::ThreadParker parker;
    for (const char byte :
         std::string("GET / HTTP/1.1\r\nhost: t\r\nx: " + std::string(500, 'x'))) {
      if (!dripping.send({&byte, 1})) return;
      parker.park_until(io::monotonic_now() + milliseconds(2));
    }
  });
  const Answer answer = dripping.read();
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(answer.has("connection: close"));
  drip.get();
  dripping.close();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kHeaderTimeout) == 1 && s.connections.used == 0;
  }));
}

TEST(Deadlines, SilentNewcomerIsClosedWithoutAWord) {
  ServerConfig config = patient_config();
  config.header_timeout = milliseconds(30);
  RunningServer server(config, every_loop(answer_ok));
  Client silent(server.port());
  EXPECT_TRUE(silent.at_end());
  EXPECT_FALSE(silent.timed_out());
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdle), 1U);
}

TEST(Deadlines, IdleConnectionIsClosedBetweenRequests) {
  ServerConfig config = patient_config();
  config.idle_timeout = milliseconds(30);
  RunningServer server(config, every_loop(answer_ok));
  Client client(server.port());
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_TRUE(client.at_end());
  EXPECT_FALSE(client.timed_out());
  EXPECT_EQ(server.stats().closed_by(CloseReason::kIdle), 1U);
}

TEST(Deadlines, BodyBelowTheMinimumRateIsAnswered408) {
  ServerConfig config = patient_config();
  config.body_timeout = milliseconds(40);
  config.body_min_rate = 100'000;
  RunningServer server(config, every_loop(answer_ok));
  Client slow(server.port());
  ASSERT_TRUE(slow.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\nabc"));
  EXPECT_EQ(slow.read().status, 408);
  slow.close();
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kBodyTimeout) == 1; }));
}

TEST(Deadlines, BodyClockStandsStillWhileTheHandlerPauses) {
  static std::promise<ServerStream*> stopped;
  stopped = {};
  ServerConfig config = patient_config();
  config.body_timeout = milliseconds(20);
  config.body_min_rate = 0;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         answer_ok(h);
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           s.pause();
                           stopped.set_value(&s);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\n\r\n"));
  ServerStream* stream = stopped.get_future().get();
  io::ThreadParker().park_until(io::monotonic_now() + milliseconds(100));
  EXPECT_EQ(server.stats().connections.used, 1U) << "five windows without a byte, by our own wish";
  std::promise<void> resumed;
  stream->loop().post([&] {
    stream->resume();
    resumed.set_value();
  });
  resumed.get_future().wait();
  EXPECT_EQ(client.ask("abc").status, 200);
}

TEST(Deadlines, ClientThatReadsTooSlowlyIsClosed) {
  ServerConfig config = patient_config();
  config.write_timeout = milliseconds(50);
  config.write_min_rate = 1'000'000;
  config.socket_send_buffer_size = 8 * 1024;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           static const std::string page(2'000'000, 'x');
                           EXPECT_EQ(reply(s, 200, page, BodyLife::kStream), SendResult::kSent);
                         };
                       }));
  Client slow(server.port(), 4096);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kWriteTimeout) == 1; }));
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
}

TEST(Deadlines, UnreadBodyIsNotWaitedForForever) {
  ServerConfig config = patient_config();
  config.body_timeout = milliseconds(40);
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           EXPECT_EQ(reply(s, 403, "no"), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n\r\n"));
  EXPECT_EQ(client.read().status, 403);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server.stats().closed_by(CloseReason::kUnreadBody), 1U);
}

TEST(Deadlines, LingeringEndsByItsOwnClock) {
  ServerConfig config = patient_config();
  config.linger_timeout = milliseconds(30);
  RunningServer server(config, every_loop(answer_ok));
  Client client(server.port());
  EXPECT_EQ(client.ask("BROKEN\r\n\r\n").status, 400);
  // The client neither closes nor sends; the server does not wait for it.
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
}

TEST(Deadlines, StormOfEqualDeadlinesClosesAllAndTheServerGoesOn) {
  ServerConfig config = patient_config();
  config.max_connections = 600;
  config.idle_timeout = milliseconds(100);
  config.header_timeout = milliseconds(100);
  RunningServer server(config, every_loop(answer_ok));
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(std::make_unique<Client>(server.port()));
  for (auto& client : crowd) EXPECT_TRUE(client->at_end());
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kIdle) == 300 && s.connections.used == 0;
  }));
  EXPECT_EQ(Client(server.port()).get("/").status, 200);
}

}  // namespace
}  // namespace weir::inline v0::inline server
