#pragma once

#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/experimental/config/weir_config.h"

#include "io/tls_context.h"

namespace weir::inline v0::gateway {

/// One TLS context for each upstream of a configuration, nullptr where TLS is not enabled. Reads
/// the files of [upstream.tls]; the error is a sentence with the upstream, the file and the reason.
///
/// Thread-safety: a function; reads files.
[[nodiscard]] Result<std::vector<io::TlsContext::Ptr>, std::string> dial_contexts(
    const config::Config& config);

}  // namespace weir::inline v0::gateway
