#include "dial_tls.h"

#include "weir/experimental/gateway/gateway.h"

namespace weir::inline v0::gateway {

Result<std::vector<io::TlsContext::Ptr>, std::string> dial_contexts(const config::Config& config) {
  std::vector<io::TlsContext::Ptr> all;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    all.emplace_back();
    if (!upstream.tls_enabled) continue;
    const auto made = io::TlsContext::make(io::TlsSetup::client(
        upstream.tls, {.http1 = upstream.protocol != upstream::Protocol::kHttp2,
                       .http2 = upstream.protocol != upstream::Protocol::kHttp1}));
    if (!made) {
      const io::TlsSetupError& error = made.error();
      return unexpected("upstream " + upstream.name + ": [upstream.tls] " + error.where + ": " +
                        error.why + "; wanted is " + error.wanted);
    }
    all.back() = *made;
  }
  return all;
}

std::string upstream_tls_objection(const config::Config& config) {
  const auto contexts = dial_contexts(config);
  return contexts ? std::string() : contexts.error();
}

}  // namespace weir::inline v0::gateway
