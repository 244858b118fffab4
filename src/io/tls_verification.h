#pragma once

#include <string_view>

#include <openssl/ssl.h>

namespace weir::inline v0::io {

/// Tells OpenSSL which server a client expects: a host name is sent (SNI), both are verified when
/// `verify` says so. A certificate fits by its alternative names only, not by its subject, and a
/// wildcard only as a whole label. False: no memory.
struct ExpectedServer {
  std::string_view name;  // without a final dot, at most 253 bytes
  bool verify = true;
};
[[nodiscard]] bool expect_server(SSL* ssl, ExpectedServer server) noexcept;

/// The text for a log of why the peer's certificate was not accepted (X509_V_ERR_…); never freed.
[[nodiscard]] std::string_view text_of_verification(long result) noexcept;

}  // namespace weir::inline v0::io
