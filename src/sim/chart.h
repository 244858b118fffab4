#pragma once

#include <string>
#include <vector>

namespace weir::inline v0::sim {

/// One line of a panel; `dash` as in SVG, empty for a solid line.
struct ChartLine {
  std::string label{};
  std::string color{};
  std::string dash{};
  bool filled = false;  // also fill the area below it
  bool stepped = false;
  std::vector<double> values{};  // one per point in time; negative: no value
};

/// A span of time to mark on every panel: a fault, a phase of the load.
struct ChartMark {
  double from = 0;  // seconds
  double to = 0;
  std::string label{};
};

/// One diagram over time.
struct ChartPanel {
  std::string title{};
  std::string unit{};  // of the vertical axis
  bool logarithmic = false;
  std::vector<ChartLine> lines{};
};

/// Diagrams below each other, over the same time, as a self-contained SVG document.
struct Chart {
  std::string title{};
  std::string subtitle{};
  double seconds_per_point = 1;
  std::vector<ChartMark> marks{};
  std::vector<ChartPanel> panels{};

  [[nodiscard]] std::string to_svg() const;
};

/// The distance of round numbers for an axis from 0 to at least `top`.
[[nodiscard]] double nice_step(double top, int steps) noexcept;

}  // namespace weir::inline v0::sim
