// HTTP/1.1 as clients see it: framing, reuse of connections, and every order of events.
#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

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

void answer_hello(ScriptedHandler& h) {
  h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "hello"), SendResult::kSent); };
}

/// Collects the body in the stream's arena and sends it back.
void answer_with_body(ScriptedHandler& h) {
  h.headers = [](ServerStream& s, const ServerRequest&) { s.user_data = new std::string; };
  h.body = [](ServerStream& s, const http::BodyChunk& c) {
    static_cast<std::string*>(s.user_data)->append(c.text());
  };
  h.complete = [](ServerStream& s) {
    EXPECT_EQ(reply(s, 200, *static_cast<std::string*>(s.user_data)), SendResult::kSent);
  };
  const auto forget = [](ServerStream& s) { delete static_cast<std::string*>(s.user_data); };
  h.finished = forget;
  h.aborted = [forget](ServerStream& s, CloseReason) { forget(s); };
}

TEST(H1Server, KeepsTheConnectionBetweenRequests) {
  RunningServer server(small_config(), every_loop(answer_hello));
  Client client(server.port());
  for (int i = 0; i < 100; ++i) {
    const Answer answer = client.get("/");
    ASSERT_EQ(answer.status, 200);
    ASSERT_EQ(answer.body, "hello");
    ASSERT_TRUE(answer.has("date: "));
    ASSERT_FALSE(answer.has("connection:"));
  }
  EXPECT_EQ(server.stats().accepted, 1U);
  EXPECT_EQ(server.stats().requests, 100U);
}

TEST(H1Server, PipelinedRequestsAreAnsweredInOrderOneAtATime) {
  static std::atomic<int> in_flight{0};
  static std::atomic<int> most{0};
  in_flight = most = 0;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest& r) {
                           most = std::max(most.load(), ++in_flight);
                           s.user_data = new std::string(r.meta.path);
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, *static_cast<std::string*>(s.user_data)),
                                     SendResult::kSent);
                         };
                         h.finished = [](ServerStream& s) {
                           --in_flight;
                           delete static_cast<std::string*>(s.user_data);
                         };
                       }));
  Client client(server.port());
  std::string requests;
  for (int i = 0; i < 5000; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nhost: t\r\n\r\n";
  }
  std::future<bool> sending = std::async(std::launch::async, [&] { return client.send(requests); });
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.read().body, "/" + std::to_string(i));
  EXPECT_TRUE(sending.get());
  EXPECT_EQ(most.load(), 1);
  EXPECT_EQ(server.stats().read_regions.peak, 1U) << "memory is flat";
}

TEST(H1Server, PipelinedFloodIsParsedWhereItCame) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
                         };
                       }));
  constexpr std::uint64_t kCount = 5000;
  std::string flood;
  for (std::uint64_t i = 0; i < kCount; ++i) flood += "GET / HTTP/1.1\r\nhost: t\r\n\r\n";
  Client client(server.port());
  std::thread sender([&] { EXPECT_TRUE(client.send(flood)); });
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(client.read().status, 200);
  sender.join();
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.bytes_received, flood.size());
  EXPECT_LT(stats.bytes_copied_in * 20, stats.bytes_received)
      << "only heads cut by the end of a region are moved";
}

TEST(H1Server, BodiesOfBothFramingsArriveHowEverTheyAreCut) {
  RunningServer server(small_config(), every_loop(answer_with_body));
  const std::string by_length =
      "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 11\r\n\r\nhello world";
  const std::string chunked =
      "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
  for (const std::string& request : {by_length, chunked}) {
    Client client(server.port());
    EXPECT_EQ(client.ask(request).body, "hello world");
    for (const char byte : request) ASSERT_TRUE(client.send({&byte, 1}));
    EXPECT_EQ(client.read().body, "hello world");
  }
}

TEST(H1Server, HeadHasTheLengthButNotTheBody) {
  RunningServer server(small_config(), every_loop(answer_hello));
  Client client(server.port());
  ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nhost: t\r\n\r\n"));
  const Answer answer = client.read(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("content-length: 5\r\n"));
  EXPECT_EQ(client.get("/").body, "hello") << "the connection is in step";
}

