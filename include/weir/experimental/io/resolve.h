#pragma once

#include <string_view>
#include <vector>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::io {

/// Resolves a configured address: a numeric address or a path gives itself, a host name all its
/// addresses in the resolver's order. The error is the resolver's ("Name or service not known").
///
/// Blocks for as long as the system's resolver does: for start-up only, never for requests.
[[nodiscard]] Result<std::vector<SocketName>, std::string_view> resolve(const NetAddress& address);

}  // namespace weir::inline v0::io
