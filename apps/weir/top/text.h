#pragma once

#include <string>
#include <string_view>

/// Text for a grid of cells. Names come from clients and from configuration: everything that is
/// shown passes clean() first. Pure; thread-safety: any thread.
namespace weir::app::top {

/// `text` without anything that a terminal would obey or that would not take its cells: control
/// characters, escape sequences, broken UTF-8, combining and direction marks become '?'. At most
/// `max_points` characters.
[[nodiscard]] std::string clean(std::string_view text, std::size_t max_points = 512);

/// `bytes` with every byte that is not part of valid UTF-8 replaced by '?'; nothing else changes.
[[nodiscard]] std::string valid_utf8(std::string_view bytes);

/// How many cells a cleaned text takes: 2 for each wide character.
[[nodiscard]] int cells(std::string_view text) noexcept;

/// `text` in at most `width` cells: cut between characters, the cut shown by '…'.
[[nodiscard]] std::string cut(std::string_view text, int width);

/// The same, padded with blanks to exactly `width` cells.
[[nodiscard]] std::string padded(std::string_view text, int width, bool right = false);

/// `text` in ASCII with the same number of cells: blocks and lines become signs that look alike.
[[nodiscard]] std::string ascii(std::string_view text);

/// The next character of `text` from `at`, which it moves; U+FFFD for a byte that is not UTF-8.
[[nodiscard]] char32_t next_point(std::string_view text, std::size_t& at) noexcept;
/// Appends `point` as UTF-8.
void append_point(std::string& text, char32_t point);

}  // namespace weir::app::top
