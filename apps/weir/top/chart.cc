#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "text.h"

namespace weir::app::top {
namespace {

constexpr std::array kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

}  // namespace

Block columns(const std::vector<double>& values, double top, int height, Style style) {
  Block rows;
  for (int row = height - 1; row >= 0; --row) {
    std::string text;
    for (const double value : values) {
      const double share = top > 0 && value > 0 ? std::min(1.0, value / top) : 0;
      int eighths = static_cast<int>(std::lround(share * 8 * height));
      if (value > 0) eighths = std::max(eighths, 1);
      text += kEighths[static_cast<std::size_t>(std::clamp(eighths - 8 * row, 0, 8))];
    }
    rows.emplace_back(text, style);
  }
  return rows;
}

std::string gauge(double share, int width, const std::string& inside) {
  const int room = std::max(0, width - 2);
  const std::string shown = cut(inside, room);
  const int bar = room - cells(shown);
  const double part = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const int full = static_cast<int>(std::lround(part * bar));
  std::string text = "[";
  for (int i = 0; i < bar; ++i) text += i < full ? "█" : " ";
  return text + shown + "]";
}

std::vector<double> squeezed(const std::vector<double>& values, int width, bool whole) {
  const auto room = static_cast<std::size_t>(std::max(1, width));
  if (values.size() <= room) return values;
  if (!whole) return {values.end() - static_cast<std::ptrdiff_t>(room), values.end()};
  const std::size_t each = (values.size() + room - 1) / room;
  std::vector<double> out;
  // From the end, so that the newest group is whole and a group keeps its meaning.
  for (std::size_t end = values.size(); end > 0; end -= std::min(end, each)) {
    const std::size_t from = end - std::min(end, each);
    out.push_back(*std::max_element(values.begin() + static_cast<std::ptrdiff_t>(from),
                                    values.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace weir::app::top
