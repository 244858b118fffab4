#pragma once

#include "weir/base/config_error.h"
#include "weir/experimental/io/tls_config.h"

#include "io/tls_context.h"

namespace weir::inline v0::inline server {

/// The inputs of a server's TLS context.
[[nodiscard]] io::TlsSetup tls_setup(const io::TlsConfig& config, bool http2_spoken);

/// An error of a certificate or key for the operator: key, file, and what is wrong.
[[nodiscard]] ConfigError tls_fault(const io::TlsConfig& config, const io::TlsSetupError& error);

}  // namespace weir::inline v0::inline server
