#pragma once

#include "weir/base/config_error.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::inline server {

/// Reads the certificates and keys of a configuration, as a server does. Each file must exist, have
/// the right content and be valid today; each key must match its certificate. Returns the first
/// error, with its key and file; empty if there is none or TLS is not configured.
[[nodiscard]] ConfigErrors check_tls_files(const io::TlsConfig& config);

}  // namespace weir::inline v0::inline server
