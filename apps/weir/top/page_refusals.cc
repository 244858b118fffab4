#include <algorithm>

#include "numbers.h"
#include "pages.h"
#include "table.h"
#include "text.h"

namespace weir::app::top {
namespace {

Cell rate_cell(double per_s, Style style = Style::kPlain) {
  return per_s > 0 ? Cell{rate_text(per_s), style} : Cell{"·", Style::kFaint};
}

Block matrix(const PageInput& input) {
  const RefusalsPage& page = input.snapshot.refusals;
  double all = 0;
  for (const ReasonRow& row : page.reasons) all += row.sum;
  Block out = {heading("refused, " + rate_text(all) + " over the last 10 s", input.cols)};
  if (page.reasons.empty()) {
    out.emplace_back("  nothing is refused", Style::kGood);
    return out;
  }
  std::vector<Column> columns = {{.title = "reason", .width = 14, .right = false, .grows = true}};
  const std::size_t classes = std::min(kClassesMax, input.snapshot.classes.size());
  for (std::size_t i = 0; i < classes; ++i) {
    columns.push_back(
        {.title = input.snapshot.classes[i], .width = 8, .drop = static_cast<int>(i) + 2});
  }
  columns.push_back({.title = "all", .width = 8});
  columns.push_back({.title = "share", .width = 6, .drop = 1});
  columns.push_back({.title = "would refuse (shadow)", .width = 21, .drop = 7});
  Table table(columns);
  for (const ReasonRow& row : page.reasons) {
    std::vector<Cell> cells = {{row.reason, Style::kStrong}};
    for (std::size_t i = 0; i < classes; ++i) {
      // A refused critical request is what must not happen.
      const bool critical = input.snapshot.classes[i] == "critical";
      cells.push_back(rate_cell(row.by_class[i], critical ? Style::kBad : Style::kPlain));
    }
    cells.push_back(rate_cell(row.sum, Style::kBad));
    cells.push_back({all > 0 ? percent_text(row.sum / all) : "-"});
    cells.push_back(rate_cell(row.shadow, Style::kWarn));
    table.add(std::move(cells));
  }
  append(out, table.lines(input.cols));
  return out;
}

Block parties(const PageInput& input, std::string_view title, const std::vector<RefusedParty>& all,
              int cols) {
  Table table({{.title = title, .width = 12, .right = false, .grows = true},
               {.title = "refused", .width = 8},
               {.title = "sum", .width = 7, .drop = 2},
               {.title = "in flight", .width = 9, .drop = 1},
               {.title = "bytes", .width = 8, .drop = 4},
               {.title = "since", .width = 7, .drop = 3}});
  for (const RefusedParty& one : all) {
    const std::string& name = one.name.empty() ? one.id : one.name;
    if (!passes_filter(input.ui, name)) continue;
    if (input.ui.only_bad && one.refused_per_s <= 0) continue;
    table.add({{name},
               rate_cell(one.refused_per_s, Style::kBad),
               {count_text(one.refused)},
               {count_text(one.in_flight)},
               {bytes_text(one.bytes)},
               {duration_text(one.since_s)}});
  }
  Block out = {heading(std::string(title) + " by refusals", cols)};
  if (table.empty()) {
    out.emplace_back("  none", Style::kFaint);
  } else {
    append(out, table.lines(cols));
  }
  return out;
}

Block decisions(const PageInput& input) {
  Block out = {heading("refused a moment ago (/explain?id= tells more)", input.cols)};
  Table table({{.title = "age", .width = 7},
               {.title = "class", .width = 8, .right = false},
               {.title = "reason", .width = 16, .right = false, .grows = true},
               {.title = "in flight|limit", .width = 15, .drop = 1},
               {.title = "waited", .width = 7, .drop = 2},
               {.title = "id", .width = 10, .right = false, .drop = 3, .grows = true}});
  for (const Decision& one : input.snapshot.refusals.recent) {
    if (!passes_filter(input.ui, one.reason) && !passes_filter(input.ui, one.id)) continue;
    table.add({{millis_text(one.age_ms), Style::kFaint},
               {one.priority},
               {one.reason},
               {count_text(one.in_flight) + "|" + count_text(one.limit)},
               {millis_text(one.waited_ms)},
               {one.id, Style::kFaint}});
  }
  if (table.empty()) {
    out.emplace_back("  none", Style::kFaint);
  } else {
    append(out, table.lines(input.cols));
  }
  return out;
}

}  // namespace

Block refusals_page(const PageInput& input) {
  constexpr int kBesideFrom = 120;
  Block out = matrix(input);
  if (input.snapshot.critical_shed > 0) {
    out.emplace_back("critical requests refused since the start: " +
                         count_text(input.snapshot.critical_shed) + "; this must stay 0",
                     Style::kBad);
  }
  const RefusalsPage& page = input.snapshot.refusals;
  if (input.cols >= kBesideFrom) {
    const int left = input.cols / 2 - 1;
    append(out, beside(parties(input, "actors", page.actors, left),
                       parties(input, "peers", page.peers, input.cols - left - 2), left));
  } else {
    append(out, parties(input, "actors", page.actors, input.cols));
    append(out, parties(input, "peers", page.peers, input.cols));
  }
  append(out, decisions(input));
  return out;
}

}  // namespace weir::app::top
