#include "weir/experimental/io/self_signed.h"

#include <gtest/gtest.h>

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

TEST(SelfSigned, MakesWhatAServerCanUse) {
  const MadeCertificate made =
      make_certificate({.names = {"localhost", "127.0.0.1", "::1"}, .signer_pem = {}});
  EXPECT_NE(made.certificate_pem.find("BEGIN CERTIFICATE"), std::string::npos);
  EXPECT_NE(made.key_pem.find("PRIVATE KEY"), std::string::npos);
  TlsSetup setup;
  setup.identities.push_back(identity_of(made));
  TlsSetup client = client_setup();
  client.ca_pem = made.certificate_pem;
  TlsPair pair;
  EXPECT_TRUE(pair.connect(context_of(setup), context_of(client)));
}

TEST(SelfSigned, TwoAreNeverTheSame) {
  EXPECT_NE(make_certificate({.names = {"a"}, .signer_pem = {}}).certificate_pem,
            make_certificate({.names = {"a"}, .signer_pem = {}}).certificate_pem);
}

TEST(SelfSigned, ABrokenSignerMakesNothing) {
  EXPECT_TRUE(make_certificate({.names = {"a"}, .signer_pem = "nonsense"}).certificate_pem.empty());
}

}  // namespace
}  // namespace weir::inline v0::io
