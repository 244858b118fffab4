#include "io/tls_sessions.h"

#include <gtest/gtest.h>

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

/// A server for several names, and clients that connect to it one after the other.
struct Resumption {
  TlsContext::Ptr server = make_server();
  TlsContext::Ptr client = context_of(client_setup());
  TlsSessions sessions;
  int version_max = 0;  // 0: any

  static TlsContext::Ptr make_server() {
    TlsSetup setup = server_setup();
    setup.identities = {identity_of(signed_for({"a.example", "b.example", "192.0.2.1"}))};
    return context_of(setup);
  }

  struct Connection {
    TlsPair pair;
    bool resumed = false;
  };
  /// Connects and receives something, so that tickets have arrived.
  void connect(Connection& connection, const char* name) {
    TlsPair& pair = connection.pair;
    ASSERT_TRUE(pair.server.tls.begin(server, pair.server.socket));
    ASSERT_TRUE(
        pair.client.tls.begin(client, pair.client.socket, {.name = name, .sessions = &sessions}));
    if (version_max != 0) SSL_set_max_proto_version(pair.client.tls.native(), version_max);
    ASSERT_EQ(pair.shake().second, TlsHandshake::kDone) << pair.client.tls.failure();
    EXPECT_EQ(carry(pair.server, pair.client, "hello"), "hello");
    connection.resumed = pair.client.tls.resumed();
    EXPECT_EQ(connection.resumed, pair.server.tls.resumed());
  }
  bool resumes(const char* name) {
    Connection connection;
    connect(connection, name);
    return connection.resumed;
  }
};

TEST(TlsSessions, TheSecondConnectionResumes) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Resumption to;
    to.version_max = version;
    EXPECT_FALSE(to.resumes("a.example"));
    EXPECT_EQ(to.sessions.size(), 1U);
    EXPECT_TRUE(to.resumes("a.example")) << version;
    EXPECT_TRUE(to.resumes("a.example")) << version;
  }
}

TEST(TlsSessions, ASessionOfOneServerIsNotResumedForAnother) {
  Resumption to;
  EXPECT_FALSE(to.resumes("a.example"));
  EXPECT_FALSE(to.resumes("b.example"));
  EXPECT_FALSE(to.resumes("a.example")) << "the slot belonged to b";
  EXPECT_FALSE(to.resumes("192.0.2.1"));
  EXPECT_TRUE(to.resumes("192.0.2.1"));
}

TEST(TlsSessions, ANewContextDoesNotResumeSessionsOfTheOldOne) {
  Resumption to;
  TlsClientConfig insecure;
  insecure.insecure = true;
  to.client = context_of(TlsSetup::client(insecure, {}));
  EXPECT_FALSE(to.resumes("a.example"));
  EXPECT_TRUE(to.resumes("a.example"));
  to.client = context_of(client_setup());
  EXPECT_FALSE(to.resumes("a.example")) << "that one was not verified";
  EXPECT_TRUE(to.resumes("a.example"));
}

TEST(TlsSessions, ATicketIsUsedOnce) {
  Resumption to;
  to.version_max = TLS1_3_VERSION;
  ASSERT_FALSE(to.resumes("a.example"));
  SSL_SESSION* first = to.sessions.take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(to.sessions.take(), nullptr);
  SSL_SESSION_free(first);
}

TEST(TlsSessions, ASessionOfVersion12IsUsedAgain) {
  Resumption to;
  to.version_max = TLS1_2_VERSION;
  ASSERT_FALSE(to.resumes("a.example"));
  SSL_SESSION* first = to.sessions.take();
  SSL_SESSION* second = to.sessions.take();
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  SSL_SESSION_free(first);
  SSL_SESSION_free(second);
}

TEST(TlsSessions, ALateTicketOfAnEarlierOwnerIsNotKept) {
  Resumption to;
  to.version_max = TLS1_3_VERSION;
  TlsPair early;  // to a.example; its tickets are read only later
  ASSERT_TRUE(early.server.tls.begin(to.server, early.server.socket));
  ASSERT_TRUE(early.client.tls.begin(to.client, early.client.socket,
                                     {.name = "a.example", .sessions = &to.sessions}));
  ASSERT_EQ(early.shake().second, TlsHandshake::kDone);
  ASSERT_EQ(to.sessions.size(), 0U) << "a ticket comes after the handshake";
  EXPECT_FALSE(to.resumes("b.example"));
  to.sessions.clear();
  EXPECT_EQ(carry(early.server, early.client, "hello"), "hello");
  EXPECT_EQ(to.sessions.size(), 0U);
  EXPECT_FALSE(to.resumes("b.example"));
}

TEST(TlsSessions, TheNewestAreKept) {
  Resumption to;
  to.version_max = TLS1_3_VERSION;
  std::array<Resumption::Connection, 4> connections;
  for (Resumption::Connection& connection : connections) {
    to.sessions.clear();
    to.connect(connection, "a.example");
  }
  TlsSessions few;
  const std::uint64_t claim = few.claim({.context_id = 1, .server_name = "a.example"});
  std::array<SSL_SESSION*, 4> given{};
  for (std::size_t i = 0; i < given.size(); ++i) {
    given[i] = SSL_get1_session(connections[i].pair.client.tls.native());
    ASSERT_TRUE(few.keep(claim, given[i]));
  }
  EXPECT_EQ(few.size(), TlsSessions::kMax);
  for (const std::size_t newest : {3U, 2U}) {
    SSL_SESSION* taken = few.take();
    EXPECT_EQ(taken, given[newest]);
    SSL_SESSION_free(taken);
  }
  EXPECT_EQ(few.take(), nullptr);
}

TEST(TlsSessions, ASessionEndsWithTheServersCertificate) {
  Resumption to;
  TlsSetup setup = server_setup();
  setup.identities = {identity_of(make_certificate(
      {.names = {"a.example"}, .valid_seconds = -30, .signer_pem = test_authority().both()}))};
  to.server = context_of(setup);
  TlsClientConfig insecure;  // otherwise there would be no session at all
  insecure.insecure = true;
  to.client = context_of(TlsSetup::client(insecure, {}));
  EXPECT_FALSE(to.resumes("a.example"));
  EXPECT_EQ(to.sessions.size(), 1U);
  EXPECT_FALSE(to.resumes("a.example"));
}

TEST(TlsSessions, AConnectionThatWasCutOffLeavesItsSession) {
  Resumption to;
  {
    Resumption::Connection connection;
    to.connect(connection, "a.example");
    connection.pair.server.socket.reset_on_close();
    connection.pair.close(connection.pair.server);
  }
  EXPECT_TRUE(to.resumes("a.example"));
}

}  // namespace
}  // namespace weir::inline v0::io
