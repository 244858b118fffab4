#include <algorithm>

#include "chart.h"
#include "numbers.h"
#include "pages.h"
#include "table.h"
#include "text.h"

namespace weir::app::top {
namespace {

int badness(std::string_view state) {
  return state == "HEALTHY" ? 0 : state == "PRESSURED" ? 1 : 2;
}

std::vector<const UpstreamNow*> chosen(const PageInput& input) {
  std::vector<const UpstreamNow*> out;
  for (const UpstreamNow& one : input.snapshot.now_of) {
    if (input.ui.only_bad && badness(one.state) == 0) continue;
    if (passes_filter(input.ui, one.name)) out.push_back(&one);
  }
  const std::string_view sort = kSorts[input.ui.sort];
  std::stable_sort(out.begin(), out.end(), [sort](const UpstreamNow* a, const UpstreamNow* b) {
    if (sort == "name") return a->name < b->name;
    if (sort == "p99") return a->now.p99_ms > b->now.p99_ms;
    if (sort == "in_flight") return a->now.in_flight > b->now.in_flight;
    const int worse = badness(a->state) - badness(b->state);
    return worse != 0 ? worse > 0 : a->now.refused > b->now.refused;
  });
  return out;
}

Line evidence(const Snapshot& snapshot) {
  const VerdictNow& verdict = snapshot.verdict;
  Line line;
  line.add(verdict.upstream, Style::kStrong);
  line.add(": offered " + rate_text(verdict.offered));
  if (verdict.usual_offered > 0) line.add(" (usual " + count_text(verdict.usual_offered) + ")");
  line.add(" · answered " + rate_text(verdict.answered));
  if (verdict.best_answered > 0) line.add(" (best " + count_text(verdict.best_answered) + ")");
  line.add(" · " + millis_text(verdict.latency_ms));
  if (verdict.usual_latency_ms > 0) {
    line.add(" (usual " + millis_text(verdict.usual_latency_ms) + ")");
  }
  return line;
}

std::string spark_text(const Snapshot& snapshot, const std::string& name) {
  const auto found = snapshot.spark.find(name);
  if (found == snapshot.spark.end()) return {};
  const std::vector<double> values(found->second.offered.begin(), found->second.offered.end());
  if (values.empty()) return {};
  const double top = *std::max_element(values.begin(), values.end());
  return columns(values, top, 1, Style::kPlain).front().plain();
}

Block upstream_table(const PageInput& input) {
  constexpr int kSparkFrom = 170;
  constexpr int kGauge = 18;
  std::vector<Column> columns = {
      {.title = "upstream", .width = 10, .right = false, .grows = true},
      {.title = "state", .width = 10, .right = false},
      {.title = "offered", .width = 7},
      {.title = "admitted", .width = 8, .drop = 3},
      {.title = "refused", .width = 7},
      {.title = "failed", .width = 6, .drop = 4},
      {.title = "in flight|limit", .width = kGauge, .right = false, .drop = 1},
      {.title = "p50", .width = 7, .drop = 5},
      {.title = "p99", .width = 7, .drop = 2},
      {.title = "waiting", .width = 7, .drop = 8},
      {.title = "replicas", .width = 9, .drop = 7},
      {.title = "why", .width = 6, .right = false, .drop = 6, .grows = true},
  };
  if (input.cols >= kSparkFrom) {
    columns.push_back(
        {.title = "offered, the last 60 s", .width = 22, .right = false, .drop = 9, .grows = true});
  }
  Table table(columns);
  for (const UpstreamNow* one : chosen(input)) {
    const Second& now = one->now;
    const std::string inside = count_text(now.in_flight) + "|" + count_text(now.limit);
    const double share = now.limit > 0 ? now.in_flight / now.limit : 0;
    std::string why = one->cause;
    if (!one->limit_reason.empty()) why += ", limit: " + one->limit_reason;
    const bool replica_out = one->replicas_open < one->replicas;
    table.add({{one->name, one->name == input.snapshot.upstream ? Style::kStrong : Style::kPlain},
               {one->state, style_of_state(one->state)},
               {rate_text(now.offered)},
               {rate_text(now.admitted)},
               {rate_text(now.refused), now.refused > 0 ? Style::kBad : Style::kPlain},
               {rate_text(now.failed), now.failed > 0 ? Style::kBad : Style::kPlain},
               {gauge(share, kGauge, inside), share >= 0.95 ? Style::kWarn : Style::kPlain},
               {millis_text(now.p50_ms)},
               {millis_text(now.p99_ms)},
               {count_text(now.waiting)},
               {count_text(one->replicas_open) + "/" + count_text(one->replicas),
                replica_out ? Style::kWarn : Style::kPlain},
               {why},
               {spark_text(input.snapshot, one->name), Style::kFaint}});
  }
  if (table.empty()) return {Line("  no upstream passes the filter", Style::kFaint)};
  return table.lines(input.cols);
}

Block charts(const PageInput& input, int cols, int height) {
  const double offered = largest(input.snapshot, &Second::offered);
  const double limit = std::max(largest(input.snapshot, &Second::limit),
                                largest(input.snapshot, &Second::in_flight));
  const double p99 = largest(input.snapshot, &Second::p99_ms);
  Block out = {heading(chart_title(input, cols), cols)};
  const Track tracks[] = {
      {"offered", &Second::offered, offered, Style::kPlain, rate_text},
      {"admitted", &Second::admitted, offered, Style::kGood, rate_text},
      {"refused", &Second::refused, offered, Style::kBad, rate_text},
      {"in flight", &Second::in_flight, limit, Style::kPlain, count_text},
      {"limit", &Second::limit, limit, Style::kFaint, count_text},
      {"p50", &Second::p50_ms, p99, Style::kPlain, millis_text},
      {"p99", &Second::p99_ms, p99, Style::kWarn, millis_text},
  };
  for (const Track& track : tracks) append(out, track_lines(input, track, cols, height));
  return out;
}

}  // namespace

Block now_page(const PageInput& input) {
  constexpr int kBesideFrom = 150;
  Block out;
  if (!input.snapshot.verdict.upstream.empty()) {
    out.push_back(evidence(input.snapshot).fitted(input.cols));
  }
  append(out, upstream_table(input));
  const int left = input.rows - static_cast<int>(out.size());
  const bool side = input.cols >= kBesideFrom;
  // Events below the charts want a title and three lines; 7 charts have a title.
  const int height = std::clamp((left - (side ? 1 : 5)) / 7, 1, 6);
  const int chart_cols = side ? input.cols * 3 / 5 : input.cols;
  const Block drawn = charts(input, chart_cols, height);
  const int event_cols = side ? input.cols - chart_cols - 2 : input.cols;
  const int event_rows = side ? static_cast<int>(drawn.size()) - 1
                              : std::max(3, left - static_cast<int>(drawn.size()) - 1);
  Block events = {heading("events", event_cols)};
  append(events, event_lines(input, event_rows, event_cols));
  if (side) {
    append(out, beside(drawn, events, chart_cols));
  } else {
    append(out, drawn);
    append(out, events);
  }
  return out;
}

}  // namespace weir::app::top
