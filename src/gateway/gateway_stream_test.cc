// Streams, tunnels, and one side slower than the other.
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::kGet;
using testkit::Origin;
using testkit::RawOrigin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;
using testkit::with_fixed_limit;

TEST(Gateway, AProtocolSwitchBecomesATunnel) {
  RawOrigin origin([](int fd, const std::string& head) {
    EXPECT_THAT(head, HasSubstr("connection: upgrade\r\nupgrade: websocket\r\n"));
    RawOrigin::say(fd,
                   "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
                   "upgrade: WebSocket\r\n\r\nwelcome");
    char block[256];
    for (;;) {
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got <= 0) break;
      RawOrigin::say(fd, {block, static_cast<std::size_t>(got)});
    }
    RawOrigin::say(fd, "bye");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.ask(
      "GET /ws HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  EXPECT_EQ(answer.status, 101);
  EXPECT_TRUE(answer.has("upgrade: WebSocket\r\n"));
  EXPECT_EQ(client.take(7), "welcome");
  ASSERT_TRUE(client.send("ping"));
  EXPECT_EQ(client.take(4), "ping");
  EXPECT_EQ(gateway.stats()["admission"]["streaming"], 1);
  client.end_output();
  EXPECT_EQ(client.take(3), "bye");
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, ARefusedSwitchIsAnOrdinaryAnswer) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer =
      client.ask("GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(client.get("/next").status, 200);
}

TEST(Gateway, TrailersThatDoNotFitAreLeftOutAndTheBodyEnds) {
  RawOrigin origin([](int fd, const std::string&) {
    std::string trailers;
    for (int i = 0; i < 12; ++i) trailers += "x-" + std::to_string(i) + ": y\r\n";
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" +
                           trailers + "\r\n");
  });
  config::Config config = gateway_config({origin.address()});
  config.server.header_count_max = config.server.trailer_count_max = 8;  // places for fields
  RunningGateway gateway(config);
  Client client(gateway.port());
  for (int i = 0; i < 2; ++i) {
    const Answer answer =
        client.ask("GET / HTTP/1.1\r\nhost: t\r\nconnection: te\r\nte: trailers\r\n\r\n");
    EXPECT_EQ(answer.body, "abc");
    EXPECT_EQ(client.trailers, "");
  }
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, EventsArriveOneByOneAndDoNotHoldTheLimit) {
  std::mutex mutex;
  ServerStream* events = nullptr;
  Origin origin([&](ScriptedHandler& handler) {
    handler.complete = [&](ServerStream& stream) {
      const std::array<ResponseField, 1> fields = {
          ResponseField{.name = "content-type", .value = "text/event-stream"}};
      EXPECT_EQ(stream.send_headers({.status = 200, .fields = fields, .content_length = {}}),
                SendResult::kSent);
      EXPECT_EQ(stream.send_data("data: 1\n\n"), 9U);
      const std::scoped_lock lock(mutex);
      events = &stream;
    };
  });
  RunningGateway gateway(with_fixed_limit(gateway_config({origin.address()}), 1));
  Client client(gateway.port());
  ASSERT_TRUE(client.send(kGet));
  std::string seen;
  while (seen.find("data: 1\n\n") == std::string::npos) seen += client.take(1);
  EXPECT_TRUE(eventually([&] { return gateway->status().in_flight == 0; }));
  EXPECT_EQ(gateway.stats()["admission"]["streaming"], 1);
  const std::scoped_lock lock(mutex);
  events->loop().post([&] { EXPECT_EQ(events->send_data("data: 2\n\n", true), 9U); });
  while (seen.find("data: 2\n\n") == std::string::npos) seen += client.take(1);
}

/// A limit of one, timeouts of 100 ms, and a route for streams.
config::Config with_a_stream_route(const std::string& origin) {
  config::Config config = with_fixed_limit(gateway_config({origin}), 1);
  config.upstreams[0].first_byte_timeout = std::chrono::milliseconds(100);
  config.upstreams[0].inactivity_timeout = std::chrono::milliseconds(100);
  config.upstreams[0].overall_timeout = std::chrono::milliseconds(200);
  config.routes.insert(config.routes.begin(), config.routes.front());
  config.routes.front().path_prefix = "/watch";
  config.routes.front().stream = true;
  return config;
}

int streaming(const RunningGateway& gateway) {
  return gateway.stats()["admission"]["streaming"].get<int>();
}

/// The value of a series in /metrics.
double value_of_series(const RunningGateway& gateway, const std::string& series) {
  const std::string page = gateway.page("/metrics");
  const std::size_t at = page.find("\n" + series + " ");
  EXPECT_NE(at, std::string::npos) << series;
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

TEST(GatewayStreamRoute, ItsAnswerMayBeginAfterEveryTimeoutAndHoldsNothingOfTheLimit) {
  std::mutex mutex;
  ServerStream* silent = nullptr;
  Origin origin([&](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      stream.user_data = request.meta.path == "/a" ? &stream : nullptr;
    };
    handler.complete = [&](ServerStream& stream) {
      if (stream.user_data != nullptr) {
        EXPECT_EQ(reply(stream, 200, "a"), SendResult::kSent);
        return;
      }
      const std::scoped_lock lock(mutex);
      silent = &stream;
    };
  });
  RunningGateway gateway(with_a_stream_route(origin.address()));
  Client watcher(gateway.port());
  ASSERT_TRUE(watcher.send("POST /watch HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nhi"));
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex);
    return silent != nullptr;
  }));
  EXPECT_EQ(gateway->status().in_flight, 0U);
  EXPECT_EQ(streaming(gateway), 1);
  const TimePoint until = io::monotonic_now() + std::chrono::milliseconds(500);
  int served = 0;
  while (io::monotonic_now() < until) {  // there is a place for others all the time
    EXPECT_EQ(Client(gateway.port()).get("/a").status, 200);
    ++served;
  }
  EXPECT_EQ(gateway->status().refused, 0U);
  EXPECT_EQ(
      value_of_series(gateway, "weir_admission_outcomes_total{scope=\"app\",outcome=\"overload\"}"),
      0);
  EXPECT_EQ(nlohmann::json::parse(gateway.page("/endpoints"))["endpoints"][0]["state"],
            "available");
  {
    const std::scoped_lock lock(mutex);
    silent->loop().post([&] { EXPECT_EQ(reply(*silent, 200, "at last"), SendResult::kSent); });
  }
  const Answer answer = watcher.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "at last");
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(streaming(gateway), 0);
  EXPECT_EQ(value_of_series(gateway, "weir_upstream_latency_seconds_count{upstream=\"app\"}"),
            served)
      << "without the time of the stream";
}

