// TLS after the handshake: bodies in both directions, ends, key updates, replaced certificates.
#include "io/tls_transport.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::answer_path;
using testkit::every_loop;
using testkit::localhost;
using testkit::pattern;
using testkit::reply;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::signed_for;
using testkit::tls_config;
using testkit::TlsClient;

constexpr std::size_t kBig = 3 * 1024 * 1024 + 17;

/// GET /big sends a large body as fast as there is room.
void send_big(ScriptedHandler& handler) {
  struct Progress {
    std::size_t sent = 0;
  };
  static const std::string body = pattern(kBig);
  const auto proceed = [](ServerStream& stream) {
    auto& sent = stream.state<Progress>().sent;
    while (sent < body.size()) {
      const std::size_t took = stream.send_data(std::string_view(body).substr(sent), true);
      if (took == 0) return;
      sent += took;
    }
  };
  handler.headers = [proceed](ServerStream& stream, const ServerRequest&) {
    stream.make_state<Progress>();
    EXPECT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = body.size()}),
              SendResult::kSent);
    proceed(stream);
  };
  handler.writable = proceed;
}

TEST(TlsTransport, BigBodiesLeaveThroughATinyWritePool) {
  ServerConfig config = tls_config();
  config.tcp_write_buffer_pool_size = 4;
  config.tcp_write_buffer_size = 4096;
  config.socket_send_buffer_size = 8192;
  RunningServer server(config, every_loop(send_big));
  std::vector<std::thread> threads;
  std::atomic<int> whole{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      TlsClient client(server->tls_port(), {.receive_buffer = 8192});
      if (!client.shake()) return;
      if (client.get("/big").body == pattern(kBig)) ++whole;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole.load(), 4);
  EXPECT_LE(server.stats().write_buffers.peak, 4U);
}

TEST(TlsTransport, BigBodiesComeInWhateverTheirRecords) {
  RunningServer server(tls_config(), every_loop([](ScriptedHandler& handler) {
                         static std::string got;
                         handler.headers = [](ServerStream&, const ServerRequest&) { got.clear(); };
                         handler.body = [](ServerStream&, const http::BodyChunk& chunk) {
                           got.append(chunk.text());
                         };
                         handler.complete = [](ServerStream& stream) {
                           EXPECT_EQ(reply(stream, 200, got == pattern(kBig) ? "same" : "other"),
                                     SendResult::kSent);
                         };
                       }));
  const std::string body = pattern(kBig);
  for (const std::size_t piece : {std::size_t{100}, std::size_t{5000}, std::size_t{16384}, kBig}) {
    TlsClient client(server->tls_port());
    ASSERT_TRUE(client.shake());
    ASSERT_TRUE(client.send(
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(kBig) + "\r\n\r\n"));
    for (std::size_t at = 0; at < body.size(); at += piece) {
      ASSERT_TRUE(client.send(std::string_view(body).substr(at, piece)));
    }
    EXPECT_EQ(client.read().body, "same") << piece;
  }
}

TEST(TlsTransport, RequestsInOneRecordAreAllAnswered) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nhost: t\r\n\r\n";
  }
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(client.read().body, "/" + std::to_string(i));
}

TEST(TlsTransport, ClosingSaysGoodbyeAfterAWholeAnswerOnly) {
  RunningServer server(
      tls_config(), every_loop([](ScriptedHandler& handler) {
        handler.headers = [](ServerStream& stream, const ServerRequest& request) {
          if (request.meta.path == "/cut") {
            EXPECT_EQ(stream.send_headers({.status = 200, .fields = {}, .content_length = 100}),
                      SendResult::kSent);
            return stream.reset();
          }
          EXPECT_EQ(reply(stream, 200, "whole"), SendResult::kSent);
        };
      }));
  bool clean = false;
  TlsClient whole(server->tls_port());
  ASSERT_TRUE(whole.shake());
  ASSERT_TRUE(whole.send("GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n"));
  EXPECT_EQ(whole.read().body, "whole");
  EXPECT_TRUE(whole.at_end(&clean));
  EXPECT_TRUE(clean);
  TlsClient cut(server->tls_port());
  ASSERT_TRUE(cut.shake());
  ASSERT_TRUE(cut.send("GET /cut HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(cut.read().body.empty());
  EXPECT_TRUE(cut.at_end(&clean));
  EXPECT_FALSE(clean) << "a goodbye would call half an answer complete";
}

TEST(TlsTransport, TheClientsGoodbyeEndsTheConnection) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake());
  ASSERT_EQ(client.get("/").status, 200);
  SSL_shutdown(client.ssl());
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kClient) == 1; }));
}

