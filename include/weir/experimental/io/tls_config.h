#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/time.h"

namespace weir::inline v0::io {

/// Whether clients are asked for a certificate.
enum class ClientCertificate : std::uint8_t {
  kOff,
  kOptional,  // asked; without one the client is nobody in particular
  kRequired,  // without one there is no connection
};
inline constexpr std::array<std::string_view, 3> kClientCertificateNames = {"off", "optional",
                                                                            "required"};
[[nodiscard]] constexpr std::string_view name_of(ClientCertificate mode) noexcept {
  return kClientCertificateNames[static_cast<std::size_t>(mode)];
}

/// What OpenSSL 3.0 holds, measured, with a margin: an idle connection (14 KB), a handshake under
/// way (109 KB), and for the whole process (algorithms, certificates, what threads keep for reuse).
inline constexpr std::uint64_t kTlsIdleBytes = 20 * 1024;
inline constexpr std::uint64_t kTlsHandshakeBytes = 112 * 1024;
inline constexpr std::uint64_t kTlsFixedBytes = 4 * 1024 * 1024;

/// How listeners speak TLS. Version 1.2 or newer, always; HTTP/2 and HTTP/1.1 by ALPN.
///
/// Thread-safety: a value. validate() names every fault; keys are those of the section [tls].
struct TlsConfig {
  std::vector<std::string> listen;  // as ServerConfig::listen; used once there is a certificate
  std::string certificate;          // file with the chain, PEM; the default for unknown names
  std::string private_key;
  std::string certificate_pem;  // the same as text, in place of files: no option of the file
  std::string private_key_pem;
  std::vector<std::string> more_certificates;  // files with chain and key each, chosen by name
  std::string client_ca;                       // file with those who sign client certificates
  ClientCertificate client_certificate = ClientCertificate::kOff;
  bool http2 = true;                                      // offered by ALPN
  Duration handshake_timeout = std::chrono::seconds(10);  // accept to end, absolute
  std::uint32_t key_updates_per_second = 100;             // more end the connection
  std::uint64_t memory_budget = 0;  // of the TLS library; 0: what all places together can need

  bool operator==(const TlsConfig&) const = default;
  [[nodiscard]] bool enabled() const noexcept {
    return !certificate.empty() || !certificate_pem.empty();
  }
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors TlsConfig::validate() const {
  ConfigErrors errors;
  if (certificate.empty() != private_key.empty()) {
    const bool missing_key = private_key.empty();
    add_error(errors, missing_key ? "private_key" : "certificate", "\"\"",
              missing_key ? "given with certificate" : "given with private_key");
  }
  if (!enabled() && !more_certificates.empty()) {
    add_error(errors, "certificate", "\"\"", "given with more_certificates: it is the default");
  }
  if (client_certificate != ClientCertificate::kOff && client_ca.empty()) {
    add_error(errors, "client_ca", "\"\"", "given when client certificates are asked for");
  }
  check_range(errors, "handshake_timeout_ms", handshake_timeout,
              Duration(std::chrono::milliseconds(1)), Duration(std::chrono::hours(1)));
  check_range(errors, "key_updates_per_second", key_updates_per_second, 1U, 1'000'000U);
  return errors;
}

}  // namespace weir::inline v0::io
