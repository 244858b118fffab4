#include "weir/experimental/io/error.h"

#include <cerrno>

namespace weir::inline v0::io {

IoError io_error_of(int error_number) noexcept {
  switch (error_number) {
    case EAGAIN:
    case EINTR:
    case EINPROGRESS:
      return IoError::kAgain;
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
    case ENOTCONN:
    case EPROTO:
      return IoError::kReset;
    case ETIMEDOUT:
      return IoError::kTimedOut;
    case ECONNREFUSED:
    case ENOENT:  // the Unix socket does not exist
      return IoError::kRefused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return IoError::kUnreachable;
    case EMFILE:
    case ENFILE:
      return IoError::kNoFds;
    case ENOBUFS:
    case ENOMEM:
      return IoError::kNoMemory;
    case EADDRINUSE:
      return IoError::kInUse;
    case EACCES:
    case EPERM:
      return IoError::kDenied;
    case EINVAL:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case ENAMETOOLONG:
      return IoError::kInvalid;
    default:
      return IoError::kOther;
  }
}

}  // namespace weir::inline v0::io
