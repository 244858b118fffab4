#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::inline v0::gateway {

/// Whether the admin endpoint answers a request for this Host (or :authority): an IP address,
/// localhost, or one of `hosts`; the port is ignored. This stops DNS rebinding: a foreign web page
/// whose name resolves to this machine sends its own name as Host and gets nothing. A request
/// without Host, which only HTTP/1.0 allows, does not come from a browser and is answered. /healthz
/// and /readyz are answered for every Host, because probes ask by name.
/// Thread-safety: pure.
[[nodiscard]] bool admin_host_allowed(std::string_view authority,
                                      std::span<const std::string> hosts);

}  // namespace weir::inline v0::gateway
