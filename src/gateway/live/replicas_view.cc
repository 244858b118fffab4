#include "live/replicas_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace weir::inline v0::gateway {
namespace {

constexpr double kSlow = 3;  // times the median of all: as the diagnosis judges

bool is_bad(const EndpointLine& line, const policy::CohortLatency& cohort) {
  const bool slow =
      cohort.median > Duration{} && to_millis(line.p50) > kSlow * to_millis(cohort.median);
  return !line.open || slow;
}

/// How bad a state is; more is worse.
int badness(const EndpointLine& line) {
  switch (line.state) {
    case policy::EndpointState::kHung:
      return 5;
    case policy::EndpointState::kEjected:
      return 4;
    case policy::EndpointState::kSuspect:
      return 3;
    case policy::EndpointState::kDraining:
      return 2;
    case policy::EndpointState::kReturning:
      return 1;
    case policy::EndpointState::kAvailable:
      return 0;
  }
  return 0;
}

/// How many replicas have a median below each bound.
LiveJson histogram(const LiveUpstream& upstream) {
  constexpr double kFactor = 1.25;
  constexpr std::size_t kBins = 64;
  std::array<std::uint32_t, kBins> counts{};
  for (const auto& line : upstream.endpoints.all()) {
    const double ms = to_millis(line->p50);
    if (ms <= 0) continue;
    const double at = std::log(std::max(ms, 0.05) / 0.05) / std::log(kFactor);
    ++counts[std::min(static_cast<std::size_t>(at), kBins - 1)];
  }
  LiveJson bins = LiveJson::array();
  for (std::size_t i = 0; i < kBins; ++i) {
    if (counts[i] == 0) continue;
    const double upper = 0.05 * std::pow(kFactor, static_cast<double>(i + 1));
    bins.push_back(LiveJson::array({number(upper), counts[i]}));
  }
  return bins;
}

LiveJson row_of_line(const EndpointLine& line, TimePoint now) {
  return LiveJson::array({line.number, line.label, name_of(line.state), name_of(line.reason),
                          static_cast<std::int64_t>(to_seconds(now - line.since)),
                          number(to_millis(line.p50)), number(to_millis(line.p99)), line.in_flight,
                          number(line.failures_per_s), line.hedges, line.hedge_wins, line.weight,
                          line.zone, line.second.samples == 0});
}

/// What decides whether a row has changed: that time passes is no change.
std::string without_age(LiveJson row) {
  constexpr std::size_t kSince = 4;
  row[kSince] = 0;
  return json_text(row);
}

}  // namespace

bool ReplicasView::matches(const EndpointLine& line) const {
  return line.label.find(query_.filter) != std::string::npos;
}

void ReplicasView::sort(std::vector<const EndpointLine*>& lines) const {
  const auto by = [&](const EndpointLine* a, const EndpointLine* b) {
    switch (query_.sort) {
      case ReplicaSort::kWorst:
        if (badness(*a) != badness(*b)) return badness(*a) > badness(*b);
        if (a->p50 != b->p50) return a->p50 > b->p50;
        break;
      case ReplicaSort::kP99:
        if (a->p99 != b->p99) return a->p99 > b->p99;
        break;
      case ReplicaSort::kInFlight:
        if (a->in_flight != b->in_flight) return a->in_flight > b->in_flight;
        break;
      case ReplicaSort::kName:
        if (a->label != b->label) return a->label < b->label;
        break;
    }
    return a->number < b->number;
  };
  const std::size_t wanted = std::min(lines.size(), query_.from + query_.rows);
  std::partial_sort(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(wanted), lines.end(),
                    by);
}

LiveJson ReplicasView::next(const LiveUpstream& upstream, TimePoint now) {
  std::vector<const EndpointLine*> lines;
  std::size_t bad = 0;
  for (const auto& line : upstream.endpoints.all()) {
    const bool is = is_bad(*line, upstream.cohort);
    if (is) ++bad;
    if ((is || !query_.bad) && matches(*line)) lines.push_back(line.get());
  }
  const std::size_t matching = lines.size();
  sort(lines);
  const std::size_t from = std::min(query_.from, matching);
  const std::size_t to = std::min(from + query_.rows, matching);
  LiveJson order = LiveJson::array();
  LiveJson rows = LiveJson::array();
  std::unordered_map<std::uint32_t, std::string> page;
  for (std::size_t i = from; i < to; ++i) {
    const EndpointLine& line = *lines[i];
    order.push_back(line.number);
    LiveJson row = row_of_line(line, now);
    std::string text = without_age(row);
    const auto before = sent_.find(line.number);
    if (before == sent_.end() || before->second != text) {
      LiveJson spark;
      if (before == sent_.end()) {
        spark = LiveJson::array();
        for (std::size_t s = 0; s < line.spark_ms.size(); ++s) {
          const LiveJson ms = number(static_cast<double>(line.spark_ms[s]));
          if (!spark.empty() || ms != 0) spark.push_back(ms);  // a page of idle ones stays short
        }
      }
      row.push_back(std::move(spark));
      rows.push_back(std::move(row));
    }
    page.emplace(line.number, std::move(text));
  }
  sent_ = std::move(page);
  return {{"total", upstream.endpoints.all().size()},
          {"bad", bad},
          {"matching", matching},
          {"from", from},
          {"cohort_p50_ms", number(to_millis(upstream.cohort.median))},
          {"cohort_p99_ms", number(to_millis(upstream.cohort.p99))},
          {"histogram", histogram(upstream)},
          {"order", std::move(order)},
          {"columns",
           {"id", "endpoint", "state", "reason", "since_s", "p50_ms", "p99_ms", "in_flight",
            "failures_per_s", "hedges", "hedge_wins", "weight", "zone", "quiet", "spark"}},
          {"rows", std::move(rows)}};
}

}  // namespace weir::inline v0::gateway
