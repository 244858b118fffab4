#pragma once

#include <span>
#include <string>

#include "weir/experimental/io/address.h"

#include "served_upstream.h"

namespace weir::inline v0::gateway {

/// Which endpoint is one of the addresses that the gateway itself listens on: it would forward
/// every request to itself. Empty if there is none.
[[nodiscard]] std::string circle_objection(const UpstreamSet& upstreams,
                                           std::span<const io::SocketName> own);

}  // namespace weir::inline v0::gateway
