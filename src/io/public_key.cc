#include "io/public_key.h"

#include <array>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "openssl_ptr.h"

namespace weir::inline v0::io {
namespace {

KeyPtr read_key(std::string_view pem) {
  KeyPtr key(PEM_read_bio_PUBKEY(reading(pem).get(), nullptr, nullptr, nullptr));
  if (key != nullptr) return key;
  const CertificatePtr certificate(
      PEM_read_bio_X509(reading(pem).get(), nullptr, nullptr, nullptr));
  return KeyPtr(certificate != nullptr ? X509_get_pubkey(certificate.get()) : nullptr);
}

bool is_p256(const EVP_PKEY* key) {
  std::array<char, 64> group{};
  std::size_t size = 0;
  return EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group.data(), group.size(),
                                        &size) == 1 &&
         std::string_view(group.data(), size) == "prime256v1";
}

std::string encoded(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::string text(reinterpret_cast<const char*>(der),
                   size > 0 ? static_cast<std::size_t>(size) : 0);
  OPENSSL_free(der);
  return text;
}

constexpr std::size_t kNumberBytes = 32;  // of P-256
constexpr std::size_t kDerBytesMax = 2 + 2 * (2 + 1 + kNumberBytes);

/// JWS has both numbers behind each other, OpenSSL wants DER. Its size, or 0.
std::size_t to_der(std::string_view signature, std::array<unsigned char, kDerBytesMax>& out) {
  if (signature.size() != 2 * kNumberBytes) return 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  BIGNUM* r = BN_bin2bn(bytes, kNumberBytes, nullptr);
  BIGNUM* s = BN_bin2bn(bytes + kNumberBytes, kNumberBytes, nullptr);
  const std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>> both(ECDSA_SIG_new());
  if (both == nullptr || r == nullptr || s == nullptr ||
      ECDSA_SIG_set0(both.get(), r, s) != 1) {  // owns both if it succeeds
    BN_free(r);
    BN_free(s);
    return 0;
  }
  unsigned char* at = out.data();
  const int size = i2d_ECDSA_SIG(both.get(), &at);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

}  // namespace

Result<PublicKey, std::string> PublicKey::from_pem(std::string_view pem) {
  constexpr int kRsaBitsMin = 2048;
  constexpr int kRsaBitsMax = 4096;  // a larger key would make each verification slow
  const KeyPtr key = read_key(pem);
  ERR_clear_error();
  if (key == nullptr) return unexpected(std::string("no public key or certificate in PEM"));
  PublicKey made;
  const int bits = EVP_PKEY_get_bits(key.get());
  if (EVP_PKEY_is_a(key.get(), "RSA") == 1) {
    if (bits < kRsaBitsMin || bits > kRsaBitsMax) {
      return unexpected("an RSA key of " + std::to_string(bits) + " bits");
    }
    made.algorithm_ = SignatureAlgorithm::kRs256;
  } else if (EVP_PKEY_is_a(key.get(), "EC") == 1 && is_p256(key.get())) {
    made.algorithm_ = SignatureAlgorithm::kEs256;
  } else {
    return unexpected(std::string("a key of another kind"));
  }
  made.encoded_ = encoded(key.get());
  EVP_PKEY_up_ref(key.get());
  made.key_ = std::shared_ptr<EVP_PKEY>(key.get(), Freed<EVP_PKEY_free>());
  return made;
}

bool PublicKey::verifies(std::string_view text, std::string_view signature) const noexcept {
  const std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  if (context == nullptr) return false;
  std::array<unsigned char, kDerBytesMax> der{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  std::size_t size = signature.size();
  if (algorithm_ == SignatureAlgorithm::kEs256) {
    size = to_der(signature, der);
    bytes = der.data();
    if (size == 0) return false;
  }
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), bytes, size,
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace weir::inline v0::io