TEST(H1Server, StreamedResponseIsChunkedForHttp11AndUntilCloseForHttp10) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           ASSERT_EQ(
                               s.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                               SendResult::kSent);
                           EXPECT_EQ(s.send_data("one "), 4U);
                           EXPECT_EQ(s.send_data("two", true), 3U);
                           EXPECT_EQ(s.send_data("more"), 0U) << "the body has ended";
                         };
                       }));
  Client modern(server.port());
  const Answer chunked = modern.get("/");
  EXPECT_TRUE(chunked.has("transfer-encoding: chunked"));
  EXPECT_EQ(chunked.body, "one two");
  EXPECT_EQ(modern.get("/").body, "one two");
  Client old(server.port());
  const Answer plain = old.ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(plain.has("transfer-encoding"));
  EXPECT_TRUE(plain.has("connection: close"));
  EXPECT_EQ(plain.body, "one two");
}

TEST(H1Server, Http10KeepAliveIsHonouredWhenAsked) {
  RunningServer server(small_config(), every_loop(answer_hello));
  Client client(server.port());
  const Answer kept = client.ask("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(kept.has("connection: keep-alive"));
  const Answer last = client.ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(last.has("connection: close"));
  EXPECT_TRUE(client.at_end());
}

TEST(H1Server, TrailersGoBothWaysToThoseWhoUnderstandThem) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.trailers = [](ServerStream& s, const http::HeaderList& list) {
                           s.user_data = new std::string(list[0].value);
                         };
                         h.complete = [](ServerStream& s) {
                           ASSERT_EQ(
                               s.send_headers({.status = 200, .fields = {}, .content_length = {}}),
                               SendResult::kSent);
                           EXPECT_EQ(s.send_data("body"), 4U);
                           auto* seen = static_cast<std::string*>(s.user_data);
                           const ResponseField fields[] = {{"x-sum", *seen}};
                           EXPECT_EQ(s.send_trailers(fields), SendResult::kSent);
                           delete seen;
                         };
                       }));
  const std::string request =
      "POST / HTTP/1.1\r\nhost: t\r\nTE\r\ntransfer-encoding: chunked\r\n\r\n"
      "2\r\nhi\r\n0\r\nx-in: 42\r\n\r\n";
  const auto with = [&](const std::string& te) {
    std::string out = request;
    return out.replace(out.find("TE\r\n"), 4, te);
  };
  Client knows(server.port());
  EXPECT_EQ(knows.ask(with("te: trailers\r\nconnection: te\r\n")).body, "body");
  EXPECT_EQ(knows.trailers, "x-sum: 42\n");
  Client does_not(server.port());
  EXPECT_EQ(does_not.ask(with("")).body, "body");
  EXPECT_EQ(does_not.trailers, "");
}

TEST(H1Server, RequestsThatAreNotHttpAreRefusedAndTheConnectionEnds) {
  RunningServer server(small_config(), every_loop(answer_hello));
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\nhost: t\n\n", 400},
      {"GET / HTTP/3.0\r\nhost: t\r\n\r\n", 505},
      {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nhost: t\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nhost: t\r\nx: " + std::string(20'000, 'x') + "\r\n\r\n", 431},
      {"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nhost: t\r\nexpect: miracles\r\ncontent-length: 1\r\n\r\nx", 417},
      {"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n", 400},
  };
  for (const auto& [request, status] : cases) {
    Client client(server.port());
    const Answer answer = client.ask(request);
    EXPECT_EQ(answer.status, status) << request.substr(0, 60);
    EXPECT_TRUE(answer.has("connection: close"));
    EXPECT_TRUE(client.at_end());
    EXPECT_FALSE(client.was_reset()) << "the answer must not be lost to a reset";
  }
  EXPECT_TRUE(server.eventually([&](const ServerStats& s) {
    return s.closed_by(CloseReason::kParseError) == std::size(cases);
  }));
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kBadRequest), std::size(cases));
}

TEST(H1Server, EarlyAnswerDrainsASmallBodyAndKeepsTheConnection) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           EXPECT_EQ(reply(s, 403, "no"), SendResult::kSent);
                         };
                         h.body = [](ServerStream&, const http::BodyChunk&) {
                           FAIL() << "answered already";
                         };
                       }));
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 30000\r\n\r\n"));
    EXPECT_EQ(client.read().status, 403);
    ASSERT_TRUE(client.send(std::string(30'000, 'x')));
  }
  EXPECT_EQ(client.get("/").status, 403);
}

TEST(H1Server, EarlyAnswerToALargeBodyEndsTheConnectionAfterTheAnswer) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           EXPECT_EQ(reply(s, 413, "too large"), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 10000000\r\n\r\n"));
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 413);
  EXPECT_TRUE(answer.has("connection: close"));
  client.close();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
}

