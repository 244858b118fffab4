#include "weir/experimental/io/local_peer.h"

#include <algorithm>
#include <cstddef>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::inline v0::io {

std::optional<LocalPeer> local_peer_of(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family != AF_UNIX) {
    return std::nullopt;
  }
  ucred process{};
  size = sizeof process;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) != 0) return std::nullopt;
  LocalPeer peer{.user = process.uid, .pid = process.pid, .groups = {process.gid}};
  // The first call only says how many there are.
  std::vector<gid_t> more;
  size = 0;
  static_cast<void>(::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size));
  more.resize(size / sizeof(gid_t));
  if (!more.empty() && ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more.data(), &size) == 0) {
    peer.groups.insert(peer.groups.end(), more.begin(), more.end());
  }
  return peer;
}

bool may_use(const LocalPeer& peer, const std::string& path) {
  if (peer.user == 0 || peer.user == ::geteuid()) return true;
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return false;
  return std::find(peer.groups.begin(), peer.groups.end(), file.st_gid) != peer.groups.end();
}

}  // namespace weir::inline v0::io
