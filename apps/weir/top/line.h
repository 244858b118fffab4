#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app::top {

/// What a piece of text is; frame_writer.h says how it looks. Never the only carrier of a meaning.
enum class Style : std::uint8_t { kPlain, kStrong, kFaint, kGood, kWarn, kBad, kMarked };

struct Span {
  Style style = Style::kPlain;
  std::string text;

  bool operator==(const Span&) const = default;
};

/// One row of the screen: pieces of cleaned text. Thread-safety: none.
class Line {
 public:
  Line() = default;
  explicit Line(std::string_view text, Style style = Style::kPlain) { add(text, style); }

  Line& add(std::string_view text, Style style = Style::kPlain);
  Line& add(const Line& other);

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return spans_; }
  [[nodiscard]] std::string plain() const;

  /// At most `width` cells.
  [[nodiscard]] Line fitted(int width) const;
  /// Exactly `width` cells: cut, or padded with blanks.
  [[nodiscard]] Line filled(int width) const;
  /// The same cells in ASCII.
  [[nodiscard]] Line in_ascii() const;
  /// The same text, all of it in `style`.
  [[nodiscard]] Line in_style(Style style) const;

  bool operator==(const Line&) const = default;

 private:
  std::vector<Span> spans_;
  int width_ = 0;
};

using Block = std::vector<Line>;

/// `left` in `left_width` cells with `right` beside it, two cells apart.
[[nodiscard]] Block beside(const Block& left, const Block& right, int left_width);
/// `from` below `to`.
void append(Block& to, const Block& from);

}  // namespace weir::app::top
