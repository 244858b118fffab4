#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {

/// The first 4 KB of a small kernel file (/proc, /sys), read with one system call.
class SmallFile {
 public:
  explicit SmallFile(const std::string& path) noexcept;
  /// Reads from the start of a file that stays open.
  explicit SmallFile(const Fd& file) noexcept;

  [[nodiscard]] bool readable() const noexcept { return readable_; }
  /// Without trailing white space; empty if it cannot be read.
  [[nodiscard]] std::string_view text() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 4096> bytes_;
  std::size_t size_ = 0;
  bool readable_ = false;
};

/// Opens for reading; the result is empty if that fails.
[[nodiscard]] Fd open_file(const std::string& path) noexcept;

/// The decimal number at the start of `text` (after blanks), if the end or a blank follows it.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text) noexcept;

/// Removes the next line from the front of `text`.
[[nodiscard]] std::string_view next_line(std::string_view& text) noexcept;

}  // namespace weir::inline v0::io
