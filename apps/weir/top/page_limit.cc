#include <algorithm>
#include <cmath>

#include "chart.h"
#include "numbers.h"
#include "pages.h"
#include "table.h"
#include "text.h"

namespace weir::app::top {
namespace {

std::string signed_text(double change) {
  return (change < 0 ? "-" : "+") + count_text(std::abs(change));
}

Block facts(const PageInput& input) {
  Block out;
  const UpstreamNow* one = shown_upstream(input.snapshot);
  if (one == nullptr) return {Line("waiting for the first second", Style::kFaint)};
  const Second& now = one->now;
  Line line;
  line.add(one->name, Style::kStrong).add(": limit ");
  line.add(count_text(now.limit), Style::kStrong);
  line.add(" of " + count_text(one->limit_min) + " to " + count_text(one->limit_max));
  if (!one->limit_reason.empty()) line.add(", last moved by " + one->limit_reason);
  out.push_back(line);
  const double demand = input.snapshot.limit.demand;
  out.emplace_back(
      "in flight " + count_text(now.in_flight) + " · waiting " + count_text(now.waiting) +
      " · demand " + count_text(demand) +
      (now.limit > 0 ? " (" + percent_text(demand / now.limit) + " of the limit)" : std::string()));
  std::string latency = "p50 " + millis_text(now.p50_ms) + " · p99 " + millis_text(now.p99_ms) +
                        " · baseline " + millis_text(now.baseline_ms);
  if (now.baseline_ms > 0) {
    latency += " (p50 is " + percent_text(now.p50_ms / now.baseline_ms) + " of it)";
  }
  out.emplace_back(latency);
  if (!input.snapshot.limit.sentence.empty()) {
    out.emplace_back(input.snapshot.limit.sentence, Style::kStrong);
  }
  return out;
}

Block history(const PageInput& input, int height) {
  const double most = std::max(largest(input.snapshot, &Second::limit),
                               largest(input.snapshot, &Second::in_flight));
  const double latency = std::max(largest(input.snapshot, &Second::p50_ms),
                                  largest(input.snapshot, &Second::baseline_ms));
  Block out = {heading(chart_title(input, input.cols), input.cols)};
  const Track tracks[] = {
      {"limit", &Second::limit, most, Style::kPlain, count_text},
      {"in flight", &Second::in_flight, most, Style::kGood, count_text},
      {"p50", &Second::p50_ms, latency, Style::kWarn, millis_text},
      {"baseline", &Second::baseline_ms, latency, Style::kFaint, millis_text},
  };
  for (const Track& track : tracks) append(out, track_lines(input, track, input.cols, height));
  return out;
}

/// A mark under the bin that holds the limit.
std::string limit_mark(const std::vector<KneeBin>& knee, double limit, int each) {
  std::size_t at = knee.size();
  for (std::size_t i = 0; i < knee.size(); ++i) {
    if (knee[i].in_flight <= limit) at = i;
  }
  if (limit <= 0 || at == knee.size()) return {};
  return std::string(at * static_cast<std::size_t>(each), ' ') + "▲ limit";
}

Block knee_chart(const PageInput& input, int cols, int height) {
  const std::vector<KneeBin>& knee = input.snapshot.limit.knee;
  Block out = {heading("answered and p99 over in flight", cols)};
  if (knee.empty()) {
    out.emplace_back("  not measured yet", Style::kFaint);
    return out;
  }
  constexpr int kLabel = 11;
  const int bins = static_cast<int>(std::min<std::size_t>(knee.size(), 64));
  const int each = std::clamp((cols - kLabel) / bins, 1, 4);
  std::vector<double> answered;
  std::vector<double> p99;
  for (int i = 0; i < bins; ++i) {
    for (int k = 0; k < each; ++k) {
      const KneeBin& bin = knee[static_cast<std::size_t>(i)];
      const bool gap = each > 1 && k == each - 1;
      answered.push_back(gap ? 0 : bin.answered_per_s);
      p99.push_back(gap ? 0 : bin.p99_ms);
    }
  }
  const auto draw = [&](std::string_view name, const std::vector<double>& values, int rows,
                        Style style, const std::string& most) {
    const double top = *std::max_element(values.begin(), values.end());
    const Block drawn = columns(values, top, rows, style);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const bool last = i + 1 == drawn.size();
      Line line(padded(last ? name : i == 0 ? std::string_view(most) : "", kLabel), Style::kFaint);
      out.push_back(line.add(drawn[i]).fitted(cols));
    }
  };
  const auto by = [&](auto member) {
    double most = 0;
    for (const KneeBin& bin : knee) most = std::max(most, bin.*member);
    return most;
  };
  draw("answered/s", answered, height, Style::kGood, rate_text(by(&KneeBin::answered_per_s)));
  draw("p99", p99, std::max(1, height - 1), Style::kWarn, millis_text(by(&KneeBin::p99_ms)));
  const UpstreamNow* one = shown_upstream(input.snapshot);
  const std::string mark = limit_mark(knee, one != nullptr ? one->now.limit : 0, each);
  out.push_back(Line(std::string(kLabel, ' ') + mark, Style::kStrong).fitted(cols));
  const std::string from = "in flight  " + count_text(knee.front().in_flight);
  const std::string to = count_text(knee.back().in_flight);
  const int gap = std::max(1, kLabel + bins * each - cells(from) - cells(to));
  out.push_back(Line(from + std::string(static_cast<std::size_t>(gap), ' ') + to, Style::kFaint)
                    .fitted(cols));
  return out;
}

Block moves(const PageInput& input, int cols) {
  Block out = {heading("moves of the limit, newest first", cols)};
  Table table({{.title = "ago", .width = 7},
               {.title = "from", .width = 6},
               {.title = "to", .width = 6},
               {.title = "change", .width = 7, .drop = 1},
               {.title = "reason", .width = 12, .right = false, .grows = true}});
  const std::vector<LimitMove>& all = input.snapshot.limit.moves;
  // The order on the wire is not promised.
  std::vector<LimitMove> newest = all;
  std::stable_sort(newest.begin(), newest.end(),
                   [](const LimitMove& a, const LimitMove& b) { return a.at > b.at; });
  for (const LimitMove& move : newest) {
    table.add(
        {{duration_text(std::max(0.0, input.snapshot.now - move.at)), Style::kFaint},
         {count_text(move.from)},
         {count_text(move.to)},
         {signed_text(move.to - move.from), move.to < move.from ? Style::kWarn : Style::kGood},
         {move.reason}});
  }
  if (table.empty()) {
    out.emplace_back("  it has not moved", Style::kFaint);
  } else {
    append(out, table.lines(cols));
  }
  return out;
}

}  // namespace

Block limit_page(const PageInput& input) {
  constexpr int kBesideFrom = 110;
  Block out = facts(input);
  for (Line& line : out) line = line.fitted(input.cols);
  const int height = std::clamp((input.rows - 14) / 8, 1, 4);
  append(out, history(input, height));
  if (input.cols >= kBesideFrom) {
    const int left = std::min(input.cols * 3 / 5, 11 + 32 * 4);
    append(out,
           beside(knee_chart(input, left, height + 2), moves(input, input.cols - left - 2), left));
  } else {
    append(out, knee_chart(input, input.cols, height + 1));
    append(out, moves(input, input.cols));
  }
  return out;
}

}  // namespace weir::app::top
