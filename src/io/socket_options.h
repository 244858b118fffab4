#pragma once

#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {

/// Best effort: a kernel that does not know an option still serves.
void set_options(int fd, Family family, const SocketOptions& options) noexcept;

}  // namespace weir::inline v0::io
