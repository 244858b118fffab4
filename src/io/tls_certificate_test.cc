#include "io/tls_certificate.h"

#include <gtest/gtest.h>

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

TEST(TlsCertificate, TellsSubjectAndExpiryOfEachIdentity) {
  TlsSetup setup = server_setup();
  setup.identities.push_back(identity_of(signed_for({"one.example"})));
  const auto found = certificates_of(*context_of(setup));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].subject, "CN=one.example");
  EXPECT_EQ(found[1].expires.size(), std::string("2026-12-31T23:59:59Z").size());
  EXPECT_EQ(found[1].expires.back(), 'Z');
  EXPECT_EQ(found[1].digest.size(), 32U);
  EXPECT_NE(found[0].digest, found[1].digest);
}

TEST(TlsCertificate, AClientWithoutOneHasNone) {
  EXPECT_TRUE(certificates_of(*context_of(client_setup())).empty());
}

}  // namespace
}  // namespace weir::inline v0::io