TEST(GatewayStreamRoute, OthersKeepTheirTimeouts) {
  RawOrigin origin([](int fd, const std::string&) {
    char none = 0;
    static_cast<void>(::recv(fd, &none, 1, 0));  // until the gateway gives up
  });
  config::Config config = with_a_stream_route(origin.address());
  config.routes.back().first_byte_timeout = std::chrono::milliseconds(20);
  config.upstreams[0].first_byte_timeout = std::chrono::minutes(1);
  config.upstreams[0].overall_timeout = Duration(0);
  config.routes.front().overall_timeout = std::chrono::milliseconds(50);
  RunningGateway gateway(config);
  const Answer late = Client(gateway.port()).get("/");
  EXPECT_EQ(late.status, 504);
  EXPECT_TRUE(late.has("x-weir-reason: first_byte_timeout\r\n"));
  const Answer bounded = Client(gateway.port()).get("/watch");
  EXPECT_EQ(bounded.status, 504);
  EXPECT_TRUE(bounded.has("x-weir-reason: overall_timeout\r\n")) << "its own bound holds";
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(
      value_of_series(gateway, "weir_admission_outcomes_total{scope=\"app\",outcome=\"overload\"}"),
      1)
      << "of the first one alone";
}

TEST(Gateway, ASlowReaderHoldsTheUpstreamBackAndGetsEverything) {
  constexpr std::size_t kBytes = std::size_t{16} * 1024 * 1024;
  std::atomic<std::size_t> produced = 0;
  Origin origin([&](ScriptedHandler& handler) {
    const auto produce = [&produced](ServerStream& stream) {
      static const std::string kPiece(16 * 1024, 'x');
      while (produced < kBytes) {
        const std::size_t taken = stream.send_data(kPiece, false);
        produced += taken;
        if (taken < kPiece.size()) return;
      }
      static_cast<void>(stream.send_data({}, true));
    };
    handler.complete = [produce](ServerStream& stream) {
      EXPECT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                SendResult::kSent);
      produce(stream);
    };
    handler.writable = produce;
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port(), 16 * 1024);
  ASSERT_TRUE(client.send(kGet));
  std::size_t before = 1;
  ASSERT_TRUE(eventually([&] {  // the transfer stops by itself
    const std::size_t now = produced;
    const bool stopped = now == before && now > 0;
    before = now;
    io::ThreadParker().park_until(io::monotonic_now() + std::chrono::milliseconds(50));
    return stopped;
  }));
  EXPECT_LT(produced, kBytes);
  const Answer answer = client.read();
  EXPECT_GE(answer.body.size(), kBytes);
  EXPECT_EQ(answer.body.find_first_not_of('x'), std::string::npos);
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, ASlowOriginHoldsTheClientBackAndGetsEverything) {
  constexpr std::size_t kBytes = std::size_t{8} * 1024 * 1024;
  std::atomic<bool> go = false;
  std::atomic<std::size_t> got_bytes = 0;
  RawOrigin origin([&](int fd, const std::string& head) {
    while (!go) io::ThreadParker().park_until(io::monotonic_now() + std::chrono::milliseconds(1));
    got_bytes = head.size() - head.find("\r\n\r\n") - 4;
    std::string block(64 * 1024, '\0');
    while (got_bytes < kBytes) {
      const ssize_t got = ::recv(fd, block.data(), block.size(), 0);
      if (got <= 0) break;
      got_bytes += static_cast<std::size_t>(got);
    }
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  std::thread sender([&] {
    EXPECT_TRUE(client.send(
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(kBytes) + "\r\n\r\n"));
    EXPECT_TRUE(client.send(std::string(kBytes, 'y')));
  });
  ASSERT_TRUE(eventually([&] { return gateway.stats()["admission"]["bytes"] > 0; }));
  const std::uint64_t held = gateway.stats()["admission"]["bytes"];
  EXPECT_LE(held, 64U * 1024);
  go = true;
  EXPECT_EQ(client.read().body, "ok");
  sender.join();
  EXPECT_EQ(got_bytes, kBytes);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway.stats()["admission"]["bytes"], 0);
}

}  // namespace
}  // namespace weir::gateway
