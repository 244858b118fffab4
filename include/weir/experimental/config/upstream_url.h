#pragma once

#include <span>
#include <string>

#include "weir/base/result.h"
#include "weir/experimental/upstream/upstream_config.h"

namespace weir::inline v0::config {

/// The upstream "app" of `weir run --to URL…` and of weir::Client. Each URL is one source of
/// endpoints:
///
///   HOST:PORT, PORT        HTTP/1.1; PORT alone is on 127.0.0.1
///   http://HOST[:PORT]     the same; port 80 if there is none
///   https://HOST[:PORT]    TLS, HTTP/2 or HTTP/1.1 by ALPN; port 443 if there is none
///   h2c://HOST[:PORT]      HTTP/2 in cleartext, with prior knowledge; port 80 if there is none
///   unix:/path, dns:, srv:, file:, and attributes, as in the file
///
/// The error is a sentence for the operator. All URLs must have the same scheme.
/// Thread-safety: a function.
[[nodiscard]] Result<upstream::UpstreamConfig, std::string> upstream_from(
    std::span<const std::string> urls);

}  // namespace weir::inline v0::config
