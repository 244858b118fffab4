#include "live/endpoint_lines.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weir::inline v0::gateway {
namespace {

using Counters = upstream::EndpointCounters;
using Reading = upstream::LatencyCounts::Reading;

std::uint64_t failures_of(const upstream::Endpoint& endpoint) {
  return endpoint.sum([](const Counters& c) {
    std::uint64_t all = 0;
    for (std::size_t f = 1; f < upstream::kUpstreamFailureCount; ++f) all += c.failures[f].get();
    return all;
  });
}

Reading counts_of(upstream::Endpoint& endpoint) {
  Reading sum{};
  for (std::uint32_t i = 0; i < endpoint.loops(); ++i) endpoint.counters(i).latency.read(sum);
  return sum;
}

/// A new line; what was counted before is not of its first second.
std::unique_ptr<EndpointLine> line_for(upstream::Endpoint& endpoint) {
  auto line = std::make_unique<EndpointLine>();
  line->number = endpoint.number();
  line->label = endpoint.label();
  line->counts = counts_of(endpoint);
  line->failures = failures_of(endpoint);
  line->state = endpoint.health().state();
  return line;
}

}  // namespace

void EndpointLines::match(const upstream::EndpointSet& set, std::size_t most,
                          std::vector<EndpointChange>& changes) {
  const std::size_t count = std::min(set.members.size(), most);
  const auto same = [](const upstream::EndpointSet::Member& member, const auto& line) {
    return member.endpoint->number() == line->number;
  };
  const auto end = set.members.begin() + static_cast<std::ptrdiff_t>(count);
  if (std::equal(set.members.begin(), end, lines_.begin(), lines_.end(), same)) return;
  std::map<std::uint32_t, std::unique_ptr<EndpointLine>> before;
  for (auto& line : std::exchange(lines_, {})) before.emplace(line->number, std::move(line));
  for (std::size_t i = 0; i < count; ++i) {
    upstream::Endpoint& endpoint = *set.members[i].endpoint;
    auto known = before.extract(endpoint.number());
    if (known.empty() && begun_)
      changes.push_back({.endpoint = endpoint.label(), .text = "joined"});
    lines_.push_back(known.empty() ? line_for(endpoint) : std::move(known.mapped()));
  }
  for (const auto& [number, line] : before) {
    changes.push_back({.endpoint = line->label, .text = "left"});
  }
}

std::vector<EndpointChange> EndpointLines::read(const upstream::EndpointSet& set, TimePoint now,
                                                double seconds, std::size_t most) {
  std::vector<EndpointChange> changes;
  match(set, most, changes);
  begun_ = true;
  Reading all{};
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const upstream::EndpointSet::Member& member = set.members[i];
    upstream::Endpoint& endpoint = *member.endpoint;
    EndpointLine& line = *lines_[i];
    line.zone = member.zone;
    line.weight = member.weight;
    line.open = endpoint.open();
    const policy::EndpointHealth health = endpoint.health();
    if (health.state() != line.state) {
      changes.push_back({.endpoint = line.label,
                         .text = std::string(name_of(line.state)) + " to " +
                                 std::string(name_of(health.state())) + ": " +
                                 std::string(name_of(health.reason()))});
    }
    line.state = health.state();
    line.reason = health.reason();
    line.since = std::min(health.since(), now);
    const Reading counts = counts_of(endpoint);
    const Reading news = upstream::difference(counts, line.counts);
    line.counts = counts;
    line.second = upstream::summarize(news);
    for (std::size_t b = 0; b < all.size(); ++b) {
      all[b] += news[b];
      line.compared_counts[b] += news[b];
    }
    const upstream::LatencySummary compared = upstream::summarize(line.compared_counts);
    if (line.compared.on_second(compared.samples, compared.p50)) line.compared_counts = {};
    line.spark_ms.push(static_cast<float>(to_millis(line.second.p50)));
    if (line.second.samples > 0) {
      line.p50 = line.second.p50;
      line.p99 = line.second.p99;
    }
    line.in_flight = endpoint.in_flight();
    const std::uint64_t failures = failures_of(endpoint);
    line.failures_per_s = static_cast<double>(failures - std::exchange(line.failures, failures)) /
                          std::max(seconds, 1e-3);
    line.hedges = endpoint.sum([](const Counters& c) { return c.hedges.get(); });
    line.hedge_wins = endpoint.sum([](const Counters& c) { return c.hedge_wins.get(); });
  }
  second_ = upstream::summarize(all);
  return changes;
}

control::ReplicaSpread EndpointLines::spread() const {
  control::ReplicaSpread spread;
  std::vector<Duration> latencies;
  for (const auto& line : lines_) {
    const bool by_operator = line->state == policy::EndpointState::kDraining &&
                             line->reason == policy::HealthReason::kOperator;
    if (by_operator) continue;
    ++spread.replicas;
    if (line->open) ++spread.open;
    latencies.push_back(line->compared.median());
  }
  spread.worst = control::worst_of(std::move(latencies));
  return spread;
}

}  // namespace weir::inline v0::gateway
