#include "chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace weir::inline v0::sim {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 78;
constexpr double kRight = 170;  // room for the legend
constexpr double kTop = 84;
constexpr double kPanelHeight = 150;
constexpr double kPanelGap = 62;
constexpr double kPlotWidth = kWidth - kLeft - kRight;

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const char* const entity = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : nullptr;
    entity != nullptr ? safe.append(entity) : safe.append(1, c);
  }
  return safe;
}

std::string number(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

/// Maps values to heights.
struct Axis {
  bool logarithmic = false;
  double low = 0;
  double high = 1;
  double top = 0;  // of the panel, in pixels

  [[nodiscard]] double y(double value) const noexcept {
    double part = 0;
    if (logarithmic) {
      const double held = std::clamp(value, low, high);
      part = (std::log10(held) - std::log10(low)) / (std::log10(high) - std::log10(low));
    } else {
      part = std::clamp((value - low) / (high - low), 0.0, 1.0);
    }
    return top + kPanelHeight * (1 - part);
  }
};

double largest(const ChartPanel& panel) {
  double top = 0;
  for (const ChartLine& line : panel.lines) {
    for (const double value : line.values) top = std::max(top, value);
  }
  return top;
}

double smallest_positive(const ChartPanel& panel, double otherwise) {
  double low = otherwise;
  for (const ChartLine& line : panel.lines) {
    for (const double value : line.values) {
      if (value > 0) low = std::min(low, value);
    }
  }
  return low;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    for (const ChartPanel& panel : chart.panels) {
      for (const ChartLine& line : panel.lines) points_ = std::max(points_, line.values.size());
    }
    seconds_ = std::max(1e-9, chart.seconds_per_point * static_cast<double>(points_));
  }

  std::string draw() {
    const double height =
        kTop + static_cast<double>(chart_.panels.size()) * (kPanelHeight + kPanelGap);
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"DejaVu Sans, Helvetica, Arial, "
        "sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kWidth, height);
    add("<text x=\"{}\" y=\"28\" font-size=\"18\" font-weight=\"bold\">{}</text>\n", kLeft,
        escaped(chart_.title));
    add("<text x=\"{}\" y=\"48\" font-size=\"12\" fill=\"#444444\">{}</text>\n", kLeft,
        escaped(chart_.subtitle));
    double top = kTop;
    for (std::size_t i = 0; i < chart_.panels.size(); ++i) {
      panel(chart_.panels[i], top, i == 0);
      top += kPanelHeight + kPanelGap;
    }
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] double x(double seconds) const noexcept {
    return kLeft + kPlotWidth * std::clamp(seconds / seconds_, 0.0, 1.0);
  }

  void panel(const ChartPanel& p, double top, bool first) {
    Axis axis{p.logarithmic, 0, 1, top};
    const double most = largest(p);
    add("<text x=\"{}\" y=\"{:.1f}\" font-size=\"13\" font-weight=\"bold\">{}</text>\n", kLeft,
        top - 8, escaped(p.title));
    for (const ChartMark& mark : chart_.marks) this->mark(mark, top, first);
    if (p.logarithmic) {
      const int last = static_cast<int>(std::ceil(std::log10(std::max(most, 1.0))));
      axis.high = std::pow(10.0, last);
      const int first_tick =
          static_cast<int>(std::floor(std::log10(smallest_positive(p, axis.high / 10))));
      axis.low = std::pow(10.0, first_tick);
      for (int power = first_tick; power <= last; ++power) y_tick(axis, std::pow(10.0, power));
    } else {
      const double step = nice_step(std::max(most, 1e-9), 4);
      const int ticks = static_cast<int>(std::ceil(std::max(most, 1e-9) * 1.02 / step));
      axis.high = ticks * step;
      for (int tick = 0; tick <= ticks; ++tick) y_tick(axis, tick * step);
    }
    add("<text transform=\"translate(16 {:.1f}) rotate(-90)\" font-size=\"11\" fill=\"#444444\" "
        "text-anchor=\"middle\">{}</text>\n",
        top + kPanelHeight / 2, escaped(p.unit));
    x_axis(top + kPanelHeight);
    double legend = top + 12;
    for (const ChartLine& l : p.lines) {
      line(l, axis);
      legend_entry(l, legend);
      legend += 18;
    }
  }

  void y_tick(const Axis& axis, double value) {
    const double y = axis.y(value);
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n",
        kLeft, y, kLeft + kPlotWidth, y);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"#444444\" "
        "text-anchor=\"end\">{}</text>\n",
        kLeft - 6, y + 4, number(value));
  }

  void x_axis(double y) {
    const double step = nice_step(seconds_, 10);
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#444444\"/>\n",
        kLeft, y, kLeft + kPlotWidth, y);
    const int ticks = static_cast<int>(seconds_ * 1.0001 / step);
    for (int tick = 0; tick <= ticks; ++tick) {
      const double t = tick * step;
      add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
          "stroke=\"#444444\"/>\n",
          x(t), y, y + 4);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"#444444\" "
          "text-anchor=\"middle\">{:g}</text>\n",
          x(t), y + 17, t);
    }
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"#444444\" "
        "text-anchor=\"end\">seconds</text>\n",
        kLeft + kPlotWidth, y + 31);
  }

  void mark(const ChartMark& m, double top, bool labelled) {
    const double left = x(m.from);
    const double width = std::max(2.0, x(m.to) - left);
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#f6e2c4\" "
        "opacity=\"0.7\"/>\n",
        left, top, width, kPanelHeight);
    if (!labelled) return;
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"#8a5a00\">{}</text>\n", left + 3,
        top + 12, escaped(m.label));
  }

  void legend_entry(const ChartLine& l, double y) {
    const double left = kLeft + kPlotWidth + 12;
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{}\" stroke-dasharray=\"{}\"/>\n",
        left, y - 4, left + 22, y - 4, l.color, l.filled ? 8 : 2, l.dash);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\">{}</text>\n", left + 28, y,
        escaped(l.label));
  }

  void line(const ChartLine& l, const Axis& axis) {
    std::string path;
    bool pen_down = false;
    double previous = 0;
    for (std::size_t i = 0; i < l.values.size(); ++i) {
      if (l.values[i] < 0 || (axis.logarithmic && l.values[i] <= 0)) {
        pen_down = false;
        continue;
      }
      const double at = x((static_cast<double>(i) + 0.5) * chart_.seconds_per_point);
      const double y = axis.y(l.values[i]);
      if (pen_down && l.stepped && y != previous) path += fmt::format("H{:.1f}", at);
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", at, y);
      pen_down = true;
      previous = y;
    }
    if (path.empty()) return;
    if (l.filled) {
      add("<path d=\"{}V{:.1f}H{:.1f}Z\" fill=\"{}\" stroke=\"none\"/>\n", path,
          axis.top + kPanelHeight, x(0.5 * chart_.seconds_per_point), l.color);
      return;
    }
    add("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" "
        "stroke-dasharray=\"{}\" stroke-linejoin=\"round\"/>\n",
        path, l.color, l.dash);
  }

  const Chart& chart_;
  std::string out_;
  std::size_t points_ = 0;
  double seconds_ = 1;
};

}  // namespace

double nice_step(double top, int steps) noexcept {
  const double raw = top / steps;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

std::string Chart::to_svg() const {
  return Drawing(*this).draw();
}

}  // namespace weir::inline v0::sim
