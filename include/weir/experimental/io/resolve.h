#pragma once

#include <vector>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/error.h"

namespace weir::inline v0::io {

/// Resolves a configured address: a numeric address or a path gives itself, a host name gives all
/// its addresses in the resolver's order. kUnreachable if the name is not known.
///
/// Blocks while the system's resolver works: use it at start, never for requests.
[[nodiscard]] Result<std::vector<SocketName>, IoError> resolve(const NetAddress& address);

}  // namespace weir::inline v0::io
