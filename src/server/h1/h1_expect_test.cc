// Expect: 100-continue in all four orders, 1xx, and Upgrade as a tunnel.
#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::count_body;
using testkit::every_loop;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;

constexpr std::string_view kExpecting =
    "POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";

TEST(ExpectContinue, ClientWaitsServerInvitesBodyComes) {
  RunningServer server(small_config(), every_loop(count_body));
  Client client(server.port());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.ask(kExpecting).status, 100);
    const Answer answer = client.ask("hello");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "5");
  }
  EXPECT_EQ(client.get("/").status, 200) << "in step";
}

TEST(ExpectContinue, ClientDoesNotWaitAndNeedsNoInvitation) {
  RunningServer server(small_config(), every_loop(count_body));
  Client client(server.port());
  const Answer answer = client.ask(std::string(kExpecting) + "hello");
  EXPECT_EQ(answer.status, 200) << "no 100 before it: the body was there";
  EXPECT_EQ(answer.body, "5");
  EXPECT_EQ(client.get("/").status, 200);
}

TEST(ExpectContinue, FinalAnswerInsteadOfAnInvitationEndsTheConnection) {
  // It is unknown whether the client still sends its body: what follows must not be parsed.
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.headers = [](ServerStream& s, const ServerRequest& r) {
                           EXPECT_TRUE(r.expect_continue);
                           s.send_503();
                         };
                       }));
  Client client(server.port());
  const Answer answer = client.ask(kExpecting);
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("connection: close"));
  ASSERT_TRUE(client.send("GET /smuggled HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server.stats().requests, 1U);
}

TEST(ExpectContinue, FinalAnswerAfterTheInvitationDrainsTheBody) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         h.body = [](ServerStream& s, const http::BodyChunk&) {
                           EXPECT_EQ(reply(s, 409, "stop"), SendResult::kSent);
                         };
                         h.complete = [](ServerStream& s) {
                           static_cast<void>(reply(s, 200, "next"));
                         };
                       }));
  Client client(server.port());
  EXPECT_EQ(client.ask(kExpecting).status, 100);
  EXPECT_EQ(client.ask("he").status, 409) << "answered in the middle of the body";
  ASSERT_TRUE(client.send("llo"));
  EXPECT_EQ(client.get("/").body, "next") << "the rest was read and thrown away";
}

TEST(ExpectContinue, InvitationWaitsForAPausedHandler) {
  static std::promise<ServerStream*> stopped;
  stopped = {};
  struct Resumer {
    void run() { stream->resume(); }
    ServerStream* stream = nullptr;
    io::Task task{io::Callback<>::to<&Resumer::run>(*this)};
  };
  Resumer resumer;
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         count_body(h);
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           s.pause();
                           stopped.set_value(&s);
                         };
                       }));
  Client client(server.port());
  ASSERT_TRUE(client.send(kExpecting));
  resumer.stream = stopped.get_future().get();
  EXPECT_EQ(server.stats().responses_1xx, 0U);
  resumer.stream->loop().post(resumer.task);
  EXPECT_EQ(client.read().status, 100);
  EXPECT_EQ(client.ask("hello").body, "5");
}

TEST(Informational, EarlyHintsPrecedeTheAnswer) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& h) {
        h.complete = [](ServerStream& s) {
          const ResponseField hint[] = {{"link", "</style.css>"}};
          EXPECT_EQ(s.send_headers({.status = 103, .fields = hint, .content_length = {}}),
                    SendResult::kSent);
          EXPECT_FALSE(s.response_started());
          EXPECT_EQ(reply(s, 200, "page"), SendResult::kSent);
        };
      }));
  Client client(server.port());
  const Answer hint = client.get("/");
  EXPECT_EQ(hint.status, 103);
  EXPECT_TRUE(hint.has("link: </style.css>"));
  EXPECT_EQ(client.read().body, "page");
  Client old(server.port());
  EXPECT_EQ(old.ask("GET / HTTP/1.0\r\n\r\n").status, 200) << "HTTP/1.0 knows no 1xx";
}

constexpr std::string_view kUpgrade =
    "GET /chat HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

void tunnel_echo(ScriptedHandler& h) {
  h.headers = [](ServerStream& s, const ServerRequest& r) {
    if (!r.upgrade) return;
    const ResponseField fields[] = {{"upgrade", "echo"}};
    EXPECT_EQ(s.send_headers({.status = 101, .fields = fields, .content_length = {}}),
              SendResult::kSent);
  };
  h.body = [](ServerStream& s, const http::BodyChunk& c) {
    EXPECT_EQ(s.send_data(c.text(), c.last()), c.len);
  };
}

