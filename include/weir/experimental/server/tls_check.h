#pragma once

#include "weir/base/config_error.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::server {

/// Reads the certificates and keys of a configuration as a server would: each file must exist and
/// have the right content, and each key must match its certificate. Returns the first error with
/// key and file; empty if a server would start with them, or if TLS is not configured.
[[nodiscard]] ConfigErrors check_tls_files(const io::TlsConfig& config);

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::check_tls_files;
}  // namespace weir::inline v0
