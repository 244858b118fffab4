#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"

namespace weir::inline v0::io {

/// The oldest TLS version that is accepted.
enum class TlsVersion : std::uint8_t { k12, k13 };
WEIR_ENUM_NAMES(TlsVersion, "1.2", "1.3")

/// The measured memory of OpenSSL 3.0 as a client of a server whose chain has five certificates,
/// with a margin: a handshake (107 KB), an idle connection (53 KB: 13 KB of its own, 17 KB that
/// OpenSSL keeps after it has received a ticket, 23 KB for the chain), a session that is kept for
/// resumption after its connection has ended (24 KB, the chain again).
inline constexpr std::uint64_t kTlsClientHandshakeBytes = 112 * 1024;
inline constexpr std::uint64_t kTlsClientIdleBytes = 60 * 1024;
inline constexpr std::uint64_t kTlsSessionBytes = 28 * 1024;

/// TLS towards the endpoints of one upstream. Whether TLS is used is decided by the upstream's
/// scheme (https), not here.
///
/// By default the certificate chain and the name of the server are verified: the chain up to a root
/// of the system or of `ca`, the name against the DNS names of the certificate (or its IP addresses
/// if the endpoint is given as an address).
///
/// Thread-safety: a value. validate() returns all errors, with the keys of the section
/// [upstream.tls].
struct TlsClientConfig {
  std::string ca;               // PEM file with the accepted roots; empty: those of the system
  std::string ca_pem;           // the same as text; not an option of the file
  std::string server_name;      // sent (SNI) and verified; empty: the endpoint's name or address
  std::string certificate;      // PEM file with our own chain, if the server asks for it
  std::string private_key;      // its key; may be the same file
  std::string certificate_pem;  // the same as text; not options of the file
  std::string private_key_pem;
  TlsVersion min_version = TlsVersion::k12;
  bool insecure = false;  // verifies nothing: anybody between here and the server can read along

  bool operator==(const TlsClientConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors TlsClientConfig::validate() const {
  constexpr std::size_t kNameMax = 253;
  ConfigErrors errors;
  if (!certificate.empty() && private_key.empty()) {
    add_error(errors, "private_key", "\"\"",
              "the PEM file with the key of certificate (" + certificate +
                  "), which may be the same file");
  }
  if (certificate.empty() && !private_key.empty()) {
    add_error(errors, "certificate", "\"\"",
              "the PEM file with the certificate of private_key (" + private_key + ")");
  }
  if (insecure && !ca.empty()) {
    add_error(errors, "insecure", "true", "false, or no ca: nothing is verified against it");
  }
  const bool has_port =
      server_name.find(':') != std::string::npos && server_name.find(':') == server_name.rfind(':');
  const bool odd = server_name.find_first_of("/*[] \t\r\n") != std::string::npos ||
                   server_name.find('\0') != std::string::npos;
  if (server_name.size() > kNameMax || has_port || odd) {
    add_error(errors, "server_name", server_name,
              "a host name or an IP address, without scheme, port, path or wildcard");
  }
  return errors;
}

}  // namespace weir::inline v0::io