TEST(H1Server, UnreadChunkedBodyIsReadOffOnlySoFar) {
  ServerConfig config = small_config();
  config.drain_bytes_max = 20'000;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           EXPECT_EQ(reply(s, 403, "no"), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"));
  EXPECT_EQ(client.read().status, 403);
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  for (int i = 0; i < 20 && client.send(chunk); ++i) {
  }
  client.end_output();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kUnreadBody) == 1 && s.connections.used == 0;
  }));
  EXPECT_LT(server.stats().bytes_received, 80'000U);
}

TEST(H1Server, ResetIsSeenAndTold) {
  static std::atomic<int> aborts{0};
  aborts = 0;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           ASSERT_EQ(
                               s.send_headers({.status = 200, .fields = {}, .content_length = 100}),
                               SendResult::kSent);
                           EXPECT_EQ(s.send_data("part"), 4U);
                           s.reset();
                         };
                         h.aborted = [](ServerStream& s, CloseReason reason) {
                           EXPECT_EQ(reason, CloseReason::kReset);
                           EXPECT_EQ(reply(s, 200, "too late"), SendResult::kClosed);
                           ++aborts;
                         };
                         h.finished = [](ServerStream&) { FAIL() << "exactly one of the two"; };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_LT(client.read().body.size(), 100U);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  EXPECT_EQ(aborts.load(), 1);
}

TEST(H1Server, WrongLengthsNeverReachTheWireAsACompleteResponse) {
  for (const bool too_much : {true, false}) {
    RunningServer server(small_config(), every_loop([too_much](ScriptedHandler& h) {
                           h.complete = [too_much](ServerStream& s) {
                             ASSERT_EQ(
                                 s.send_headers({.status = 200, .fields = {}, .content_length = 5}),
                                 SendResult::kSent);
                             static_cast<void>(s.send_data(too_much ? "123456" : "1234", true));
                           };
                         }));
    Client client(server.port());
    EXPECT_LT(client.get("/").body.size(), 5U);
    EXPECT_TRUE(client.at_end());
  }
}

TEST(H1Server, ResponseThatWouldBreakFramingIsRefusedToTheHandler) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& h) {
        h.complete = [](ServerStream& s) {
          const ResponseField split[] = {{"x", "a\r\nset-cookie: b"}};
          EXPECT_EQ(s.send_response({.status = 200, .fields = split, .content_length = {}}, "x"),
                    SendResult::kInvalid);
          const ResponseField framing[] = {{"content-length", "7"}};
          EXPECT_EQ(s.send_response({.status = 200, .fields = framing, .content_length = {}}, "x"),
                    SendResult::kInvalid);
          EXPECT_EQ(reply(s, 99, "x"), SendResult::kInvalid);
          EXPECT_EQ(reply(s, 101, "x"), SendResult::kInvalid);
          EXPECT_EQ(reply(s, 200, "fine"), SendResult::kSent);
          EXPECT_EQ(reply(s, 200, "twice"), SendResult::kClosed);
        };
      }));
  Client client(server.port());
  EXPECT_EQ(client.get("/").body, "fine");
  EXPECT_EQ(client.get("/").body, "fine");
}

TEST(H1Server, HandlerMayAnswerLaterFromAnotherThreadByPosting) {
  struct Later {
    void run() { EXPECT_EQ(reply(*stream, 200, "later"), SendResult::kSent); }
    ServerStream* stream = nullptr;
    io::Task task{io::Callback<>::to<&Later::run>(*this)};
  };
  static Later later;
  static std::promise<void> asked;
  asked = {};
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           later.stream = &s;
                           asked.set_value();
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  asked.get_future().wait();
  later.stream->loop().post(later.task);  // from this thread
  EXPECT_EQ(client.read().body, "later");
}

