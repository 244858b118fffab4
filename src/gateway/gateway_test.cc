// The whole gateway in this process: real sockets, scripted origins, blocking clients.
#include "weir/gateway/gateway.h"

#include <barrier>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/gateway_testing.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RawOrigin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

/// An origin that answers when the test says so.
class HeldOrigin {
 public:
  HeldOrigin()
      : origin_([this](ScriptedHandler& handler) {
          handler.complete = [this](ServerStream& stream) {
            const std::scoped_lock lock(mutex_);
            held_.push_back(&stream);
          };
          handler.aborted = [this](ServerStream& stream, CloseReason) {
            const std::scoped_lock lock(mutex_);
            std::erase(held_, &stream);
          };
        }) {}
  [[nodiscard]] std::string address() const { return origin_.address(); }
  [[nodiscard]] std::size_t held() {
    const std::scoped_lock lock(mutex_);
    return held_.size();
  }
  bool wait_for(std::size_t count) {
    return eventually([&] { return held() == count; });
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    for (ServerStream* stream : held_) {
      stream->loop().post([stream] { EXPECT_EQ(reply(*stream, 200, "done"), SendResult::kSent); });
    }
    held_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<ServerStream*> held_;
  Origin origin_;
};

Config with_fixed_limit(Config config, std::uint32_t limit) {
  config.admission.limit.policy = LimitKind::kFixed;
  config.admission.limit.initial_limit = limit;
  config.admission.normal_wait_max = Duration(0);
  config.admission.high_wait_max = Duration(0);
  return config;
}

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";

TEST(Gateway, PassesARequestAndItsAnswerOn) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  for (int i = 0; i < 3; ++i) {
    const Answer answer = client.get("/a?b=c");
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr("GET /a?b=c\n"));
    EXPECT_THAT(answer.body, HasSubstr("host: t\n"));
    EXPECT_THAT(answer.body, HasSubstr("x-forwarded-for: 127.0.0.1\n"));
    EXPECT_TRUE(answer.has("via: 1.1 weir\r\n"));
    EXPECT_EQ(answer.head.find("date: "), answer.head.rfind("date: "));
  }
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 3U);
}

TEST(Gateway, BodiesPassWithTheirFramingAndTrailers) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer sized = client.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello");
  EXPECT_THAT(sized.body, HasSubstr("content-length: 5\n"));
  EXPECT_TRUE(sized.body.ends_with("hello"));
  const Answer chunked = client.ask(
      "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n3\r\ndef\r\n0\r\nx-sum: 7\r\nx-weir-x: eve\r\n\r\n");
  EXPECT_THAT(chunked.body, HasSubstr("transfer-encoding: chunked\n"));
  EXPECT_THAT(chunked.body, HasSubstr("abcdef"));
  EXPECT_TRUE(chunked.body.ends_with("trailer x-sum=7")) << chunked.body;
  const Answer empty = client.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n");
  EXPECT_THAT(empty.body, HasSubstr("content-length: 0\n"));
}

TEST(Gateway, AHeadAnswerKeepsItsLengthAndHasNoBody) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nhost: t\r\n\r\n"));
  const Answer answer = client.read(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("content-length: 1000\r\n"));
}

