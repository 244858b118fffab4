#include "io/tls_context.h"

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <openssl/x509.h>

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

/// The name in the certificate that the client received.
std::string shown_to(TlsPair& pair) {
  X509* certificate = SSL_get0_peer_certificate(pair.client.tls.native());
  std::array<char, 200> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

TlsSetup several() {
  TlsSetup setup = server_setup();
  setup.identities.push_back(identity_of(signed_for({"one.example", "www.one.example"})));
  setup.identities.push_back(identity_of(signed_for({"*.two.example"})));
  setup.identities.push_back(identity_of(signed_for({"exact.two.example"})));
  return setup;
}

TEST(TlsContext, ChoosesTheCertificateByName) {
  const TlsContext::Ptr server = context_of(several());
  struct Row {
    const char* asked;
    const char* shown;
  };
  for (const Row& row :
       {Row{"localhost", "localhost"}, Row{"one.example", "one.example"},
        Row{"WWW.One.Example", "one.example"}, Row{"x.two.example", "*.two.example"},
        Row{"exact.two.example", "exact.two.example"}}) {
    TlsPair pair;
    ASSERT_TRUE(pair.connect(server, context_of(client_setup()), row.asked)) << row.asked;
    EXPECT_EQ(shown_to(pair), row.shown);
  }
  EXPECT_EQ(server->choose("unknown.example"), server->native());
  EXPECT_EQ(server->choose("a.b.two.example"), server->native()) << "one label, not two";
  EXPECT_EQ(server->choose("two.example"), server->native());
  EXPECT_EQ(server->choose(std::string(300, 'x')), server->native());
  EXPECT_EQ(server->choose(""), server->native());
}

TEST(TlsContext, AgreesOnAProtocol) {
  const auto agreed = [](bool server_h2, bool client_h2, bool client_h1) {
    TlsSetup server = server_setup();
    server.http2 = server_h2;
    TlsSetup client = client_setup();
    client.http2 = client_h2;
    client.http1 = client_h1;
    TlsPair pair;
    if (!pair.connect(context_of(server), context_of(client))) return std::string("refused");
    return std::string(pair.server.tls.protocol() == TlsProtocol::kHttp2 ? "h2" : "http/1.1");
  };
  EXPECT_EQ(agreed(true, true, true), "h2") << "ours is the choice";
  EXPECT_EQ(agreed(true, true, false), "h2");
  EXPECT_EQ(agreed(true, false, true), "http/1.1");
  EXPECT_EQ(agreed(false, true, true), "http/1.1");
  EXPECT_EQ(agreed(false, true, false), "refused");
}

TEST(TlsContext, WithoutAlpnItIsHttp1) {
  TlsPair pair;
  pair.begin(context_of(server_setup()), context_of(client_setup()));
  SSL_set_alpn_protos(pair.client.tls.native(), nullptr, 0);
  const auto [s, c] = pair.shake();
  EXPECT_EQ(s, TlsHandshake::kDone);
  EXPECT_EQ(pair.server.tls.protocol(), TlsProtocol::kHttp1);
}

TEST(TlsContext, OldVersionsAreRefused) {
  for (const int version : {TLS1_1_VERSION, TLS1_VERSION}) {
    TlsPair pair;
    pair.begin(context_of(server_setup()), context_of(client_setup()));
    SSL_set_security_level(pair.client.tls.native(), 0);
    SSL_set_cipher_list(pair.client.tls.native(), "ALL");
    SSL_set_min_proto_version(pair.client.tls.native(), version);
    SSL_set_max_proto_version(pair.client.tls.native(), version);
    EXPECT_EQ(pair.shake().first, TlsHandshake::kFailed);
    EXPECT_FALSE(pair.server.tls.failure().empty());
  }
}

TEST(TlsContext, ClientCertificates) {
  struct Row {
    ClientCertificate mode;
    bool has_one;
    bool ok;
    const char* subject;
  };
  const MadeCertificate mine = signed_for({"client-7"});
  for (const Row& row : {Row{ClientCertificate::kOff, true, true, ""},
                         Row{ClientCertificate::kOptional, false, true, ""},
                         Row{ClientCertificate::kOptional, true, true, "CN=client-7"},
                         Row{ClientCertificate::kRequired, true, true, "CN=client-7"},
                         Row{ClientCertificate::kRequired, false, false, ""}}) {
    TlsSetup server = server_setup();
    server.client_certificate = row.mode;
    server.ca_pem = test_authority().certificate_pem;
    TlsSetup client = client_setup();
    if (row.has_one) client.identities.push_back(identity_of(mine));
    TlsPair pair;
    pair.begin(context_of(server), context_of(client));
    EXPECT_EQ(pair.shake().first, row.ok ? TlsHandshake::kDone : TlsHandshake::kFailed);
    if (!row.ok) continue;
    std::array<char, 64> room{};
    EXPECT_EQ(pair.server.tls.peer_subject(room), row.subject);
    std::array<char, 4> small{};
    EXPECT_EQ(pair.server.tls.peer_subject(small), "") << "half a name is no name";
  }
}

TEST(TlsContext, AStrangersClientCertificateIsRefusedEvenWhenOptional) {
  TlsSetup server = server_setup();
  server.client_certificate = ClientCertificate::kOptional;
  server.ca_pem = test_authority().certificate_pem;
  TlsSetup client = client_setup();
  client.identities.push_back(
      identity_of(make_certificate({.names = {"mallory"}, .signer_pem = {}})));
  TlsPair pair;
  pair.begin(context_of(server), context_of(client));
  EXPECT_EQ(pair.shake().first, TlsHandshake::kFailed);
}

TEST(TlsContext, ClientsVerifyTheNameAndTheSigner) {
  TlsPair wrong_name;
  EXPECT_FALSE(
      wrong_name.connect(context_of(server_setup()), context_of(client_setup()), "elsewhere"));
  TlsSetup stranger;
  stranger.identities.push_back(
      identity_of(make_certificate({.names = {"localhost"}, .signer_pem = {}})));
  TlsPair wrong_signer;
  EXPECT_FALSE(wrong_signer.connect(context_of(stranger), context_of(client_setup())));
}

/// A session of one connection is resumed in the next.
bool resumes(const TlsContext::Ptr& first, const TlsContext::Ptr& second) {
  const TlsContext::Ptr client = context_of(client_setup());
  TlsPair pair;
  if (!pair.connect(first, client)) return false;
  carry(pair.server, pair.client, "with data come the tickets");
  SSL_SESSION* session = SSL_get1_session(pair.client.tls.native());
  TlsPair again;
  again.begin(second, client);
  SSL_set_session(again.client.tls.native(), session);
  SSL_SESSION_free(session);
  EXPECT_EQ(again.shake().first, TlsHandshake::kDone);
  return again.server.tls.resumed();
}

TEST(TlsContext, SessionsResumeByTicketsAlsoAcrossAReload) {
  const TlsContext::Ptr first = context_of(server_setup());
  EXPECT_TRUE(resumes(first, first));
  TlsSetup changed = server_setup();
  changed.identities = {identity_of(signed_for({"localhost"}))};
  EXPECT_TRUE(resumes(first, context_of(changed, first.get())));
  EXPECT_FALSE(resumes(first, context_of(server_setup()))) << "keys of a stranger";
  TlsSetup after_it = server_setup();
  after_it.ticket_keys = first->ticket_keys();
  EXPECT_TRUE(resumes(first, context_of(after_it))) << "keys that another process passed";
  after_it.ticket_keys.pop_back();
  EXPECT_FALSE(resumes(first, context_of(after_it))) << "too short: new keys are made";
}

TEST(TlsContext, AnOldContextLivesAsLongAsItsConnections) {
  TlsContext::Ptr server = context_of(server_setup());
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server, context_of(client_setup())));
  const std::weak_ptr<const TlsContext> watched = server;
  server = context_of(several(), server.get());
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(carry(pair.client, pair.server, "still here"), "still here");
  pair.server.tls.end();
  EXPECT_TRUE(watched.expired());
}