TEST(H1Server, PausedBodyWaitsAndResumesWhereItWas) {
  static ServerStream* paused = nullptr;
  static std::promise<void> stopped;
  static std::string seen;
  paused = nullptr;
  stopped = {};
  seen.clear();
  struct Resumer {
    void run() { paused->resume(); }
    io::Task task{io::Callback<>::to<&Resumer::run>(*this)};
  };
  Resumer resumer;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.body = [](ServerStream& s, const http::BodyChunk& c) {
                           seen.append(c.text());
                           if (paused != nullptr) return;
                           paused = &s;
                           s.pause();
                           stopped.set_value();
                         };
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(reply(s, 200, std::to_string(seen.size())), SendResult::kSent);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 200000\r\n\r\n"));
  std::future<bool> sending =
      std::async(std::launch::async, [&] { return client.send(std::string(200'000, 'x')); });
  stopped.get_future().wait();
  EXPECT_LE(server.stats().bytes_received, 2 * 32 * 1024U + 200) << "the region bounds it";
  paused->loop().post(resumer.task);
  EXPECT_EQ(client.read().body, "200000");
  EXPECT_TRUE(sending.get());
}

TEST(H1Server, ClientThatVanishesWhileAResponseIsDueIsNoticed) {
  static std::atomic<int> aborted{0};
  static std::promise<void> asked;
  aborted = 0;
  asked = {};
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream&) { asked.set_value(); };  // never answers
                         h.aborted = [](ServerStream&, CloseReason reason) {
                           EXPECT_EQ(reason, CloseReason::kClientAbort);
                           ++aborted;
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  asked.get_future().wait();
  client.close();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  EXPECT_EQ(aborted.load(), 1);
}

TEST(H1Server, HalfClosedClientGetsItsAnswerWhenAllowed) {
  ServerConfig config = small_config();
  config.allow_half_close = true;
  RunningServer server(config, every_loop(answer_hello));
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\nGET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  client.end_output();
  EXPECT_EQ(client.read().body, "hello");
  EXPECT_EQ(client.read().body, "hello");
  EXPECT_TRUE(client.at_end());
}

TEST(H1Server, HalfClosedClientGetsALateAnswerWhenAllowed) {
  testkit::Gate gate;
  ServerConfig config = small_config();
  config.allow_half_close = true;
  RunningServer server(config, gate.holding());
  Client client(server.port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  client.end_output();
  ASSERT_TRUE(server.eventually([&](const ServerStats&) { return gate.size() == 1; }));
  gate.open_one();
  EXPECT_EQ(client.read().body, "done");
  EXPECT_TRUE(client.at_end());
}

TEST(H1Server, HandlerThatImplementsNothingElseIsEnough) {
  struct Bare final : Handler {
    void on_headers(ServerStream& s, const ServerRequest&) override {
      EXPECT_EQ(s.body_bytes_received(), 0U);
      EXPECT_EQ(reply(s, 200, "bare"), SendResult::kSent);
    }
  };
  RunningServer server(small_config(),
                       [](const HandlerPlace&) { return std::make_unique<Bare>(); });
  Client client(server.port());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client
                  .ask("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                       "5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n")
                  .body,
              "bare");
  }
}

TEST(H1Server, RequestsPerConnectionAreBounded) {
  ServerConfig config = small_config();
  config.requests_per_connection_max = 3;
  RunningServer server(config, every_loop(answer_hello));
  Client client(server.port());
  EXPECT_FALSE(client.get("/").has("connection: close"));
  EXPECT_FALSE(client.get("/").has("connection: close"));
  EXPECT_TRUE(client.get("/").has("connection: close"));
  EXPECT_TRUE(client.at_end());
}

TEST(H1Server, DrainFinishesWhatIsInFlightAndRefusesNewcomers) {
  static std::promise<ServerStream*> asked;
  asked = {};
  struct Answerer {
    void run() { EXPECT_EQ(reply(*stream, 200, "done"), SendResult::kSent); }
    ServerStream* stream = nullptr;
    io::Task task{io::Callback<>::to<&Answerer::run>(*this)};
  };
  Answerer answerer;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) { asked.set_value(&s); };
                       }));
  Client idle(server.port());
  Client busy(server.port());
  ASSERT_TRUE(busy.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  answerer.stream = asked.get_future().get();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.accepted == 2; }));
  EXPECT_FALSE(server->drain(std::chrono::milliseconds(20))) << "one is still in flight";
  EXPECT_TRUE(idle.at_end()) << "idle ones go at once";
  EXPECT_FALSE(Client(server.port()).connected());
  answerer.stream->loop().post(answerer.task);
  const Answer answer = busy.read();
  EXPECT_EQ(answer.body, "done");
  EXPECT_TRUE(answer.has("connection: close"));
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace weir::inline v0::inline server
