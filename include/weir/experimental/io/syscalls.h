#pragma once

#include <cstddef>

namespace weir::inline v0::io {

/// The system calls of a loop's sockets; tests replace them to cause failures. Each returns what
/// the system call returns and sets errno.
struct Syscalls {
  long (*recv)(int fd, void* into, std::size_t size);
  long (*send)(int fd, const void* from, std::size_t size);
  long (*send_pieces)(int fd, const void* pieces, std::size_t count);  // ConstBuffer[count]
  int (*accept)(int fd, void* address, unsigned* address_size);        // non-blocking, cloexec
};

/// The real system calls.
[[nodiscard]] const Syscalls& system_calls() noexcept;

}  // namespace weir::inline v0::io
