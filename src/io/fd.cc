#include "weir/io/fd.h"

#include <fcntl.h>
#include <unistd.h>

namespace weir::inline v0::io {

void close_fd(int fd) noexcept {
  ::close(fd);  // on EINTR Linux has closed it all the same
}

void fill_standard_descriptors() noexcept {
  int opened = STDIN_FILENO;
  while (opened >= STDIN_FILENO && opened <= STDERR_FILENO) {  // each open takes the lowest number
    opened = ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): as inherited ones are
  }
  if (opened > STDERR_FILENO) ::close(opened);
}

}  // namespace weir::inline v0::io
