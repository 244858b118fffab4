#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/base/result.h"
#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {

/// A file of a fixed size that is written in place.
///
/// Promises: all of its blocks are allocated when it is created, so a full disk is an error then
/// and not later. What was written is in the file when the process is killed. It is not mapped into
/// memory: an error of the disk is a value and not SIGBUS, and its pages are not the process's.
/// Thread-safety: one owner. Cost: a system call each; it blocks while the disk is slow, so no
/// event loop may use it.
class RecordFile {
 public:
  /// Creates it with zeros, mode 0600. A file of that name is an error, also a symbolic link.
  [[nodiscard]] static Result<RecordFile, std::errc> create(const std::string& path,
                                                            std::uint64_t bytes);
  [[nodiscard]] Result<void, std::errc> write(std::uint64_t offset,
                                              std::string_view bytes) noexcept;
  /// Fewer bytes than asked for at the end of the file.
  [[nodiscard]] Result<std::size_t, std::errc> read(std::uint64_t offset,
                                                    std::span<char> into) noexcept;

 private:
  explicit RecordFile(Fd fd) noexcept : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace weir::inline v0::io
