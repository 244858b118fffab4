#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::inline v0::io {

/// What to put into a certificate.
struct CertificateWish {
  std::vector<std::string> names;  // DNS names or IP addresses; the first is the subject too
  std::int64_t valid_seconds = 7L * 24 * 3600;
  std::string signer_pem;  // certificate and key of the one who signs; empty: itself
  bool authority = false;  // may sign others
};

/// A certificate and its key (P-256), PEM, one after the other.
struct MadeCertificate {
  std::string certificate_pem;
  std::string key_pem;
  [[nodiscard]] std::string both() const { return certificate_pem + key_pem; }
};

/// Makes one, for a demonstration or a test: nobody trusts it unless told to. Empty if OpenSSL
/// would not.
[[nodiscard]] MadeCertificate make_certificate(const CertificateWish& wish);

}  // namespace weir::inline v0::io
