#pragma once

#include "weir/experimental/io/address.h"

namespace weir::inline v0::io {

/// Whether this machine can send to an IP address at all: it has a route, and an address of that
/// family to send from. Sends nothing. True if that cannot be told.
/// Thread-safety: any. Cost: three system calls.
[[nodiscard]] bool has_route(const Address& to) noexcept;

}  // namespace weir::inline v0::io
