#include "io/record_file.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace weir::inline v0::io {
namespace {

std::errc last_error() noexcept {
  return static_cast<std::errc>(errno);
}

}  // namespace

Result<RecordFile, std::errc> RecordFile::create(const std::string& path, std::uint64_t bytes) {
  constexpr mode_t kMode = 0600;
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd) return unexpected(last_error());
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    static_cast<void>(::unlink(path.c_str()));
    return unexpected(static_cast<std::errc>(error));
  }
  return RecordFile(std::move(fd));
}

Result<void, std::errc> RecordFile::write(std::uint64_t offset, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unexpected(n == 0 ? std::errc::no_space_on_device : last_error());
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<std::size_t, std::errc> RecordFile::read(std::uint64_t offset,
                                                std::span<char> into) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd_.get(), into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unexpected(last_error());
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace weir::inline v0::io
