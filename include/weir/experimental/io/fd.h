#pragma once

#include <cstdint>
#include <utility>

namespace weir::inline v0::io {

/// Closes a descriptor that has no other owner.
void close_fd(int fd) noexcept;

/// Opens /dev/null in place of a closed standard input, output or error. Otherwise the next socket
/// would get that descriptor number, and log output would be sent to its peer. Call it first in
/// main().
void fill_standard_descriptors() noexcept;

/// Raises the descriptor limit of this process to `wanted`, as far as it is allowed. Returns the
/// limit in force.
[[nodiscard]] std::uint64_t allow_descriptors(std::uint64_t wanted) noexcept;

/// Whether `count` more descriptors can be opened now; those inherited count, too.
[[nodiscard]] bool can_open_descriptors(std::uint64_t count) noexcept;

/// Owns one file descriptor. Move-only. Thread-safety: as int.
class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) close_fd(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace weir::inline v0::io
