#include <algorithm>

#include "chart.h"
#include "numbers.h"
#include "pages.h"
#include "text.h"

namespace weir::app::top {
namespace {

constexpr int kNameCells = 10;
constexpr int kValueCells = 9;

int drawing_cells(int cols) {
  return std::max(1, cols - kNameCells - kValueCells - 2);
}

Style style_of_kind(std::string_view kind) {
  if (kind == "endpoint" || kind == "memory") return Style::kWarn;
  if (kind == "override" || kind == "drain") return Style::kStrong;
  return Style::kPlain;
}

}  // namespace

Style style_of_state(std::string_view state) {
  if (state == "HEALTHY" || state == "open" || state == "normal") return Style::kGood;
  if (state == "PRESSURED" || state == "slow" || state == "elevated" || state == "returning" ||
      state == "draining" || state == "suspect" || state == "high") {
    return Style::kWarn;
  }
  return state.empty() ? Style::kPlain : Style::kBad;
}

Line heading(std::string_view title, int cols) {
  Line line;
  line.add(title, Style::kFaint).add(" ");
  std::string rule;
  for (int i = line.width(); i < cols; ++i) rule += "─";
  return line.add(rule, Style::kFaint).fitted(cols);
}

Block event_lines(const PageInput& input, int rows, int cols) {
  const Snapshot& snapshot = input.snapshot;
  Block out;
  for (auto event = snapshot.events.rbegin(); event != snapshot.events.rend(); ++event) {
    if (static_cast<int>(out.size()) >= rows) break;
    const bool shown = passes_filter(input.ui, event->text) ||
                       passes_filter(input.ui, event->upstream) ||
                       passes_filter(input.ui, event->kind);
    if (!shown) continue;
    Line line;
    line.add(padded(duration_text(std::max(0.0, snapshot.now - event->at)), 7, true),
             Style::kFaint);
    line.add(" ").add(padded(event->kind, 8), style_of_kind(event->kind)).add(" ");
    if (!event->upstream.empty()) line.add(cut(event->upstream, 24), Style::kStrong).add(": ");
    out.push_back(line.add(event->text).fitted(cols));
  }
  if (out.empty()) {
    out.emplace_back(
        input.ui.filter.empty() ? "  nothing happened yet" : "  no event passes the filter",
        Style::kFaint);
  }
  return out;
}

double largest(const Snapshot& snapshot, double Second::*value) {
  double most = 0;
  for (const Second& second : snapshot.history) most = std::max(most, second.*value);
  return most;
}

std::string chart_title(const PageInput& input, int cols) {
  const int cells_free = drawing_cells(cols);
  const int seconds = static_cast<int>(input.snapshot.history.size());
  const bool squeezes = input.ui.whole && seconds > cells_free;
  const int each = squeezes ? (seconds + cells_free - 1) / cells_free : 1;
  const int span = input.ui.whole ? seconds : std::min(seconds, cells_free);
  return input.snapshot.upstream + ", the last " + duration_text(span) + ", one column is " +
         std::to_string(each) + " s";
}

Block track_lines(const PageInput& input, const Track& track, int cols, int height) {
  std::vector<double> values;
  values.reserve(input.snapshot.history.size());
  for (const Second& second : input.snapshot.history) values.push_back(second.*track.value);
  const int room = drawing_cells(cols);
  const std::vector<double> shown = squeezed(values, room, input.ui.whole);
  const double top =
      track.top > 0 || shown.empty() ? track.top : *std::max_element(shown.begin(), shown.end());
  Block rows = columns(shown, top, height, track.style);
  Block out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool last = i + 1 == rows.size();
    Line line;
    line.add(padded(last ? track.name : "", kNameCells), Style::kFaint).add(" ");
    // The newest second is at the right, also while the history is short.
    line.add(std::string(static_cast<std::size_t>(std::max(0, room - rows[i].width())), ' '));
    line.add(rows[i]).add(" ");
    const double newest = values.empty() ? 0 : values.back();
    out.push_back(line.add(last ? padded(track.text(newest), kValueCells, true) : "").fitted(cols));
  }
  return out;
}

const UpstreamNow* shown_upstream(const Snapshot& snapshot) {
  const auto found =
      std::find_if(snapshot.now_of.begin(), snapshot.now_of.end(),
                   [&](const UpstreamNow& one) { return one.name == snapshot.upstream; });
  return found == snapshot.now_of.end() ? nullptr : &*found;
}

}  // namespace weir::app::top
