#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace weir::inline v0::io {

/// A fresh key pair that signs as JWS does, for tests.
class TestSigner {
 public:
  static TestSigner rsa(unsigned bits = 2048) { return TestSigner(EVP_RSA_gen(bits), false); }
  static TestSigner ec(const char* curve = "P-256") { return TestSigner(EVP_EC_gen(curve), true); }

  [[nodiscard]] std::string public_pem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    EXPECT_EQ(PEM_write_bio_PUBKEY(bio, key_.get()), 1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return text;
  }

  [[nodiscard]] std::string sign(std::string_view text) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EXPECT_EQ(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key_.get()), 1);
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    std::size_t size = 0;
    EXPECT_EQ(EVP_DigestSign(context, nullptr, &size, bytes, text.size()), 1);
    std::string signature(size, '\0');
    EXPECT_EQ(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size,
                             bytes, text.size()),
              1);
    signature.resize(size);
    EVP_MD_CTX_free(context);
    return ec_ ? raw(signature) : signature;
  }

 private:
  TestSigner(EVP_PKEY* key, bool ec) : key_(key, EVP_PKEY_free), ec_(ec) {}

  static std::string raw(const std::string& der) {
    constexpr int kBytes = 32;
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    std::string text(2 * kBytes, '\0');
    auto* out = reinterpret_cast<unsigned char*>(text.data());
    EXPECT_EQ(BN_bn2binpad(ECDSA_SIG_get0_r(both), out, kBytes), kBytes);
    EXPECT_EQ(BN_bn2binpad(ECDSA_SIG_get0_s(both), out + kBytes, kBytes), kBytes);
    ECDSA_SIG_free(both);
    return text;
  }

  std::shared_ptr<EVP_PKEY> key_;
  bool ec_;
};

}  // namespace weir::inline v0::io
