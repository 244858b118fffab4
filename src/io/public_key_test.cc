#include "io/public_key.h"

#include <gtest/gtest.h>

#include "weir/experimental/io/self_signed.h"

#include "io/signer_testing.h"

namespace weir::io {
namespace {

TEST(PublicKey, VerifiesWhatItsPrivateKeySignedAndNothingElse) {
  for (const TestSigner& signer : {TestSigner::rsa(), TestSigner::ec()}) {
    const auto key = PublicKey::from_pem(signer.public_pem());
    ASSERT_TRUE(key);
    const std::string signature = signer.sign("text");
    EXPECT_TRUE(key->verifies("text", signature));
    EXPECT_FALSE(key->verifies("texT", signature));
    EXPECT_FALSE(key->verifies("text", signature.substr(1)));
    EXPECT_FALSE(key->verifies("text", signature + "x"));
    EXPECT_FALSE(key->verifies("text", ""));
    EXPECT_FALSE(key->verifies("text", std::string(signature.size(), '\0')));
    for (std::size_t i = 0; i < signature.size(); i += 13) {
      std::string broken = signature;
      broken[i] = static_cast<char>(broken[i] ^ 1);
      EXPECT_FALSE(key->verifies("text", broken));
    }
  }
}

TEST(PublicKey, TheKindOfTheKeyDeterminesTheAlgorithm) {
  EXPECT_EQ(PublicKey::from_pem(TestSigner::rsa().public_pem())->algorithm(),
            SignatureAlgorithm::kRs256);
  EXPECT_EQ(PublicKey::from_pem(TestSigner::ec().public_pem())->algorithm(),
            SignatureAlgorithm::kEs256);
}

TEST(PublicKey, ACertificateContainsOne) {
  CertificateWish wish;
  wish.names = {"issuer"};
  EXPECT_TRUE(PublicKey::from_pem(make_certificate(wish).certificate_pem));
}

TEST(PublicKey, OtherKeysAreRefusedWithWhatTheyAre) {
  const auto why = [](const std::string& pem) {
    const auto key = PublicKey::from_pem(pem);
    return key ? std::string() : key.error();
  };
  EXPECT_EQ(why(TestSigner::rsa(1024).public_pem()), "an RSA key of 1024 bits");
  EXPECT_EQ(why(TestSigner::ec("P-384").public_pem()), "a key of another kind");
  EXPECT_EQ(why(""), "no public key or certificate in PEM");
  EXPECT_EQ(why("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
            "no public key or certificate in PEM");
}

TEST(PublicKey, EqualKeysAreEqual) {
  const TestSigner one = TestSigner::ec();
  const TestSigner other = TestSigner::ec();
  EXPECT_EQ(*PublicKey::from_pem(one.public_pem()), *PublicKey::from_pem(one.public_pem()));
  EXPECT_FALSE(*PublicKey::from_pem(one.public_pem()) == *PublicKey::from_pem(other.public_pem()));
}

}  // namespace
}  // namespace weir::io
