// Before and during the handshake: what a connection costs before it has a TLS object, which one
// gets a slot, and every way in which a handshake can end.
#include "tls/tls_entry.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "server/tls/tls_testing.h"
#include "shared.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::answer_path;
using testkit::Client;
using testkit::RunningServer;
using testkit::signed_for;
using testkit::tls_config;
using testkit::TlsClient;
using testkit::TlsWish;
using testkit::WithClientCa;

std::uint64_t ended(const ServerStats& stats, HandshakeResult result) {
  return stats.tls.handshakes_by(result);
}

/// The first bytes of a ClientHello of 512 bytes.
std::string half_a_hello(std::size_t bytes) {
  std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  hello.resize(bytes, 'r');
  return hello;
}

TEST(TlsEntry, BothVersionsShakeHands) {
  RunningServer server(tls_config(), answer_path());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server->tls_port(), {.version_max = version});
    ASSERT_TRUE(client.shake()) << client.why();
    EXPECT_EQ(SSL_version(client.ssl()), version);
    EXPECT_EQ(client.get("/a").body, "/a");
    EXPECT_EQ(client.get("/secure").body, "yes");
  }
  EXPECT_EQ(ended(server.stats(), HandshakeResult::kFull), 2U);
  EXPECT_EQ(server.stats().tls.handshake_slots.used, 0U);
  EXPECT_EQ(server.stats().tls.handshake_slots.peak, 1U);
}

TEST(TlsEntry, OlderVersionsAreRefusedWithAnAlert) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port(), {.version_max = TLS1_1_VERSION});
  SSL_set_security_level(client.ssl(), 0);
  SSL_set_min_proto_version(client.ssl(), TLS1_VERSION);
  EXPECT_FALSE(client.shake());
  EXPECT_NE(client.why().find("protocol version"), std::string::npos) << client.why();
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return ended(s, HandshakeResult::kFailed) == 1; }));
}

TEST(TlsEntry, CleartextAndTlsAreServedSideBySide) {
  ServerConfig config = tls_config();
  config.listen = {"127.0.0.1:0"};
  RunningServer server(config, answer_path());
  ASSERT_NE(server->port(), server->tls_port());
  EXPECT_EQ(Client(server->port()).get("/secure").body, "no");
  TlsClient client(server->tls_port());
  ASSERT_TRUE(client.shake()) << client.why();
  EXPECT_EQ(client.get("/secure").body, "yes");
}

TEST(TlsEntry, ClientsWithoutOrWithACommonProtocolGetHttp1) {
  RunningServer server(tls_config(), answer_path());
  TlsClient plain(server->tls_port());
  ASSERT_TRUE(plain.shake());
  EXPECT_EQ(plain.protocol(), "");
  EXPECT_EQ(plain.get("/").status, 200);
  TlsClient asks(server->tls_port(), {.protocols = {"http/1.1", "http/1.0"}});
  ASSERT_TRUE(asks.shake());
  EXPECT_EQ(asks.protocol(), "http/1.1");
  EXPECT_EQ(asks.get("/").status, 200);
}

TEST(TlsEntry, Http2IsAgreedOnUnlessItIsSwitchedOff) {
  ServerConfig config = tls_config();
  for (const bool on : {true, false}) {
    config.tls.http2 = on;
    RunningServer server(config, answer_path());
    TlsClient client(server->tls_port(), {.protocols = {"h2", "http/1.1"}});
    ASSERT_TRUE(client.shake()) << client.why();
    EXPECT_EQ(client.protocol(), on ? "h2" : "http/1.1");
  }
}

TEST(TlsEntry, ClientsThatOfferOnlyUnknownProtocolsGetAnAlert) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port(), {.protocols = {"smtp", "imap"}});
  EXPECT_FALSE(client.shake());
  EXPECT_NE(client.why().find("no application protocol"), std::string::npos) << client.why();
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kHandshake) == 1; }));
}

TEST(TlsEntry, TheNameAskedForChoosesTheCertificate) {
  const std::string path = testing::TempDir() + "weir_tls_second_" + std::to_string(::getpid());
  {
    const std::string pem = signed_for({"second.example"}).both();
    FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fwrite(pem.data(), 1, pem.size(), file);
    std::fclose(file);
  }
  ServerConfig config = tls_config();
  config.tls.more_certificates = {path};
  RunningServer server(config, answer_path());
  TlsClient second(server->tls_port(), {.name = "second.example"});
  ASSERT_TRUE(second.shake()) << second.why();
  EXPECT_NE(second.server_subject().find("second.example"), std::string::npos);
  TlsClient first(server->tls_port(), {.name = "localhost"});
  ASSERT_TRUE(first.shake()) << first.why();
  EXPECT_NE(first.server_subject().find("localhost"), std::string::npos);
}

