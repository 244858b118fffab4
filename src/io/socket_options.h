#pragma once

#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {

/// Best effort: an option that the kernel does not support is ignored.
void set_options(int fd, Family family, const SocketOptions& options) noexcept;

}  // namespace weir::inline v0::io
