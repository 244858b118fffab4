#pragma once

#include <string_view>
#include <vector>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::io {

/// Where a configured address is: itself when it is numeric or a path, every address of a host name
/// in the resolver's order. Else why not, in the resolver's words ("Name or service not known").
///
/// Blocks for as long as the system's resolver does: for start-up, never for requests.
[[nodiscard]] Result<std::vector<SocketName>, std::string_view> resolve(const NetAddress& address);

}  // namespace weir::inline v0::io
