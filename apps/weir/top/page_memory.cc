#include <algorithm>

#include "chart.h"
#include "numbers.h"
#include "pages.h"
#include "table.h"
#include "text.h"

namespace weir::app::top {
namespace {

Block summary(const PageInput& input) {
  const Snapshot& snapshot = input.snapshot;
  constexpr int kGauge = 22;
  Line line("memory ");
  if (snapshot.memory_readable) {
    line.add(gauge(snapshot.memory_share, kGauge, percent_text(snapshot.memory_share)));
    line.add(" of machine or container");
  } else {
    line.add("of the machine cannot be read", Style::kWarn);
  }
  Block out = {line.add(" · this gateway's ceiling " + bytes_text(snapshot.ceiling_bytes))};
  Line pools("pressure: ");
  pools.add(snapshot.pressure.empty() ? "-" : snapshot.pressure, style_of_state(snapshot.pressure));
  const MemoryPage& page = snapshot.memory;
  if (page.cgroup_limit > 0) {
    const double others = std::max(0.0, page.cgroup_used - page.cgroup_mine);
    pools.add(" · container " + bytes_text(page.cgroup_used) + " of " +
              bytes_text(page.cgroup_limit) + ": mine " + bytes_text(page.cgroup_mine) +
              ", others " + bytes_text(others));
  }
  out.push_back(pools);
  return out;
}

Block pools(const PageInput& input, int cols) {
  constexpr int kGauge = 14;
  Table table({{.title = "pool", .width = 14, .right = false, .grows = true},
               {.title = "used", .width = kGauge, .right = false},
               {.title = "peak", .width = 6, .drop = 1},
               {.title = "of", .width = 6},
               {.title = "exhausted", .width = 9},
               {.title = "each", .width = 8, .drop = 2}});
  std::vector<PoolNow> all = input.snapshot.memory.pools;
  const auto fullness = [](const PoolNow& one) {
    return one.capacity > 0 ? one.peak / one.capacity : 0;
  };
  std::stable_sort(all.begin(), all.end(), [&](const PoolNow& a, const PoolNow& b) {
    return a.exhausted != b.exhausted ? a.exhausted > b.exhausted : fullness(a) > fullness(b);
  });
  for (const PoolNow& one : all) {
    if (!passes_filter(input.ui, one.name)) continue;
    if (input.ui.only_bad && one.exhausted <= 0) continue;
    const double share = one.capacity > 0 ? one.used / one.capacity : 0;
    table.add(
        {{one.name},
         {gauge(share, kGauge, count_text(one.used)), share >= 0.8 ? Style::kWarn : Style::kPlain},
         {count_text(one.peak)},
         {count_text(one.capacity)},
         {count_text(one.exhausted), one.exhausted > 0 ? Style::kBad : Style::kFaint},
         {one.bytes_each > 0 ? bytes_text(one.bytes_each) : ""}});
  }
  Block out = {heading("pools, fullest first", cols)};
  if (table.empty()) {
    out.emplace_back("  none", Style::kFaint);
  } else {
    append(out, table.lines(cols));
  }
  return out;
}

Block addends(const PageInput& input, int cols) {
  constexpr int kGauge = 12;
  std::vector<Addend> all = input.snapshot.memory.addends;
  std::stable_sort(all.begin(), all.end(),
                   [](const Addend& a, const Addend& b) { return a.bytes > b.bytes; });
  double sum = 0;
  for (const Addend& one : all) sum += one.bytes;
  Table table({{.title = "at most", .width = 8},
               {.title = "share", .width = kGauge, .right = false, .drop = 1},
               {.title = "for", .width = 16, .right = false, .grows = true},
               {.title = "that is", .width = 10, .right = false, .drop = 2, .grows = true}});
  for (const Addend& one : all) {
    if (!passes_filter(input.ui, one.name)) continue;
    table.add({{bytes_text(one.bytes), Style::kStrong},
               {gauge(sum > 0 ? one.bytes / sum : 0, kGauge)},
               {one.name},
               {one.note, Style::kFaint}});
  }
  Block out = {heading("what adds up to the ceiling", cols)};
  if (table.empty()) {
    out.emplace_back("  none", Style::kFaint);
  } else {
    append(out, table.lines(cols));
  }
  return out;
}

}  // namespace

Block memory_page(const PageInput& input) {
  constexpr int kBesideFrom = 120;
  Block out;
  for (const Line& line : summary(input)) out.push_back(line.fitted(input.cols));
  if (input.cols >= kBesideFrom) {
    const int left = input.cols * 45 / 100;
    append(out, beside(pools(input, left), addends(input, input.cols - left - 2), left));
  } else {
    append(out, pools(input, input.cols));
    append(out, addends(input, input.cols));
  }
  if (!input.snapshot.memory.hints.empty()) {
    out.push_back(heading("to need less", input.cols));
    for (const std::string& hint : input.snapshot.memory.hints) {
      out.push_back(Line("  " + hint).fitted(input.cols));
    }
  }
  return out;
}

}  // namespace weir::app::top
