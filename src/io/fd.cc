#include "weir/experimental/io/fd.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weir::inline v0::io {

void close_fd(int fd) noexcept {
  ::close(fd);  // Linux closes it even on EINTR
}

void fill_standard_descriptors() noexcept {
  int opened = STDIN_FILENO;
  while (opened >= STDIN_FILENO && opened <= STDERR_FILENO) {  // open() takes the lowest number
    opened = ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): as inherited ones are
  }
  if (opened > STDERR_FILENO) ::close(opened);
}

std::uint64_t allow_descriptors(std::uint64_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;  // unknown: assume that it is enough
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit raised{.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max),
                      .rlim_max = limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

bool can_open_descriptors(std::uint64_t count) noexcept {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool rest = count <= 1 || can_open_descriptors(count - 1);
  ::close(fd);
  return rest;
}

}  // namespace weir::inline v0::io
