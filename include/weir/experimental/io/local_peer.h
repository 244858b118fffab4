#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::inline v0::io {

/// The process at the other end of a Unix socket, as it was when it connected.
struct LocalPeer {
  std::uint32_t user = 0;
  int pid = 0;
  std::vector<std::uint32_t> groups{};  // all of them, its primary one first

  bool operator==(const LocalPeer&) const = default;
};

/// Asks the kernel; nullopt if the socket is no Unix socket. Thread-safety: any.
[[nodiscard]] std::optional<LocalPeer> local_peer_of(int fd);

/// Whether that process may use what the socket file at `path` stands for: it runs as root, as the
/// user of this process, or in the group of the file. The kernel asks the same by the file's mode,
/// which somebody may have changed. Thread-safety: any; asks the kernel.
[[nodiscard]] bool may_use(const LocalPeer& peer, const std::string& path);

}  // namespace weir::inline v0::io
