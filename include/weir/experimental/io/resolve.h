#pragma once

#include <vector>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/error.h"

namespace weir::inline v0::io {

/// Where a configured address is: itself when it is numeric or a path, every address of a host name
/// in the resolver's order. kUnreachable when the name is not known.
///
/// Blocks for as long as the system's resolver does: for start-up, never for requests.
[[nodiscard]] Result<std::vector<SocketName>, IoError> resolve(const NetAddress& address);

}  // namespace weir::inline v0::io