TEST(TlsEntry, AnOptionalClientCertificateIsToldToTheHandler) {
  RunningServer server(WithClientCa(io::ClientCertificate::kOptional).config, answer_path());
  const io::MadeCertificate worker = signed_for({"worker-7"});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient known(server->tls_port(), {.version_max = version, .own = &worker});
    ASSERT_TRUE(known.shake()) << known.why();
    EXPECT_EQ(known.get("/who").body, "CN=worker-7");
    TlsClient stranger(server->tls_port(), {.version_max = version});
    ASSERT_TRUE(stranger.shake()) << stranger.why();
    EXPECT_EQ(stranger.get("/who").body, "");
  }
}

TEST(TlsEntry, ACertificateThatNobodyWeTrustHasSignedIsRefused) {
  RunningServer server(WithClientCa(io::ClientCertificate::kOptional).config, answer_path());
  const io::MadeCertificate forged =
      io::make_certificate({.names = {"worker-7"}, .signer_pem = {}});
  TlsClient client(server->tls_port(), {.own = &forged});
  const bool served = client.shake() && client.get("/who").status == 200;
  EXPECT_FALSE(served);
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return ended(s, HandshakeResult::kFailed) == 1; }));
}

TEST(TlsEntry, WhereACertificateIsRequiredNobodyGetsInWithout) {
  RunningServer server(WithClientCa(io::ClientCertificate::kRequired).config, answer_path());
  const io::MadeCertificate worker = signed_for({"worker-7"});
  TlsClient known(server->tls_port(), {.own = &worker});
  ASSERT_TRUE(known.shake()) << known.why();
  EXPECT_EQ(known.get("/who").body, "CN=worker-7");
  TlsClient stranger(server->tls_port());
  const bool served = stranger.shake() && stranger.get("/who").status == 200;
  EXPECT_FALSE(served);
}

TEST(TlsEntry, ATicketResumesTheSessionOnAnyConnection) {
  RunningServer server(WithClientCa(io::ClientCertificate::kOptional).config, answer_path());
  const io::MadeCertificate worker = signed_for({"worker-7"});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient first(server->tls_port(), {.version_max = version, .own = &worker});
    ASSERT_TRUE(first.shake()) << first.why();
    ASSERT_EQ(first.get("/").status, 200);  // TLS 1.3 sends its ticket after the handshake
    SSL_SESSION* session = SSL_get1_session(first.ssl());
    TlsClient second(server->tls_port(), {.version_max = version, .session = session});
    ASSERT_TRUE(second.shake()) << second.why();
    EXPECT_EQ(SSL_session_reused(second.ssl()), 1);
    EXPECT_EQ(second.get("/who").body, "CN=worker-7") << "who it is travels in the ticket";
    SSL_SESSION_free(session);
  }
  EXPECT_EQ(ended(server.stats(), HandshakeResult::kResumed), 2U);
}

TEST(TlsEntry, HttpInTheClearIsToldThatThisPortSpeaksTls) {
  RunningServer server(tls_config(), answer_path());
  Client client(server->tls_port());
  const Answer answer = client.get("/");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, "This port speaks TLS: use https://.\r\n");
  EXPECT_TRUE(client.at_end());
  client.close();
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kNotTls) == 1 && ended(s, HandshakeResult::kNotTls) == 1;
  }));
}

TEST(TlsEntry, AnythingElseIsClosedWithItsReason) {
  RunningServer server(tls_config(), answer_path());
  for (const std::string& bytes :
       {std::string("\x80\x2e\x01\x03", 4), std::string("\0\0\0\0", 4),
        std::string("\x16\x03\x01\xff\xff\x01", 6), std::string("\x17\x03\x03\x00\x20", 5)}) {
    Client client(server->tls_port());
    ASSERT_TRUE(client.send(bytes));
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kNotTls) == 4; }));
  EXPECT_EQ(server.stats().tls.handshake_slots.peak, 0U);
}

TEST(TlsEntry, HalfAClientHelloHoldsAtMostTwoKilobytes) {
  static_assert(ServerShared::kStageBytes <= 2048);
  RunningServer server(tls_config(), answer_path());
  std::vector<Client> halves;
  for (int i = 0; i < 16; ++i) {
    halves.emplace_back(server->tls_port());
    ASSERT_TRUE(halves.back().send(half_a_hello(300)));
  }
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.accepted == 16; }));
  // After a whole round trip, the bytes of all of them have been read.
  TlsClient other(server->tls_port());
  ASSERT_TRUE(other.shake());
  ASSERT_EQ(other.get("/").status, 200);
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.connections.used, 17U);
  EXPECT_EQ(stats.tls.handshake_slots.peak, 1U) << "no slot, no TLS object for half a greeting";
  EXPECT_LE(stats.read_regions.used, 1U) << "and no read region";
}

