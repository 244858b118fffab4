#include "tls_verification.h"

#include <gtest/gtest.h>

#include "tls_testing.h"

/// Which servers a client accepts, with real handshakes.

namespace weir::inline v0::io {
namespace {

TlsSetup server_with(const MadeCertificate& made) {
  TlsSetup setup;
  setup.identities.push_back(identity_of(made));
  return setup;
}

/// The client's result: "" if it accepts the server, otherwise its reason.
std::string verdict(const MadeCertificate& shown, const std::string& expected,
                    TlsSetup client = client_setup()) {
  TlsPair pair;
  pair.begin(context_of(server_with(shown)), context_of(client), expected);
  if (pair.shake().second == TlsHandshake::kDone) return "";
  EXPECT_EQ(pair.client.tls.failed_by(), IoError::kTls);
  EXPECT_TRUE(pair.client.tls.certificate_refused());
  return std::string(pair.client.tls.failure());
}

TEST(TlsVerification, ANameMustBeInTheCertificate) {
  constexpr const char* kOther = "the peer's certificate is for another host";
  struct Row {
    std::vector<std::string> shown;
    const char* expected;
    const char* verdict;
  };
  for (const Row& row : {
           Row{{"api.example"}, "api.example", ""},
           Row{{"api.example"}, "API.Example", ""},
           Row{{"api.example"}, "api.example.", ""},
           Row{{"first.example", "api.example"}, "api.example", ""},
           Row{{"api.example"}, "example", kOther},
           Row{{"api.example"}, "x.api.example", kOther},
           Row{{"*.example.org"}, "api.example.org", ""},
           Row{{"*.example.org"}, "a.b.example.org", kOther},
           Row{{"*.example.org"}, "example.org", kOther},
           Row{{"ap*.example.org"}, "api.example.org", kOther},  // part of a label
           Row{{"192.0.2.1"}, "api.example", kOther},
       }) {
    EXPECT_EQ(verdict(signed_for(row.shown), row.expected), row.verdict)
        << row.shown[0] << " for " << row.expected;
  }
}

TEST(TlsVerification, AnAddressMustBeInTheCertificateAsAnAddress) {
  constexpr const char* kOther = "the peer's certificate is not for this IP address";
  EXPECT_EQ(verdict(signed_for({"192.0.2.1"}), "192.0.2.1"), "");
  EXPECT_EQ(verdict(signed_for({"2001:db8::1"}), "2001:db8::1"), "");
  EXPECT_EQ(verdict(signed_for({"2001:db8::1"}), "2001:db8:0:0::1"), "");
  EXPECT_EQ(verdict(signed_for({"192.0.2.2"}), "192.0.2.1"), kOther);
  EXPECT_EQ(verdict(signed_for({"localhost"}), "192.0.2.1"), kOther);
}

TEST(TlsVerification, ANameIsSentAndAnAddressIsNot) {
  const auto sent = [](const char* expected) {
    TlsPair pair;
    pair.begin(context_of(server_with(signed_for({expected}))), context_of(client_setup()),
               expected);
    EXPECT_EQ(pair.shake().first, TlsHandshake::kDone);
    const char* name = SSL_get_servername(pair.server.tls.native(), TLSEXT_NAMETYPE_host_name);
    return std::string(name == nullptr ? "nothing" : name);
  };
  EXPECT_EQ(sent("api.example"), "api.example");
  EXPECT_EQ(sent("192.0.2.1"), "nothing");
  EXPECT_EQ(sent("::1"), "nothing");
}

TEST(TlsVerification, TheChainMustEndAtATrustedRootAndBeValidNow) {
  EXPECT_EQ(verdict(make_certificate({.names = {"localhost"}, .signer_pem = {}}), "localhost"),
            "the peer's certificate is self-signed and not trusted");
  EXPECT_EQ(verdict(make_certificate({.names = {"localhost"},
                                      .valid_seconds = -30,
                                      .signer_pem = test_authority().both()}),
                    "localhost"),
            "the peer's certificate, or one that signed it, has expired");
  const MadeCertificate stranger =
      make_certificate({.names = {"Other CA"}, .signer_pem = {}, .authority = true});
  EXPECT_EQ(verdict(make_certificate({.names = {"localhost"}, .signer_pem = stranger.both()}),
                    "localhost"),
            "the peer's certificate was issued by an authority that is not trusted");
}

TEST(TlsVerification, InsecureAcceptsAnyCertificateAndStillSendsTheName) {
  TlsClientConfig config;
  config.insecure = true;
  const TlsSetup client = TlsSetup::client(config, {});
  const MadeCertificate shown =
      make_certificate({.names = {"elsewhere"}, .valid_seconds = -30, .signer_pem = {}});
  EXPECT_EQ(verdict(shown, "localhost", client), "");
  EXPECT_EQ(verdict(shown, "192.0.2.1", client), "");
  TlsPair pair;
  pair.begin(context_of(server_with(shown)), context_of(client), "api.example");
  ASSERT_EQ(pair.shake().first, TlsHandshake::kDone);
  EXPECT_STREQ(SSL_get_servername(pair.server.tls.native(), TLSEXT_NAMETYPE_host_name),
               "api.example");
  std::array<char, 64> room{};
  EXPECT_EQ(pair.client.tls.peer_subject(room), "") << "an identity that nobody verified is none";
}

TEST(TlsVerification, TheConfiguredNameReplacesTheEndpoints) {
  TlsClientConfig config;
  config.ca_pem = test_authority().certificate_pem;
  config.server_name = "api.example";
  const TlsSetup client = TlsSetup::client(config, {});
  EXPECT_EQ(verdict(signed_for({"api.example"}), "192.0.2.1", client), "");
  EXPECT_EQ(verdict(signed_for({"api.example"}), "", client), "");
  EXPECT_NE(verdict(signed_for({"192.0.2.1"}), "192.0.2.1", client), "");
}

TEST(TlsVerification, WithoutANameToVerifyThereIsNoHandshake) {
  TlsPair pair;
  EXPECT_FALSE(pair.client.tls.begin(context_of(client_setup()), pair.client.socket, {}));
  EXPECT_EQ(pair.client.tls.failure(), "there is no name to verify the server by: set server_name");
  EXPECT_FALSE(pair.client.tls.begin(context_of(client_setup()), pair.client.socket,
                                     {.name = std::string(300, 'x')}));
  EXPECT_FALSE(pair.client.tls.active());
}

TEST(TlsVerification, TheSystemsRootsDoNotTrustOurOwn) {
  const TlsSetup client = TlsSetup::client({}, {});
  EXPECT_TRUE(client.system_roots);
  EXPECT_EQ(verdict(signed_for({"localhost"}), "localhost", client),
            "the peer's certificate was issued by an authority that is not trusted");
}

TEST(TlsVerification, UnknownResultsHaveOpensslsText) {
  EXPECT_EQ(text_of_verification(X509_V_ERR_PATH_LENGTH_EXCEEDED),
            "path length constraint exceeded");
}

}  // namespace
}  // namespace weir::inline v0::io
