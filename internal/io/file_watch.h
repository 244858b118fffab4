#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/base/result.h"

namespace weir::inline v0::io {

/// Notices when a file was replaced or changed, by asking the system for its inode, size and times.
///
/// Unlike inotify this sees every kind of change: a rename onto the name, a symbolic link on the
/// way that leads elsewhere (as in Kubernetes volumes), files on network file systems.
///
/// Promises: read() returns one version of the file, as long as writers replace the file (rename)
/// instead of writing into it; a file that changes while it is read is read again.
/// Thread-safety: none needed; one owner. Cost: one system call per look; blocks as long as the
/// file system does, so use it for local files.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_(std::move(path)) {}

  /// Whether the file differs from the last one that was read, or whether that cannot be told.
  [[nodiscard]] bool changed() const noexcept;
  /// The whole file; the error says why not, in the system's words.
  [[nodiscard]] Result<std::string, std::string> read(std::size_t bytes_max);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  /// Of one version of a file.
  struct Mark {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t status_changed_ns = 0;
    bool operator==(const Mark&) const = default;
  };
  struct Marks;  // the system calls

  std::string path_;
  Mark seen_;
};

}  // namespace weir::inline v0::io
