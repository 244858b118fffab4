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

namespace weir::inline v0 {

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

/// How listeners speak TLS. Version 1.2 or newer, always; HTTP/2 and HTTP/1.1 by ALPN.
///
/// Thread-safety: a value. validate() names every fault; keys are those of the section [tls].
struct TlsConfig {
  std::string certificate;  // file with the chain, PEM; the default for unknown names
  std::string private_key;
  std::vector<std::string> more_certificates;  // files with chain and key each, chosen by name
  std::string client_ca;                       // file with those who sign client certificates
  ClientCertificate client_certificate = ClientCertificate::kOff;
  bool http2 = true;                                      // offered by ALPN
  Duration handshake_timeout = std::chrono::seconds(10);  // first byte to end, absolute
  std::uint32_t key_updates_per_second = 100;             // more end the connection

  bool operator==(const TlsConfig&) const = default;
  [[nodiscard]] bool enabled() const noexcept { return !certificate.empty(); }
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors TlsConfig::validate() const {
  ConfigErrors errors;
  if (certificate.empty() != private_key.empty()) {
    const bool missing_key = private_key.empty();
    add_error(errors, missing_key ? "private_key" : "certificate", "\"\"",
              missing_key ? "given with certificate" : "given with private_key");
  }
  if (certificate.empty() && !more_certificates.empty()) {
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

}  // namespace weir::inline v0
