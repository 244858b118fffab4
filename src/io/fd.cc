#include "weir/io/fd.h"

#include <unistd.h>

namespace weir::inline v0::io {

void close_fd(int fd) noexcept {
  ::close(fd);  // on EINTR Linux has closed it all the same
}

}  // namespace weir::inline v0::io
