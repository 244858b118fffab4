#include "table.h"

#include <algorithm>
#include <utility>

#include "text.h"

namespace weir::app::top {

void Table::add(std::vector<Cell> row, bool marked) {
  row.resize(columns_.size());
  rows_.push_back(Row{std::move(row), marked});
}

std::vector<int> Table::widths(int width) const {
  std::vector<int> out;
  int total = -1;
  for (const Column& column : columns_) {
    out.push_back(column.width);
    total += column.width + 1;
  }
  while (total > width) {
    std::size_t worst = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (out[i] == 0 || columns_[i].drop == 0) continue;
      if (worst == columns_.size() || columns_[i].drop > columns_[worst].drop) worst = i;
    }
    if (worst == columns_.size()) break;
    total -= out[worst] + 1;
    out[worst] = 0;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].grows || out[i] == 0) continue;
    int natural = cells(columns_[i].title);
    for (const Row& row : rows_) natural = std::max(natural, cells(row.cells[i].text));
    const int more = std::clamp(natural - out[i], 0, std::max(0, width - total));
    out[i] += more;
    total += more;
  }
  return out;
}

Block Table::lines(int width) const {
  const std::vector<int> fitting = widths(width);
  const auto line_of = [&](const auto& cell_at) {
    Line line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (fitting[i] == 0) continue;
      if (line.width() > 0) line.add(" ");
      const Cell cell = cell_at(i);
      line.add(padded(cell.text, fitting[i], columns_[i].right), cell.style);
    }
    return line.fitted(width);
  };
  Block out;
  out.push_back(line_of([&](std::size_t i) {
    return Cell{std::string(columns_[i].title), Style::kFaint};
  }));
  for (const Row& row : rows_) {
    const Line line = line_of([&](std::size_t i) { return row.cells[i]; });
    out.push_back(row.marked ? line.filled(width).in_style(Style::kMarked) : line);
  }
  return out;
}

}  // namespace weir::app::top
