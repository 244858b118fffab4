#pragma once

#include <string>
#include <vector>

#include "io/tls_context.h"

namespace weir::inline v0::io {

/// One certificate of a context, with what an operator needs to identify it.
struct TlsCertificate {
  std::string file;     // empty if given as text
  std::string subject;  // RFC 2253: "CN=name,O=firm"
  std::string expires;  // "2026-12-31T23:59:59Z"
  std::string digest;   // SHA-256, 32 bytes

  bool operator==(const TlsCertificate&) const = default;
};

/// The certificates of a context, in the order of its identities.
/// Thread-safety: any. Cost: allocates; for start and reload.
[[nodiscard]] std::vector<TlsCertificate> certificates_of(const TlsContext& context);

}  // namespace weir::inline v0::io