TEST(TlsTransport, GarbageAfterTheHandshakeEndsTheConnectionWithItsReason) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake());
  ASSERT_EQ(client.get("/").status, 200);
  ASSERT_TRUE(client.tcp().send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x')));
  EXPECT_TRUE(
      server.eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kTls) == 1; }));
}

TEST(TlsTransport, RenegotiationIsRefused) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port(), {.version_max = TLS1_2_VERSION});
  ASSERT_TRUE(client.shake());
  ASSERT_EQ(client.get("/").status, 200);
  ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
  ERR_clear_error();
  static_cast<void>(SSL_do_handshake(client.ssl()));
  EXPECT_NE(client.get("/").status, 200);
  EXPECT_EQ(server.stats().tls.handshakes_by(HandshakeResult::kFull), 1U);
}

TEST(TlsTransport, TenKeyUpdatesLive) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(client.get("/" + std::to_string(i)).body, "/" + std::to_string(i));
  }
  EXPECT_EQ(server.stats().tls.key_updates_exceeded, 0U);
}

TEST(TlsTransport, AStormOfKeyUpdatesIsClosed) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake());
  ASSERT_EQ(client.get("/").status, 200);
  for (int i = 0; i < 5000; ++i) {
    if (SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) break;
    ERR_clear_error();
    if (SSL_do_handshake(client.ssl()) != 1) break;
  }
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.tls.key_updates_exceeded == 1 && s.closed_by(CloseReason::kTls) == 1;
  }));
  TlsClient other(server->tls_port());
  ASSERT_TRUE(other.shake());
  EXPECT_EQ(other.get("/").status, 200);
}

TEST(TlsTransport, CertificatesChangeUnderLoadWithoutAFailure) {
  ServerConfig config = tls_config();
  config.loops = 2;
  RunningServer server(config, answer_path());
  std::atomic<bool> proceed{true};
  std::atomic<int> failed{0};
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (proceed) {
        TlsClient client(server->tls_port());
        const bool good = client.shake() && client.get("/x").body == "/x";
        ++(good ? served : failed);
      }
    });
  }
  TlsClient before(server->tls_port());
  ASSERT_TRUE(before.shake());
  ASSERT_EQ(before.get("/").status, 200);
  SSL_SESSION* session = SSL_get1_session(before.ssl());
  io::TlsConfig next = config.tls;
  for (int i = 0; i < 10; ++i) {
    const io::MadeCertificate made = signed_for({"localhost"});
    next.certificate_pem = made.certificate_pem;
    next.private_key_pem = made.key_pem;
    const auto rotated = server->reload_tls(next);
    ASSERT_TRUE(rotated.has_value());
    ASSERT_EQ(rotated->size(), 1U);
    EXPECT_EQ(rotated->front().subject, "CN=localhost");
    EXPECT_FALSE(rotated->front().expires.empty());
    EXPECT_EQ(rotated->front().subject_before, "CN=localhost");
    ASSERT_TRUE(server->reload_tls(next)->empty()) << "the same again is not another one";
    const int now = served;
    ASSERT_TRUE(server.eventually([&](const ServerStats&) { return served > now + 3; }));
  }
  proceed = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(before.get("/still").body, "/still") << "a connection keeps what it began with";
  TlsClient after(server->tls_port(), {.session = session});
  ASSERT_TRUE(after.shake());
  EXPECT_EQ(SSL_session_reused(after.ssl()), 1) << "ticket keys are kept";
  SSL_SESSION_free(session);
}

TEST(TlsTransport, ABadCertificateIsRefusedAndTheOldOneStays) {
  RunningServer server(tls_config(), answer_path());
  io::TlsConfig next = tls_config().tls;
  next.private_key_pem = signed_for({"other"}).key_pem;
  const auto mismatch = server->reload_tls(next);
  ASSERT_FALSE(mismatch.has_value());
  EXPECT_NE(mismatch.error().allowed.find("does not hold the key"), std::string::npos);
  next = {};
  next.certificate = "/nowhere/chain.pem";
  next.private_key = "/nowhere/key.pem";
  const auto missing = server->reload_tls(next);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().key, "tls.certificate");
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake()) << client.why();
}

}  // namespace
}  // namespace weir::inline v0::inline server
