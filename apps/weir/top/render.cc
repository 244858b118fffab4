#include "render.h"

#include <algorithm>

#include "numbers.h"
#include "pages.h"
#include "text.h"

namespace weir::app::top {
namespace {

/// `line` with `right` at its right end, if that fits.
Line with_right(Line line, const Line& right, int cols) {
  const int gap = cols - line.width() - right.width();
  if (gap < 2) return line.fitted(cols);
  return line.add(std::string(static_cast<std::size_t>(gap), ' ')).add(right);
}

Line verdict_line(const Snapshot& snapshot, const Link& link, int cols) {
  Line line;
  if (!snapshot.has_tick) {
    return line.add("waiting for " + link.address, Style::kStrong).fitted(cols);
  }
  if (snapshot.draining) line.add("DRAINING", Style::kWarn).add(" · ");
  line.add(snapshot.state.empty() ? "unknown" : snapshot.state,
           link.stale ? Style::kFaint : style_of_state(snapshot.state));
  line.add(" " + duration_text(snapshot.verdict.for_s) + ": ", Style::kStrong);
  line.add(snapshot.verdict.sentence, Style::kStrong);
  Line right;
  if (!snapshot.verdict.upstream.empty()) right.add(snapshot.verdict.upstream);
  if (!snapshot.name.empty()) right.add(" on ", Style::kFaint).add(snapshot.name);
  return with_right(line, right, cols);
}

Line next_line(const Snapshot& snapshot, int cols) {
  Line line;
  if (!snapshot.has_tick || snapshot.verdict.next_step.empty()) return line;
  return line.add("next: ", Style::kFaint).add(snapshot.verdict.next_step).fitted(cols);
}

Line tabs(const UiState& ui, int cols) {
  Line wide;
  Line narrow;
  for (std::size_t i = 0; i < kPageCount; ++i) {
    const bool here = static_cast<std::size_t>(ui.page) == i;
    const std::string number = std::to_string(i + 1);
    const std::string name = number + " " + std::string(kPages[i].title);
    wide.add(here ? "[" + name + "]" : " " + name + " ", here ? Style::kStrong : Style::kFaint);
    if (here) {
      narrow.add("[" + name + "]", Style::kStrong);
    } else {
      narrow.add(" " + number + " ", Style::kFaint);
    }
  }
  Line chosen;
  if (ui.page == Page::kNow || ui.page == Page::kReplicas) {
    chosen.add("sort ", Style::kFaint).add(kSorts[ui.sort]);
  }
  if (ui.only_bad) chosen.add(" bad only", Style::kWarn);
  if (!ui.filter.empty()) chosen.add(" /" + cut(ui.filter, 16), Style::kWarn);
  return with_right(wide.width() <= cols ? wide : narrow, chosen, cols);
}

std::string count_of(std::size_t n, const std::string& word) {
  return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
}

/// What needs attention before the page is believed; a rule if nothing does.
Line banner(const Snapshot& snapshot, const UiState& ui, const Link& link, int cols) {
  Line line;
  if (link.stale) {
    std::string text = snapshot.has_tick
                           ? "STALE: nothing heard for " + duration_text(link.silent_s)
                           : std::string("no answer");
    if (!link.trouble.empty()) text += " (" + link.trouble + ")";
    text += link.again_in_s > 0 ? "; next attempt in " + duration_text(link.again_in_s + 0.99)
                                : "; connecting";
    return line.add(padded(text, cols), Style::kMarked);
  }
  if (ui.drain.step == DrainStep::kOffered) {
    const std::string text =
        "y drains " + cut(ui.drain.endpoint, 40) + ", any other key does not: " + ui.drain.outcome;
    return line.add(padded(text, cols), Style::kMarked);
  }
  if (ui.paused) return line.add(padded("PAUSED: p goes on", cols), Style::kMarked);
  if (!ui.note.empty()) return line.add(ui.note, Style::kWarn).fitted(cols);
  if (!snapshot.overrides.empty()) {
    const Override& first = snapshot.overrides.front();
    line.add(count_of(snapshot.overrides.size(), "override") + ": ", Style::kWarn);
    line.add(first.kind + " " + first.what + ", " + duration_text(first.left_s) + " left");
    return line.fitted(cols);
  }
  std::string rule;
  for (int i = 0; i < cols; ++i) rule += "─";
  return line.add(rule, Style::kFaint);
}

Line footer(const Snapshot& snapshot, const UiState& ui, int cols) {
  if (ui.typing) return Line("show only: " + ui.typed + "_", Style::kStrong).fitted(cols);
  constexpr std::string_view kWide =
      "1-6 page  s sort  / filter  b bad  u upstream  z zoom  p pause  ? help  q quit";
  constexpr std::string_view kNarrow = "1-6 page  ? help  q quit";
  std::string keys(cells(kWide) <= cols ? kWide : kNarrow);
  if (ui.page == Page::kReplicas && offers_actions(ui, snapshot)) keys = "d drain  " + keys;
  return Line(keys, Style::kFaint).fitted(cols);
}

Block page_lines(const PageInput& input) {
  if (input.ui.help) return help_page(input);
  switch (input.ui.page) {
    case Page::kNow:
      return now_page(input);
    case Page::kRefusals:
      return refusals_page(input);
    case Page::kLimit:
      return limit_page(input);
    case Page::kMemory:
      return memory_page(input);
    default:
      return events_page(input);
  }
}

}  // namespace

Frame render(const Snapshot& snapshot, const UiState& ui, const Link& link, ScreenSize size) {
  const int cols = std::clamp(size.cols, 1, 1000);
  const int rows = std::clamp(size.rows, 1, 1000);
  Frame frame;
  frame.lines = {verdict_line(snapshot, link, cols), next_line(snapshot, cols), tabs(ui, cols),
                 banner(snapshot, ui, link, cols)};
  const int head = static_cast<int>(frame.lines.size());
  const bool has_footer = !link.once && rows > head;
  const int body_rows = std::max(1, rows - head - (has_footer ? 1 : 0));
  const PageInput input{.snapshot = snapshot, .ui = ui, .cols = cols, .rows = body_rows};
  if (!snapshot.has_tick && !ui.help) {
    frame.lines.emplace_back("");
  } else if (ui.page == Page::kReplicas && !ui.help) {
    ReplicasBody body = replicas_page(input);
    append(frame.lines, body.lines);
    frame.scroll_max = body.scroll_max;
    frame.page_rows = body.page_rows;
  } else {
    const Block body = page_lines(input);
    frame.page_rows = body_rows;
    frame.scroll_max = std::max(0, static_cast<int>(body.size()) - body_rows);
    const int first = std::clamp(ui.scroll, 0, frame.scroll_max);
    frame.lines.insert(frame.lines.end(), body.begin() + first, body.end());
  }
  frame.lines.resize(static_cast<std::size_t>(rows - (has_footer ? 1 : 0)));
  if (has_footer) frame.lines.push_back(footer(snapshot, ui, cols));
  for (Line& line : frame.lines) line = line.fitted(cols);
  return frame;
}

}  // namespace weir::app::top
