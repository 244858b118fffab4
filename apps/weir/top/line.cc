#include "line.h"

#include <algorithm>

#include "text.h"

namespace weir::app::top {

Line& Line::add(std::string_view text, Style style) {
  if (text.empty()) return *this;
  width_ += cells(text);
  if (!spans_.empty() && spans_.back().style == style) {
    spans_.back().text += text;
  } else {
    spans_.push_back(Span{style, std::string(text)});
  }
  return *this;
}

Line& Line::add(const Line& other) {
  for (const Span& span : other.spans_) add(span.text, span.style);
  return *this;
}

std::string Line::plain() const {
  std::string text;
  for (const Span& span : spans_) text += span.text;
  return text;
}

Line Line::fitted(int width) const {
  if (width_ <= width) return *this;
  Line out;
  for (const Span& span : spans_) {
    const int room = width - out.width();
    if (room <= 0) break;
    // A piece that fills its room while more follows is cut, too: the cut must be seen.
    const bool last = cells(span.text) > room || &span == &spans_.back();
    if (last || cells(span.text) < room) {
      out.add(cut(span.text, room), span.style);
    } else {
      out.add(cut(span.text + " ", room), span.style);
    }
    if (cells(span.text) >= room) break;
  }
  return out;
}

Line Line::filled(int width) const {
  Line out = fitted(width);
  if (out.width() < width) out.add(std::string(static_cast<std::size_t>(width - out.width()), ' '));
  return out;
}

Line Line::in_ascii() const {
  Line out;
  for (const Span& span : spans_) out.add(ascii(span.text), span.style);
  return out;
}

Line Line::in_style(Style style) const {
  return Line(plain(), style);
}

Block beside(const Block& left, const Block& right, int left_width) {
  Block out;
  const std::size_t rows = std::max(left.size(), right.size());
  for (std::size_t i = 0; i < rows; ++i) {
    Line line = i < left.size() ? left[i] : Line();
    if (i < right.size()) line = line.filled(left_width).add("  ").add(right[i]);
    out.push_back(line);
  }
  return out;
}

void append(Block& to, const Block& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace weir::app::top
