#pragma once

#include "weir/base/config_error.h"
#include "weir/experimental/io/tls_config.h"

#include "io/tls_context.h"

namespace weir::inline v0::server {

/// What a server's TLS context is made of.
[[nodiscard]] io::TlsSetup tls_setup(const io::TlsConfig& config, bool http2_spoken);

/// A fault of certificates or keys in the operator's words: key, file, and what is wrong with it.
[[nodiscard]] ConfigError tls_fault(const io::TlsConfig& config, const io::TlsSetupError& error);

}  // namespace weir::inline v0::server
