#include "io/file_watch.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {
namespace {

constexpr int kReadsMax = 3;  // of a file that changes while it is read

std::string text_of_errno(int number) {
  return std::generic_category().message(number);
}

}  // namespace

struct FileWatch::Marks {
  static Mark of(const struct stat& found) noexcept {
    const auto ns = [](const timespec& at) {
      return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
    };
    return {.device = found.st_dev,
            .inode = found.st_ino,
            .bytes = static_cast<std::uint64_t>(found.st_size),
            .modified_ns = ns(found.st_mtim),
            .status_changed_ns = ns(found.st_ctim)};
  }
};

bool FileWatch::changed() const noexcept {
  struct stat found {};
  return ::stat(path_.c_str(), &found) != 0 || Marks::of(found) != seen_;
}

Result<std::string, std::string> FileWatch::read(std::size_t bytes_max) {
  seen_ = {};
  for (int tries = 0; tries < kReadsMax; ++tries) {
    const Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would block
    if (!file) return unexpected(text_of_errno(errno));
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) return unexpected(text_of_errno(errno));
    if (!S_ISREG(found.st_mode)) return unexpected(std::string("it is not a regular file"));
    const Mark before = Marks::of(found);
    if (before.bytes > bytes_max) {
      return unexpected("it is larger than " + std::to_string(bytes_max) + " bytes");
    }
    std::string text(before.bytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const auto got = ::read(file.get(), text.data() + size, text.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return unexpected(text_of_errno(errno));
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    if (::fstat(file.get(), &found) != 0 || Marks::of(found) != before || size != before.bytes) {
      continue;
    }
    seen_ = before;
    text.resize(size);
    return text;
  }
  return unexpected(std::string("it changes while it is read: replace it by a rename"));
}

}  // namespace weir::inline v0::io
