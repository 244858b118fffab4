#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::inline v0::gateway {

/// Whether the admin endpoint answers a request for this Host (or :authority): an IP address,
/// localhost, or one of `hosts`; the port does not matter. A page of a stranger, whose name is made
/// to resolve to this machine (DNS rebinding), asks for the stranger's name and gets nothing.
/// Without any Host, which only HTTP/1.0 allows, it is no browser, and is answered.
/// Thread-safety: pure.
[[nodiscard]] bool admin_host_allowed(std::string_view authority,
                                      std::span<const std::string> hosts);

}  // namespace weir::inline v0::gateway
