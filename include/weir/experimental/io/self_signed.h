#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::inline v0::io {

/// The content of a certificate to create.
struct CertificateWish {
  std::vector<std::string> names;  // DNS names or IP addresses; the first is the subject too
  std::int64_t valid_seconds = 7L * 24 * 3600;
  std::string signer_pem;  // certificate and key of the signer; empty: self-signed
  bool authority = false;  // may sign others
};

/// A certificate and its key (P-256), PEM, one after the other.
struct MadeCertificate {
  std::string certificate_pem;
  std::string key_pem;
  [[nodiscard]] std::string both() const { return certificate_pem + key_pem; }
};

/// Creates a certificate for a demonstration or a test; clients do not trust it by default. Empty
/// if OpenSSL fails.
[[nodiscard]] MadeCertificate make_certificate(const CertificateWish& wish);

}  // namespace weir::inline v0::io