TEST(TlsEntry, AHelloThatComesByteByByteIsAHello) {
  RunningServer server(tls_config(), answer_path());
  TlsClient client(server->tls_port());
  BIO* out = BIO_new(BIO_s_mem());
  BIO* in = BIO_new(BIO_s_mem());
  SSL_set_bio(client.ssl(), in, out);
  ASSERT_LT(SSL_connect(client.ssl()), 1);
  char hello[4096];
  const int size = BIO_read(out, hello, sizeof hello);
  ASSERT_GT(size, 100);
  for (int i = 0; i < size; ++i) ASSERT_TRUE(client.tcp().send({hello + i, 1}));
  const std::string answer = client.tcp().take(6);
  ASSERT_EQ(answer.size(), 6U);
  EXPECT_EQ(answer[0], '\x16');
  EXPECT_EQ(answer[5], '\x02') << "a ServerHello";
}

TEST(TlsEntry, SlotsBoundHandshakesAndTheNextWaitsInOrder) {
  ServerConfig config = tls_config();
  config.handshake_slots = 2;
  RunningServer server(config, answer_path());
  // Complete ClientHellos without anything after them: each holds a slot.
  std::vector<std::unique_ptr<TlsClient>> silent;
  for (int i = 0; i < 2; ++i) {
    silent.push_back(std::make_unique<TlsClient>(server->tls_port()));
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(silent.back()->ssl(), BIO_new(BIO_s_mem()), out);
    ASSERT_LT(SSL_connect(silent.back()->ssl()), 1);
    char hello[4096];
    const int size = BIO_read(out, hello, sizeof hello);
    ASSERT_TRUE(silent.back()->tcp().send({hello, static_cast<std::size_t>(size)}));
    ASSERT_FALSE(silent.back()->tcp().take(1).empty());
  }
  EXPECT_EQ(server.stats().tls.handshake_slots.used, 2U);
  // A correct client is queued until one of them leaves.
  auto honest = std::async(std::launch::async, [&] {
    TlsClient client(server->tls_port());
    return client.shake() ? client.get("/late").body : client.why();
  });
  ASSERT_TRUE(
      server.eventually([](const ServerStats& s) { return s.tls.handshakes_waiting == 1; }));
  EXPECT_EQ(server.stats().tls.handshake_slots.exhausted, 1U);
  silent.front().reset();
  EXPECT_EQ(honest.get(), "/late");
  silent.clear();
  EXPECT_TRUE(
      server.eventually([](const ServerStats& s) { return s.tls.handshake_slots.used == 0; }));
  EXPECT_EQ(server.stats().tls.handshake_slots.peak, 2U);
}

TEST(TlsEntry, SilentClientsLoseTheirSlotsToOthersAndNotTheirConnectionsWithoutNeed) {
  ServerConfig config = tls_config();
  config.handshake_slots = 2;
  config.stall_grace = std::chrono::milliseconds(200);
  RunningServer server(config, answer_path());
  std::vector<std::unique_ptr<TlsClient>> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(std::make_unique<TlsClient>(server->tls_port()));
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(silent.back()->ssl(), BIO_new(BIO_s_mem()), out);
    ASSERT_LT(SSL_connect(silent.back()->ssl()), 1);
    char hello[4096];
    const int size = BIO_read(out, hello, sizeof hello);
    ASSERT_TRUE(silent.back()->tcp().send({hello, static_cast<std::size_t>(size)}));
  }
  ASSERT_TRUE(server.eventually([](const ServerStats& s) {
    return s.tls.handshake_slots.used == 2 && s.tls.handshakes_waiting == 6;
  }));
  TlsClient honest(server->tls_port());  // nobody leaves, and it is served
  ASSERT_TRUE(honest.shake()) << honest.why();
  EXPECT_EQ(honest.get("/among").body, "/among");
  // All others have had their turn after some time; the last two keep their slots.
  ASSERT_TRUE(server.eventually(
      [](const ServerStats& s) { return ended(s, HandshakeResult::kStalled) == 6; }));
  EXPECT_EQ(server.stats().tls.handshake_slots.used, 2U);
  EXPECT_EQ(server.stats().tls.handshakes_waiting, 0U);
  EXPECT_EQ(server.stats().closed_by(CloseReason::kHandshakeTimeout), 6U);
  EXPECT_EQ(server.stats().critical_shed, 0U);
}