TEST(Gateway, ResponsesOfEveryFramingArrive) {
  RawOrigin origin([](int fd, const std::string& head) {
    if (head.starts_with("GET /chunked")) {
      RawOrigin::say(fd,
                     "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n");
    } else if (head.starts_with("GET /close")) {
      RawOrigin::say(fd, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    } else {
      RawOrigin::say(fd, "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    }
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer chunked =
      client.ask("GET /chunked HTTP/1.1\r\nhost: t\r\nconnection: te\r\nte: trailers\r\n\r\n");
  EXPECT_EQ(chunked.body, "abc");
  EXPECT_EQ(client.trailers, "x-sum: 7\n");
  EXPECT_EQ(client.get("/close").body, "until the end");
  EXPECT_EQ(client.get("/none").status, 204);
}

TEST(Gateway, OneUpstreamWithoutARouteGetsEverything) {
  Origin origin(testkit::echo);
  Config config = gateway_config({origin.address()});
  config.routes.clear();
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);
  EXPECT_EQ(Client(gateway.port()).get("/any/where?x=1").status, 200);
  EXPECT_EQ(gateway.stats()["requests"]["refused"], 0);
}

TEST(Gateway, RefusesWhatNoRouteServes) {
  Origin origin(testkit::echo);
  Config config = gateway_config({origin.address()});
  config.routes[0].path_prefix = "/api";
  RunningGateway gateway(config);
  Client client(gateway.port());
  const Answer text = client.get("/other");
  EXPECT_EQ(text.status, 404);
  EXPECT_TRUE(text.has("x-weir-reason: no_route\r\n"));
  EXPECT_THAT(text.body, HasSubstr("no_route"));
  const Answer json = client.ask("GET /x HTTP/1.1\r\nhost: t\r\naccept: application/json\r\n\r\n");
  EXPECT_EQ(nlohmann::json::parse(json.body)["reason"], "no_route");
  EXPECT_EQ(client.ask("CONNECT t:443 HTTP/1.1\r\nhost: t:443\r\n\r\n").status, 405);
  EXPECT_EQ(client.get("/api/x").status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().refused, 3U);
}

TEST(Gateway, RefusesAtTheLimitWithAReasonAndAHint) {
  HeldOrigin origin;
  RunningGateway gateway(with_fixed_limit(gateway_config({origin.address()}), 1));
  Client first(gateway.port());
  ASSERT_TRUE(first.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  Client second(gateway.port());
  const Answer refused = second.ask(kGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  EXPECT_TRUE(refused.has("x-weir-retry-after-ms: "));
  EXPECT_TRUE(refused.has("retry-after: 1\r\n"));
  origin.let_go();
  EXPECT_EQ(first.read().body, "done");
  ASSERT_TRUE(second.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  origin.let_go();
  EXPECT_EQ(second.read().status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, OneWhoWaitedIsServedWhenAPlaceIsFree) {
  HeldOrigin origin;
  Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(first.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(std::make_unique<Client>(gateway.port()));
    ASSERT_TRUE(others.back()->send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nhi"));
  }
  ASSERT_TRUE(eventually([&] { return gateway.stats()["upstreams"]["app"]["waiting"] == 8; }));
  EXPECT_EQ(origin.held(), 1U);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(origin.wait_for(1));
    origin.let_go();
  }
  EXPECT_EQ(first.read().status, 200);
  for (const auto& client : others) EXPECT_EQ(client->read().status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, PatienceEndsInARefusal) {
  HeldOrigin origin;
  Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::milliseconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(first.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  const Answer refused = Client(gateway.port()).ask(kGet);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
}

TEST(Gateway, AClientThatLeavesWhileItWaitsLeavesNothingBehind) {
  HeldOrigin origin;
  Config config = with_fixed_limit(gateway_config({origin.address()}), 1);
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(first.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  for (int i = 0; i < 5; ++i) {
    Client gone(gateway.port());
    ASSERT_TRUE(gone.send(kGet));
    ASSERT_TRUE(eventually([&] { return gateway.stats()["upstreams"]["app"]["waiting"] == 1; }));
    gone.close();
    ASSERT_TRUE(eventually([&] { return gateway.stats()["upstreams"]["app"]["waiting"] == 0; }));
  }
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 5U);
}

TEST(Gateway, AClientThatLeavesEndsTheWorkBehindIt) {
  HeldOrigin origin;
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(client.send(kGet));
  ASSERT_TRUE(origin.wait_for(1));
  client.close();
  EXPECT_TRUE(origin.wait_for(0));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 1U);
}

TEST(Gateway, ActorsHaveBudgetsOfTheirOwn) {
  HeldOrigin origin;
  Config config = gateway_config({origin.address()});
  config.admission.inflight_max = 2;
  RunningGateway gateway(config);
  const auto as = [](std::string_view key) {
    return "GET / HTTP/1.1\r\nhost: t\r\nx-api-key: " + std::string(key) + "\r\n\r\n";
  };
  Client a(gateway.port());
  Client b(gateway.port());
  ASSERT_TRUE(a.send(as("greedy")) && b.send(as("greedy")));
  ASSERT_TRUE(origin.wait_for(2));
  const Answer third = Client(gateway.port()).ask(as("greedy"));
  EXPECT_EQ(third.status, 429);
  EXPECT_TRUE(third.has("x-weir-reason: actor_inflight\r\n"));
  Client modest(gateway.port());
  ASSERT_TRUE(modest.send(as("modest")));
  ASSERT_TRUE(origin.wait_for(3));
  const auto actors = nlohmann::json::parse(gateway.page("/actors"));
  EXPECT_EQ(actors["actors"].size(), 2U);
  EXPECT_EQ(actors["actors"][0]["in_flight"], 2);
  EXPECT_THAT(gateway.page("/actors"), Not(HasSubstr("greedy")));
  origin.let_go();
  for (Client* client : {&a, &b, &modest}) EXPECT_EQ(client->read().status, 200);
}

TEST(Gateway, AStrangerCannotRaiseItsClassNorChooseAnActor) {
  Origin origin(testkit::echo);
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.ask(
      "GET / HTTP/1.1\r\nhost: t\r\nx-weir-priority: critical\r\nx-weir-actor: victim\r\n"
      "x-weir-peer: gate\r\nx-weir-deadline-ms: 0\r\nx-weir-attempt: 2\r\n\r\n");
  EXPECT_EQ(answer.status, 200);  // a deadline of 0 would have been refused
  EXPECT_THAT(answer.body, Not(HasSubstr("x-weir")));
  const auto stats = gateway.stats();
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["normal"]["admitted"], 1);
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["critical"]["admitted"], 0);
  EXPECT_EQ(stats["admission"]["actors"], 0);
  EXPECT_EQ(stats["admission"]["peers"], 0);
}

TEST(Gateway, ATrustedPeersWordCounts) {
  Origin origin(testkit::echo);
  Config config = gateway_config({origin.address()});
  config.trust.peers = {*parse_ip_range("127.0.0.1")};
  RunningGateway gateway(config);
  Client client(gateway.port());
  const Answer answer = client.ask(
      "GET / HTTP/1.1\r\nhost: t\r\nx-weir-priority: high\r\nx-weir-actor: alice\r\n\r\n");
  EXPECT_THAT(answer.body, HasSubstr("x-weir-priority: high\n"));
  EXPECT_THAT(answer.body, HasSubstr("x-weir-actor: alice\n"));
  const auto stats = gateway.stats();
  EXPECT_EQ(stats["upstreams"]["app"]["classes"]["high"]["admitted"], 1);
  EXPECT_EQ(stats["admission"]["peers"], 1);
  const Answer late = client.ask("GET / HTTP/1.1\r\nhost: t\r\nx-weir-deadline-ms: 0\r\n\r\n");
  EXPECT_EQ(late.status, 504);
  EXPECT_TRUE(late.has("x-weir-reason: deadline\r\n"));
}

TEST(Gateway, ABodyIsAskedForOnlyOnceItIsAdmitted) {
  HeldOrigin origin;
  RunningGateway gateway(with_fixed_limit(gateway_config({origin.address()}), 1));
  constexpr std::string_view kExpect =
      "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
  Client first(gateway.port());
  const Answer go_on = first.ask(kExpect);
  EXPECT_EQ(go_on.status, 100);
  ASSERT_TRUE(first.send("hello"));
  ASSERT_TRUE(origin.wait_for(1));
  Client second(gateway.port());
  EXPECT_EQ(second.ask(kExpect).status, 503);
  origin.let_go();
  EXPECT_EQ(first.read().status, 200);
}

TEST(Gateway, ABodyBeyondTheRoutesBoundIs413) {
  Origin origin(testkit::echo);
  Config config = gateway_config({origin.address()});
  config.routes[0].max_body = 4;
  RunningGateway gateway(config);
  const Answer sized =
      Client(gateway.port()).ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello");
  EXPECT_EQ(sized.status, 413);
  EXPECT_TRUE(sized.has("x-weir-reason: body_too_large\r\n"));
  const Answer chunked = Client(gateway.port())
                             .ask(
                                 "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                                 "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.status, 413);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().refused, 2U);
}

TEST(Gateway, FailuresOfTheUpstreamHaveNames) {
  RawOrigin origin([](int fd, const std::string& head) {
    if (head.starts_with("GET /garbage")) RawOrigin::say(fd, "SSH-2.0-OpenSSH_9\r\n\r\n");
    if (head.starts_with("GET /cut")) RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncont");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer garbage = client.get("/garbage");
  EXPECT_EQ(garbage.status, 502);
  EXPECT_TRUE(garbage.has("x-weir-reason: bad_response\r\n"));
  const Answer cut = client.get("/cut");
  EXPECT_EQ(cut.status, 502);
  EXPECT_TRUE(cut.has("x-weir-reason: truncated\r\n"));
  const Answer silent = client.get("/silent");
  EXPECT_EQ(silent.status, 502);
  EXPECT_TRUE(silent.has("x-weir-reason: closed_early\r\n"));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 3U);
}

TEST(Gateway, NobodyThereIs503AndComesBackByItself) {
  std::string address;
  {
    RawOrigin gone([](int, const std::string&) {});
    address = gone.address();
  }
  RunningGateway gateway(gateway_config({address}));
  Client client(gateway.port());
  const Answer refused = client.get("/");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: connect_refused\r\n"));
}

TEST(Gateway, ABrokenAnswerIsBrokenForTheClientToo) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  const Answer answer = client.get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "half");
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().aborted, 1U);
}

TEST(Gateway, SilenceEndsAtTheFirstByteTimeout) {
  HeldOrigin origin;
  Config config = gateway_config({origin.address()});
  config.upstreams[0].first_byte_timeout = std::chrono::milliseconds(30);
  RunningGateway gateway(config);
  const Answer answer = Client(gateway.port()).get("/");
  EXPECT_EQ(answer.status, 504);
  EXPECT_TRUE(answer.has("x-weir-reason: first_byte_timeout\r\n"));
}

TEST(Gateway, AProtocolSwitchBecomesATunnel) {
  RawOrigin origin([](int fd, const std::string& head) {
    EXPECT_THAT(head, HasSubstr("connection: upgrade\r\nupgrade: echo\r\n"));
    RawOrigin::say(fd,
                   "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
                   "upgrade: echo\r\n\r\nwelcome");
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
  const Answer answer =
      client.ask("GET /ws HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
  EXPECT_EQ(answer.status, 101);
  EXPECT_TRUE(answer.has("upgrade: echo\r\n"));
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
      client.ask("GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(client.get("/next").status, 200);
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
  ASSERT_TRUE(eventually([&] {  // it comes to a stop by itself
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

TEST(Gateway, BytesBeyondAnActorsBudgetEndTheRequest) {
  Origin origin([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      if (request.method == Method::kPost) stream.pause();  // and takes nothing of the body
    };
    handler.complete = [](ServerStream& stream) { reply(stream, 200, "ok"); };
  });
  Config config = gateway_config({origin.address()});
  config.server.loops = 1;
  config.admission.bytes_max = 1;
  RunningGateway gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 200);  // leaves a connection to the origin
  Client client(gateway.port());
  std::thread sender([&] {
    static_cast<void>(client.send(
        "POST / HTTP/1.1\r\nhost: t\r\nx-api-key: k\r\ncontent-length: 100000000\r\n\r\n"));
    for (int i = 0; i < 1000; ++i) {
      if (!client.send(std::string(100000, 'z'))) return;
    }
  });
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(answer.has("x-weir-reason: actor_bytes\r\n"));
  sender.join();
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, AnAnswerMayComeBeforeTheBodyHasGone) {
  RawOrigin origin([](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
  });
  RunningGateway gateway(gateway_config({origin.address()}));
  Client client(gateway.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\nsome"));
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "no");
  EXPECT_TRUE(gateway.settled());
}

TEST(Gateway, ReplicasAreUsedInTurnAndADeadOneIsPassedOver) {
  std::string dead;
  {
    RawOrigin gone([](int, const std::string&) {});
    dead = gone.address();
  }
  Origin one([](ScriptedHandler& h) { h.complete = [](auto& s) { reply(s, 200, "one"); }; });
  Origin two([](ScriptedHandler& h) { h.complete = [](auto& s) { reply(s, 200, "two"); }; });
  RunningGateway gateway(gateway_config({one.address(), dead, two.address()}));
  Client client(gateway.port());
  std::string seen;
  for (int i = 0; i < 6; ++i) seen += client.get("/").body + " ";
  EXPECT_THAT(seen, HasSubstr("one"));
  EXPECT_THAT(seen, HasSubstr("two"));
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway->status().answered, 6U);
}

TEST(Gateway, ManyClientsOnManyLoopsAreAllCountedOnce) {
  Origin origin(testkit::echo);
  Config config = with_fixed_limit(gateway_config({origin.address()}), 4);
  config.admission.normal_wait_max = std::chrono::milliseconds(2);
  RunningGateway gateway(config);
  std::atomic<std::uint64_t> ok = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::vector<std::thread> threads;
  std::barrier together(16);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      Client client(gateway.port());
      together.arrive_and_wait();
      for (int i = 0; i < 200; ++i) {
        const int status = client.get("/").status;
        (status == 200 ? ok : refused) += 1;
        EXPECT_TRUE(status == 200 || status == 503) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(gateway.settled());
  const GatewayStatus status = gateway->status();
  EXPECT_EQ(status.received, 3200U);
  EXPECT_EQ(status.answered, ok);
  EXPECT_EQ(status.refused, refused);
  EXPECT_EQ(status.aborted, 0U);
}

}  // namespace
}  // namespace weir
