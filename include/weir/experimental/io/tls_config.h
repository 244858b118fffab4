#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::io {

/// Whether clients are asked for a certificate.
enum class ClientCertificate : std::uint8_t {
  kOff,
  kOptional,  // requested; a client without one has no identity by it
  kRequired,  // a client without one is refused
};
WEIR_ENUM_NAMES(ClientCertificate, "off", "optional", "required")

/// The measured memory of OpenSSL 3.0 with a margin: an idle connection (14 KB), a handshake
/// (109 KB), and the whole process (algorithms, certificates, buffers that threads keep for reuse).
inline constexpr std::uint64_t kTlsIdleBytes = 20 * 1024;
inline constexpr std::uint64_t kTlsHandshakeBytes = 112 * 1024;
inline constexpr std::uint64_t kTlsFixedBytes = 4 * 1024 * 1024;

/// TLS settings of listeners. Always version 1.2 or newer; HTTP/2 and HTTP/1.1 by ALPN.
///
/// Thread-safety: a value. validate() returns all errors, with the keys of the section [tls].
struct TlsConfig {
  std::vector<std::string> listen;  // as ServerConfig::listen; used if there is a certificate
  std::string certificate;          // file with the chain, PEM; the default for unknown names
  std::string private_key;
  std::string certificate_pem;  // the same as text instead of files; not an option of the file
  std::string private_key_pem;
  std::vector<std::string> more_certificates;  // files with chain and key each, chosen by name
  std::string client_ca;                       // file with the CAs of client certificates
  ClientCertificate client_certificate = ClientCertificate::kOff;
  bool http2 = true;                                      // offered by ALPN
  Duration handshake_timeout = std::chrono::seconds(10);  // accept to end, absolute
  std::uint32_t key_updates_per_second = 100;             // more: the connection is closed
  std::uint64_t memory_budget = 0;  // of the TLS library; 0: the sum of all places' needs

  bool operator==(const TlsConfig&) const = default;
  [[nodiscard]] bool enabled() const noexcept {
    return !certificate.empty() || !certificate_pem.empty();
  }
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors TlsConfig::validate() const {
  ConfigErrors errors;
  if (!certificate.empty() && private_key.empty()) {
    add_error(errors, "private_key", "\"\"",
              "the PEM file with the key of tls.certificate (" + certificate +
                  "), which may be the same file");
  }
  if (certificate.empty() && !private_key.empty()) {
    add_error(errors, "certificate", "\"\"",
              "the PEM file with the certificate of tls.private_key (" + private_key + ")");
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
