#include <gtest/gtest.h>

#include "weir/experimental/io/tls_client_config.h"

#include "io/tls_transport.h"
#include "tls_testing.h"

/// A client's side of TLS as the upstream layer uses it: TlsClientConfig, TlsTransport, ALPN,
/// client certificates, versions.

namespace weir::inline v0::io {
namespace {

TlsClientConfig trusting() {
  TlsClientConfig config;
  config.ca_pem = test_authority().certificate_pem;
  return config;
}

/// A TlsTransport as client, and the server end of a TlsPair.
struct ClientTransport : TlsPair {
  ClientTransport() = default;
  ClientTransport(const ClientTransport&) = delete;
  ClientTransport& operator=(const ClientTransport&) = delete;
  virtual ~ClientTransport() { transport.end(); }
  TlsHandshake connect(const TlsSetup& at_server, const TlsSetup& at_client) {
    EXPECT_TRUE(server.tls.begin(context_of(at_server), server.socket));
    EXPECT_TRUE(
        transport.begin(context_of(at_client), client.socket, TlsServer{.name = "localhost"}));
    prepare();
    TlsHandshake mine = TlsHandshake::kAgain;
    TlsHandshake theirs = TlsHandshake::kAgain;
    for (int i = 0; i < 100 && (mine == TlsHandshake::kAgain || theirs == TlsHandshake::kAgain);
         ++i) {
      if (mine == TlsHandshake::kAgain) mine = transport.handshake();
      if (theirs == TlsHandshake::kAgain) theirs = server.tls.handshake();
    }
    return mine;
  }
  virtual void prepare() {}
  std::string read() {
    std::array<std::byte, 100> into{};
    const IoResult got = transport.read(into);
    if (!got) return std::string(name_of(got.error()));
    return {reinterpret_cast<const char*>(into.data()), *got};
  }
  TlsTransport transport;
};

TEST(TlsClient, HandshakesAndMovesBytes) {
  ClientTransport to;
  ASSERT_EQ(to.connect(server_setup(), TlsSetup::client(trusting(), {})), TlsHandshake::kDone);
  EXPECT_TRUE(to.transport.secure());
  EXPECT_EQ(to.transport.peer_certificate(), "CN=localhost");
  EXPECT_EQ(to.read(), "again");
  const ConstBuffer piece = piece_of("hello");
  ASSERT_TRUE(to.server.tls.write({&piece, 1}));
  EXPECT_EQ(to.read(), "hello");
  ASSERT_TRUE(to.transport.write({&piece, 1}));
  std::array<std::byte, 100> into{};
  EXPECT_EQ(to.server.tls.read(into).value_or(0), 5U);
  to.transport.shutdown_write();
  EXPECT_EQ(to.server.tls.read(into).error(), IoError::kEof);
}

TEST(TlsClient, TheProtocolIsTheServersChoiceOfWhatIsOffered) {
  struct Row {
    bool server_http2;
    TlsSetup::Offer offer;
    const char* result;
  };
  for (const Row& row : {Row{true, {.http1 = true, .http2 = true}, "h2"},
                         Row{true, {.http1 = true, .http2 = false}, "http/1.1"},
                         Row{true, {.http1 = false, .http2 = true}, "h2"},
                         Row{false, {.http1 = true, .http2 = true}, "http/1.1"},
                         Row{false, {.http1 = false, .http2 = true}, "failed"}}) {
    TlsSetup server = server_setup();
    server.http2 = row.server_http2;
    ClientTransport to;
    const TlsHandshake done = to.connect(server, TlsSetup::client(trusting(), row.offer));
    const char* agreed =
        to.transport.stream().protocol() == TlsProtocol::kHttp2 ? "h2" : "http/1.1";
    EXPECT_STREQ(done == TlsHandshake::kDone ? agreed : "failed", row.result);
  }
}

/// A server that does not know ALPN.
struct WithoutAlpn final : ClientTransport {
  void prepare() override {
    SSL_CTX_set_alpn_select_cb(
        SSL_get_SSL_CTX(server.tls.native()),
        [](SSL*, const unsigned char**, unsigned char*, const unsigned char*, unsigned, void*) {
          return SSL_TLSEXT_ERR_NOACK;
        },
        nullptr);
  }
};

TEST(TlsClient, WithoutAlpnItIsHttp1OrAFailure) {
  WithoutAlpn both;
  EXPECT_EQ(both.connect(server_setup(), TlsSetup::client(trusting(), {})), TlsHandshake::kDone);
  EXPECT_EQ(both.transport.stream().protocol(), TlsProtocol::kHttp1);
  WithoutAlpn only_http2;
  EXPECT_EQ(only_http2.connect(server_setup(),
                               TlsSetup::client(trusting(), {.http1 = false, .http2 = true})),
            TlsHandshake::kFailed);
  EXPECT_EQ(only_http2.transport.stream().failure(), "the server did not agree to HTTP/2");
  EXPECT_FALSE(only_http2.transport.stream().certificate_refused());
}

/// A server that answers ALPN with what nobody asked for.
struct WrongAlpn final : ClientTransport {
  void prepare() override {
    SSL_CTX_set_alpn_select_cb(
        SSL_get_SSL_CTX(server.tls.native()),
        [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned,
           void*) {
          *out = reinterpret_cast<const unsigned char*>("h2");
          *size = 2;
          return SSL_TLSEXT_ERR_OK;
        },
        nullptr);
  }
};

TEST(TlsClient, AProtocolThatWasNotOfferedIsAFailure) {
  WrongAlpn to;
  EXPECT_EQ(
      to.connect(server_setup(), TlsSetup::client(trusting(), {.http1 = true, .http2 = false})),
      TlsHandshake::kFailed);
}

TEST(TlsClient, ShowsItsCertificateWhenItIsDemanded) {
  TlsSetup server = server_setup();
  server.client_certificate = ClientCertificate::kRequired;
  server.ca_pem = test_authority().certificate_pem;
  const MadeCertificate mine = signed_for({"gateway-1"});
  TlsClientConfig with = trusting();
  with.certificate_pem = mine.certificate_pem;
  with.private_key_pem = mine.key_pem;
  ClientTransport shown;
  ASSERT_EQ(shown.connect(server, TlsSetup::client(with, {})), TlsHandshake::kDone);
  std::array<char, 64> room{};
  EXPECT_EQ(shown.server.tls.peer_subject(room), "CN=gateway-1");

  ClientTransport missing;
  ASSERT_EQ(missing.connect(server, TlsSetup::client(trusting(), {})), TlsHandshake::kDone)
      << "TLS 1.3: the refusal comes later";
  EXPECT_EQ(missing.read(), "tls");
  EXPECT_EQ(missing.transport.stream().failure(), "tlsv13 alert certificate required");
}

/// A server that knows TLS 1.2 only.
struct OldServer final : ClientTransport {
  void prepare() override { SSL_set_max_proto_version(server.tls.native(), TLS1_2_VERSION); }
};

TEST(TlsClient, TheMinimumVersionIsHeld) {
  OldServer accepted;
  EXPECT_EQ(accepted.connect(server_setup(), TlsSetup::client(trusting(), {})),
            TlsHandshake::kDone);
  EXPECT_EQ(accepted.transport.stream().version(), "TLSv1.2");
  TlsClientConfig config = trusting();
  config.min_version = TlsVersion::k13;
  OldServer refused;
  EXPECT_EQ(refused.connect(server_setup(), TlsSetup::client(config, {})), TlsHandshake::kFailed);
  ClientTransport newest;
  EXPECT_EQ(newest.connect(server_setup(), TlsSetup::client(config, {})), TlsHandshake::kDone);
  EXPECT_EQ(newest.transport.stream().version(), "TLSv1.3");
}

TEST(TlsClientConfig, ErrorsNameTheKey) {
  const auto keys = [](auto change) {
    TlsClientConfig config;
    change(config);
    std::string all;
    for (const ConfigError& error : config.validate()) all += error.key + ' ';
    return all;
  };
  EXPECT_EQ(keys([](TlsClientConfig&) {}), "");
  EXPECT_EQ(keys([](TlsClientConfig& c) { c.certificate = "/c"; }), "private_key ");
  EXPECT_EQ(keys([](TlsClientConfig& c) { c.private_key = "/k"; }), "certificate ");
  EXPECT_EQ(keys([](TlsClientConfig& c) { c.insecure = true, c.ca = "/ca"; }), "insecure ");
  for (const char* good : {"api.example", "192.0.2.1", "2001:db8::1", "_x.example"}) {
    EXPECT_EQ(keys([&](TlsClientConfig& c) { c.server_name = good; }), "") << good;
  }
  for (const char* bad : {"api:443", "https://api", "*.example", "[::1]", "a b"}) {
    EXPECT_EQ(keys([&](TlsClientConfig& c) { c.server_name = bad; }), "server_name ") << bad;
  }
}

TEST(TlsClientConfig, SetupErrorsNameTheFile) {
  TlsClientConfig config;
  config.ca = "/nonexistent/ca.pem";
  const auto made = TlsContext::make(TlsSetup::client(config, {}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().where, "/nonexistent/ca.pem");
  EXPECT_EQ(made.error().why, "No such file or directory");
}

}  // namespace
}  // namespace weir::inline v0::io
