#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "line.h"

namespace weir::app::top {

struct Column {
  std::string_view title;
  int width = 8;      // at least; a growing column is as wide as its contents where there is room
  bool right = true;  // numbers
  int drop = 0;       // left out first where the highest; 0: always shown
  bool grows = false;
};

struct Cell {
  std::string text;
  Style style = Style::kPlain;
};

/// Rows under titles, as many columns as fit: those with the highest `drop` go first. Pure.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row, bool marked = false);
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  /// The title line and one line per row, each at most `width` cells.
  [[nodiscard]] Block lines(int width) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    bool marked = false;
  };
  [[nodiscard]] std::vector<int> widths(int width) const;  // 0: left out

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace weir::app::top