TEST(TlsContext, SetupErrorsNameTheFileAndTheReason) {
  const auto error_of = [](const TlsSetup& setup) {
    const auto made = TlsContext::make(setup);
    return made ? TlsSetupError{} : made.error();
  };
  TlsConfig config;
  config.certificate = "/nonexistent/chain.pem";
  config.private_key = "/nonexistent/key.pem";
  TlsSetupError error = error_of(TlsSetup::server(config));
  EXPECT_EQ(error.where, "/nonexistent/chain.pem");
  EXPECT_EQ(error.why, "No such file or directory");

  TlsSetup wrong_key = server_setup();
  wrong_key.identities[0].key_pem = signed_for({"x"}).key_pem;
  EXPECT_EQ(error_of(wrong_key).wanted, "the private key of the certificate");

  TlsSetup no_pem = server_setup();
  no_pem.identities[0].certificate_pem = "hello";
  EXPECT_FALSE(error_of(no_pem).why.empty());

  TlsSetup no_ca = server_setup();
  no_ca.ca_pem = "hello";
  EXPECT_FALSE(error_of(no_ca).why.empty());

  EXPECT_FALSE(error_of(TlsSetup{}).why.empty()) << "a server without a certificate";
}

TEST(TlsContext, ReadsFiles) {
  const std::string folder = testing::TempDir();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + name) << text;
    return folder + name;
  };
  const MadeCertificate first = signed_for({"localhost"});
  TlsConfig config;
  config.certificate =
      write("weir_tls_chain.pem", first.certificate_pem + test_authority().certificate_pem);
  config.private_key = write("weir_tls_key.pem", first.key_pem);
  config.more_certificates = {write("weir_tls_more.pem", signed_for({"more.example"}).both())};
  ASSERT_TRUE(config.validate().empty());
  TlsPair pair;
  ASSERT_TRUE(pair.connect(context_of(TlsSetup::server(config)), context_of(client_setup()),
                           "more.example"));
  EXPECT_EQ(shown_to(pair), "more.example");
}

}  // namespace
}  // namespace weir::inline v0::io
