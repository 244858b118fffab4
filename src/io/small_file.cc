#include "small_file.h"

#include <charconv>

#include <fcntl.h>
#include <unistd.h>

namespace weir::inline v0::io {

Fd open_file(const std::string& path) noexcept {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

SmallFile::SmallFile(const std::string& path) noexcept : SmallFile(open_file(path)) {}

SmallFile::SmallFile(const Fd& file) noexcept {
  if (!file) return;
  while (size_ < bytes_.size()) {
    const ssize_t got = ::pread(file.get(), bytes_.data() + size_, bytes_.size() - size_,
                                static_cast<off_t>(size_));
    if (got < 0) {
      size_ = 0;
      return;
    }
    if (got == 0) break;
    size_ += static_cast<std::size_t>(got);
  }
  readable_ = true;
  while (size_ > 0 && (bytes_[size_ - 1] == '\n' || bytes_[size_ - 1] == ' ')) --size_;
}

std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const char* stop = text.data() + text.size();
  if (end != stop && *end != ' ' && *end != '\n' && *end != '\t') return std::nullopt;
  return value;
}

std::string_view next_line(std::string_view& text) noexcept {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

}  // namespace weir::inline v0::io
