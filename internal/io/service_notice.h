#pragma once

#include <string>
#include <string_view>

namespace weir::inline v0::io {

/// Tells a service manager the state of this process ("READY=1"): one datagram to the Unix socket
/// that NOTIFY_SOCKET names (a path, or @ and an abstract name), as sd_notify(3) describes.
///
/// Promises: does not block and does not fail the caller: false if there is no such socket, its
/// queue is full, or the text has more than 4096 bytes.
/// Thread-safety: any.
bool notify_service_manager(const std::string& socket, std::string_view state) noexcept;

}  // namespace weir::inline v0::io
