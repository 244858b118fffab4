#include <algorithm>

#include "chart.h"
#include "numbers.h"
#include "pages.h"
#include "table.h"
#include "text.h"

namespace weir::app::top {
namespace {

Block summary(const PageInput& input) {
  const ReplicasPage& page = input.snapshot.replicas;
  Line line;
  line.add(input.snapshot.upstream, Style::kStrong);
  line.add(": " + count_text(page.total) + " replicas, ");
  line.add(count_text(page.bad) + " bad", page.bad > 0 ? Style::kBad : Style::kGood);
  line.add(" · all together p50 " + millis_text(page.cohort_p50_ms) + ", p99 " +
           millis_text(page.cohort_p99_ms));
  if (page.matching != page.total) line.add(" · " + count_text(page.matching) + " chosen");
  Block out = {line.fitted(input.cols)};
  std::vector<double> bars;
  for (const HistogramBin& bin : page.histogram) {
    bars.push_back(bin.replicas);
    bars.push_back(bin.replicas);
  }
  if (bars.empty()) return out;
  const double most = *std::max_element(bars.begin(), bars.end());
  Line chart("replicas by p50: up to " + millis_text(page.histogram.front().p50_ms_upper) + " ",
             Style::kFaint);
  chart.add(columns(bars, most, 1, Style::kPlain).front());
  chart.add(" up to " + millis_text(page.histogram.back().p50_ms_upper), Style::kFaint);
  out.push_back(chart.fitted(input.cols));
  return out;
}

Style style_against(double value, double cohort) {
  if (cohort > 0 && value > 3 * cohort) return Style::kBad;
  return cohort > 0 && value > 1.5 * cohort ? Style::kWarn : Style::kPlain;
}

std::string spark_text(const Replica& replica) {
  const std::vector<double> values(replica.spark.begin(), replica.spark.end());
  if (values.empty()) return {};
  const double top = *std::max_element(values.begin(), values.end());
  return columns(values, top, 1, Style::kPlain).front().plain();
}

std::vector<Cell> row_of(const Replica& one, const ReplicasPage& page) {
  std::string against = "-";
  if (page.cohort_p50_ms > 0 && one.p50_ms > 0) {
    against = count_text(one.p50_ms / page.cohort_p50_ms) + "×";
  }
  std::string hedges = count_text(one.hedge_wins) + "/" + count_text(one.hedges);
  return {{one.endpoint, Style::kStrong},
          {one.state, style_of_state(one.state)},
          {one.reason},
          {duration_text(one.since_s), Style::kFaint},
          {millis_text(one.p50_ms), style_against(one.p50_ms, page.cohort_p50_ms)},
          {against, style_against(one.p50_ms, page.cohort_p50_ms)},
          {millis_text(one.p99_ms), style_against(one.p99_ms, page.cohort_p99_ms)},
          {count_text(one.in_flight)},
          {rate_text(one.failures_per_s), one.failures_per_s > 0 ? Style::kBad : Style::kPlain},
          {hedges},
          {count_text(one.weight)},
          {one.zone},
          {spark_text(one), Style::kFaint}};
}

}  // namespace

ReplicasBody replicas_page(const PageInput& input) {
  const ReplicasPage& page = input.snapshot.replicas;
  ReplicasBody body;
  body.lines = summary(input);
  const int matching = static_cast<int>(std::clamp(page.matching, 0.0, 1e6));
  const int from = static_cast<int>(std::clamp(page.from, 0.0, 1e6));
  const int here = static_cast<int>(page.order.size());
  body.page_rows = std::max(1, input.rows - static_cast<int>(body.lines.size()) - 1);
  body.scroll_max = std::max(0, std::max(matching, from + here) - 1);
  // The chosen row stands in the middle, but the list does not end before the screen does.
  const int chosen = std::clamp(input.ui.scroll, 0, body.scroll_max);
  const int last_first = std::max(0, body.scroll_max + 1 - body.page_rows);
  const int first = std::clamp(chosen - body.page_rows / 2, 0, last_first);
  Table table({{.title = "replica", .width = 18, .right = false, .grows = true},
               {.title = "state", .width = 9, .right = false},
               {.title = "reason", .width = 8, .right = false, .drop = 2, .grows = true},
               {.title = "since", .width = 7, .drop = 5},
               {.title = "p50", .width = 7},
               {.title = "of all", .width = 6, .drop = 4},
               {.title = "p99", .width = 7, .drop = 1},
               {.title = "in flight", .width = 9, .drop = 6},
               {.title = "failures", .width = 8, .drop = 3},
               {.title = "hedges won", .width = 10, .drop = 8},
               {.title = "weight", .width = 6, .drop = 9},
               {.title = "zone", .width = 6, .right = false, .drop = 7},
               {.title = "p50, the last 20 s", .width = 20, .right = false, .drop = 10}});
  for (int i = first; i < first + body.page_rows && i <= body.scroll_max; ++i) {
    const int at = i - from;
    if (at < 0 || at >= here) continue;  // asked for, on its way
    const auto found = page.known.find(page.order[static_cast<std::size_t>(at)]);
    if (found != page.known.end()) table.add(row_of(found->second, page), i == chosen);
  }
  if (table.empty()) {
    const bool filtered = !input.ui.filter.empty() || input.ui.only_bad;
    body.lines.emplace_back(
        page.total > 0 && filtered ? "  no replica passes the filter" : "  no replica is known yet",
        Style::kFaint);
  } else {
    append(body.lines, table.lines(input.cols));
  }
  return body;
}

}  // namespace weir::app::top