TEST(TlsEntry, AFullQueueRefusesTheOldestThenThoseWhoseSourceLostAPlace) {
  ServerConfig config = tls_config();
  config.handshake_slots = 1;
  config.max_connections = 16;
  config.reserved_connections = 1;
  RunningServer server(config, answer_path());
  std::vector<std::unique_ptr<TlsClient>> silent;
  for (int i = 0; i < 7; ++i) {
    silent.push_back(std::make_unique<TlsClient>(server->tls_port()));
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(silent.back()->ssl(), BIO_new(BIO_s_mem()), out);
    ASSERT_LT(SSL_connect(silent.back()->ssl()), 1);
    char hello[4096];
    const int size = BIO_read(out, hello, sizeof hello);
    ASSERT_TRUE(silent.back()->tcp().send({hello, static_cast<std::size_t>(size)}));
    const auto arrived = static_cast<std::uint64_t>(i) + 1;
    ASSERT_TRUE(server.eventually([&](const ServerStats& s) {
      return s.tls.handshake_slots.used + s.tls.handshake_slots.exhausted == arrived;
    }));
  }
  // One slot, four places in the queue: the first of it is gone, and then the one that came last,
  // because its source has lost a place lately.
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.refused_by(RefuseReason::kHandshake) == 2 && s.connections.used == 5;
  }));
  EXPECT_TRUE(silent[1]->tcp().at_end());
  EXPECT_TRUE(silent[6]->tcp().at_end());
  EXPECT_EQ(ended(server.stats(), HandshakeResult::kNoSlot), 2U);
}

TEST(TlsEntry, TheDeadlineEndsEveryKindOfSilence) {
  ServerConfig config = tls_config();
  config.handshake_slots = 1;
  config.tls.handshake_timeout = std::chrono::milliseconds(100);
  RunningServer server(config, answer_path());
  Client mute(server->tls_port());
  Client half(server->tls_port());
  ASSERT_TRUE(half.send(half_a_hello(100)));
  TlsClient first(server->tls_port());
  TlsClient second(server->tls_port());
  for (TlsClient* client : {&first, &second}) {
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(client->ssl(), BIO_new(BIO_s_mem()), out);
    ASSERT_LT(SSL_connect(client->ssl()), 1);
    char hello[4096];
    const int size = BIO_read(out, hello, sizeof hello);
    ASSERT_TRUE(client->tcp().send({hello, static_cast<std::size_t>(size)}));
  }
  EXPECT_TRUE(mute.at_end());
  EXPECT_TRUE(half.at_end());
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.closed_by(CloseReason::kHandshakeTimeout) == 4 && s.connections.used == 0;
  }));
  const ServerStats stats = server.stats();
  EXPECT_EQ(ended(stats, HandshakeResult::kTimeout) + ended(stats, HandshakeResult::kNoSlot), 4U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kHandshake), ended(stats, HandshakeResult::kNoSlot));
  EXPECT_EQ(stats.tls.handshake_slots.used, 0U);
}

TEST(TlsEntry, AClientThatLeavesInTheMiddleIsForgotten) {
  RunningServer server(tls_config(), answer_path());
  { Client gone(server->tls_port()); }
  {
    Client half(server->tls_port());
    ASSERT_TRUE(half.send(half_a_hello(100)));
  }
  {
    TlsClient shaking(server->tls_port());
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(shaking.ssl(), BIO_new(BIO_s_mem()), out);
    ASSERT_LT(SSL_connect(shaking.ssl()), 1);
    char hello[4096];
    const int size = BIO_read(out, hello, sizeof hello);
    ASSERT_TRUE(shaking.tcp().send({hello, static_cast<std::size_t>(size)}));
    ASSERT_FALSE(shaking.tcp().take(1).empty());
    shaking.tcp().reset();
  }
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return s.connections.used == 0 && s.accepted == 3 && ended(s, HandshakeResult::kAborted) == 3 &&
           s.tls.handshake_slots.used == 0;
  }));
}

TEST(TlsEntry, AHelloWithGarbageInsideFailsTheHandshakeOnly) {
  RunningServer server(tls_config(), answer_path());
  Client broken(server->tls_port());
  ASSERT_TRUE(broken.send(half_a_hello(517)));  // complete, but invalid
  const std::string alert = broken.take(7);
  ASSERT_EQ(alert.size(), 7U);
  EXPECT_EQ(alert[0], '\x15') << "an alert";
  EXPECT_TRUE(broken.at_end());
  broken.close();
  TlsClient fine(server->tls_port());
  ASSERT_TRUE(fine.shake());
  EXPECT_EQ(fine.get("/").status, 200);
  EXPECT_TRUE(server.eventually([](const ServerStats& s) {
    return ended(s, HandshakeResult::kFailed) == 1 && s.connections.used == 1;
  }));
}

TEST(TlsEntry, ADrainClosesThoseWhoHaveNotBegun) {
  RunningServer server(tls_config(), answer_path());
  Client half(server->tls_port());
  ASSERT_TRUE(half.send(half_a_hello(100)));
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.accepted == 1; }));
  EXPECT_TRUE(server->drain(std::chrono::seconds(5)));
  EXPECT_TRUE(half.at_end());
}

}  // namespace
}  // namespace weir::inline v0::inline server
