#pragma once

#include "weir/base/config_error.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::server {

/// Reads the certificates and keys that a configuration names, as a server would: each must be
/// there, hold what it should, be valid today, and each key must belong to its certificate. Names
/// the first fault with its key and file; empty when there is none, or when TLS is not configured.
[[nodiscard]] ConfigErrors check_tls_files(const io::TlsConfig& config);

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::check_tls_files;
}  // namespace weir::inline v0