TEST(Upgrade, BecomesATunnelAfter101) {
  RunningServer server(small_config(), every_loop(tunnel_echo));
  Client client(server.port());
  const Answer answer = client.ask(std::string(kUpgrade) + "first");
  EXPECT_EQ(answer.status, 101);
  EXPECT_TRUE(answer.has("upgrade: echo"));
  EXPECT_TRUE(answer.has("connection: upgrade"));
  EXPECT_EQ(client.take(5), "first") << "bytes behind the head belong to the tunnel";
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(client.take(18), "GET / HTTP/1.1\r\n\r\n") << "nothing is parsed in there";
  EXPECT_EQ(server.stats().tunnels, 1U);
  client.end_output();
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kTunnelEnd) == 1; }));
  EXPECT_EQ(server.stats().tunnels, 0U) << "those that are open now";
}

TEST(Upgrade, LargeTransferThroughATunnelIsFlowControlled) {
  RunningServer server(small_config(), every_loop([](ScriptedHandler& h) {
                         tunnel_echo(h);
                         h.body = [](ServerStream& s, const http::BodyChunk& c) {
                           EXPECT_EQ(s.send_data(c.text(), c.last()), c.len);
                           if (s.writable_bytes() < 64 * 1024) s.pause();
                         };
                         h.writable = [](ServerStream& s) { s.resume(); };
                       }));
  Client client(server.port());
  ASSERT_EQ(client.ask(kUpgrade).status, 101);
  const std::size_t size = 8 * 1024 * 1024;
  std::future<bool> sending = std::async(std::launch::async, [&] {
    const bool sent = client.send(std::string(size, 'x'));
    client.end_output();
    return sent;
  });
  EXPECT_EQ(client.take(size).size(), size);
  EXPECT_TRUE(sending.get());
  EXPECT_TRUE(client.at_end());
}

TEST(Upgrade, RejectedUpgradeLeavesFramingIntact) {
  RunningServer server(
      small_config(), every_loop([](ScriptedHandler& h) {
        h.headers = [](ServerStream& s, const ServerRequest& r) {
          if (!r.upgrade) {
            EXPECT_EQ(s.send_headers({.status = 101, .fields = {}, .content_length = {}}),
                      SendResult::kInvalid)
                << "nobody asked for it";
          }
        };
        h.complete = [](ServerStream& s) { EXPECT_EQ(reply(s, 200, "plain"), SendResult::kSent); };
      }));
  Client client(server.port());
  EXPECT_EQ(client.ask(kUpgrade).body, "plain");
  EXPECT_EQ(client.get("/").body, "plain");
  EXPECT_EQ(server.stats().tunnels, 0U);
}

TEST(Upgrade, TunnelsHavePlacesAndGiveThemBack) {
  ServerConfig config = small_config();
  config.tunnels_max = 1;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         tunnel_echo(h);
                         h.headers = [agree = h.headers](ServerStream& s, const ServerRequest& r) {
                           if (s.reserve_tunnel()) return agree(s, r);
                           EXPECT_EQ(reply(s, 503, "full"), SendResult::kSent);
                         };
                       }));
  Client first(server.port());
  ASSERT_EQ(first.ask(kUpgrade).status, 101);
  EXPECT_EQ(server.stats().tunnel_places.used, 1U);
  Client second(server.port());
  EXPECT_EQ(second.ask(kUpgrade).body, "full");
  EXPECT_EQ(server.stats().tunnel_places.exhausted, 1U);
  first.close();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.tunnel_places.used == 0; }));
  EXPECT_EQ(second.ask(kUpgrade).status, 101) << "the connection stayed usable";
}

TEST(Upgrade, AHeadThatBeginsATunnelNeedsAPlace) {
  ServerConfig config = small_config();
  config.tunnels_max = 0;
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         h.complete = [](ServerStream& s) {
                           EXPECT_EQ(
                               s.send_headers({.status = 101, .fields = {}, .content_length = {}}),
                               SendResult::kInvalid);
                           EXPECT_EQ(reply(s, 200, "plain"), SendResult::kSent);
                         };
                       }));
  EXPECT_EQ(Client(server.port()).ask(kUpgrade).body, "plain");
}

TEST(Upgrade, SilentTunnelEndsByItsOwnTimer) {
  ServerConfig config = small_config();
  config.tunnel_idle_timeout = std::chrono::milliseconds(30);
  RunningServer server(config, every_loop(tunnel_echo));
  Client client(server.port());
  ASSERT_EQ(client.ask(kUpgrade).status, 101);
  EXPECT_TRUE(client.at_end());
  EXPECT_FALSE(client.timed_out());
  EXPECT_EQ(server.stats().closed_by(CloseReason::kTunnelIdle), 1U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
