#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

struct evp_pkey_st;

namespace weir::inline v0::io {

/// How a key signs: RSA with PKCS #1 v1.5 padding, or ECDSA on P-256; both over SHA-256.
enum class SignatureAlgorithm : std::uint8_t { kRs256, kEs256 };
WEIR_ENUM_NAMES(SignatureAlgorithm, "RS256", "ES256")

/// A key that verifies signatures. The key alone determines the algorithm.
///
/// Thread-safety: const after construction; any thread may verify. Cost: a verification takes tens
/// of µs (RSA 2048: 20, P-256: 80) and allocates in OpenSSL.
class PublicKey {
 public:
  /// A public key or a certificate in PEM: RSA of 2048 to 4096 bits, or P-256. The error is a
  /// sentence about what it is instead.
  [[nodiscard]] static Result<PublicKey, std::string> from_pem(std::string_view pem);

  [[nodiscard]] SignatureAlgorithm algorithm() const noexcept { return algorithm_; }
  /// `signature` as JWS has it: for ES256 both numbers, 32 bytes each.
  [[nodiscard]] bool verifies(std::string_view text, std::string_view signature) const noexcept;

  bool operator==(const PublicKey& other) const noexcept { return encoded_ == other.encoded_; }

 private:
  PublicKey() = default;

  std::shared_ptr<evp_pkey_st> key_;
  std::string encoded_;  // SubjectPublicKeyInfo
  SignatureAlgorithm algorithm_ = SignatureAlgorithm::kRs256;
};

}  // namespace weir::inline v0::io
