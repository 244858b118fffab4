#include "live/live_views.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/byte_size.h"
#include "weir/experimental/config/diff.h"
#include "weir/experimental/config/print.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/memory_reader.h"

namespace weir::inline v0::gateway {
namespace {

LiveJson parties(const RefusedParties& all) {
  LiveJson rows = LiveJson::array();
  for (const RefusedParty& one : all.top()) {
    // The id is text: JSON readers round large numbers.
    rows.push_back({{"id", std::to_string(one.row.id)},
                    {"name", one.row.label},
                    {"in_flight", one.row.in_flight},
                    {"bytes", one.row.bytes},
                    {"refused", one.row.refused},
                    {"refused_per_s", number(one.refused_per_s)},
                    {"since_s", one.since_s}});
  }
  return rows;
}

/// What the ceiling would be less with other values of single options.
LiveJson hints(const GatewayView& view) {
  constexpr std::uint64_t kWorthIt = 1024 * 1024;
  const config::Config now = view.config();
  LiveJson found = LiveJson::array();
  const auto with = [&](std::string_view option, std::uint64_t value, auto change) {
    config::Config other = now;
    change(other);
    if (!other.validate().empty()) return;
    const std::uint64_t bytes = gateway_budget(other).total_bytes();
    if (bytes + kWorthIt > view.budget.total_bytes()) return;
    found.push_back(to_human(ByteSize(view.budget.total_bytes() - bytes)) + " less if " +
                    std::string(option) + " is " + std::to_string(value));
  };
  with("server.max_connections", now.server.max_connections / 2,
       [](config::Config& c) { c.server.max_connections /= 2; });
  with("server.tcp_write_buffer_pool_size", now.server.tcp_write_buffer_pool_size / 2,
       [](config::Config& c) { c.server.tcp_write_buffer_pool_size /= 2; });
  with("server.http2_sessions_max", now.server.http2_sessions_max / 2,
       [](config::Config& c) { c.server.http2_sessions_max /= 2; });
  with("reload.upstreams_spare", 0, [](config::Config& c) { c.reload.upstreams_spare = 0; });
  return found;
}

}  // namespace

LiveJson refusals_view(const LiveSampler& sampler, const LiveUpstream& upstream) {
  LiveJson matrix = LiveJson::object();
  LiveJson shadow = LiveJson::object();
  const auto& readings = upstream.refusals;
  if (readings.size() > 1) {
    const LiveUpstream::Refusals& first = readings[0];
    const LiveUpstream::Refusals& last = readings.back();
    const auto seconds = static_cast<double>(readings.size() - 1);
    const auto rate = [seconds](std::uint64_t now, std::uint64_t before) {
      return number(static_cast<double>(now - std::min(now, before)) / seconds);
    };
    for (std::size_t i = 1; i < kReasonCount; ++i) {
      const std::string name(kReasonFacts[i].name);
      if (last.by_class[i] != first.by_class[i]) {
        for (const Priority p : kPriorities) {
          const std::size_t c = index_of(p);
          matrix[name][std::string(name_of(p))] = rate(last.by_class[i][c], first.by_class[i][c]);
        }
      }
      if (last.shadow[i] > first.shadow[i]) shadow[name] = rate(last.shadow[i], first.shadow[i]);
    }
    for (std::size_t i = 0; i < GatewayReason::kOwnCount; ++i) {
      if (last.own[i] <= first.own[i]) continue;
      const std::string name(GatewayReason::at(kReasonCount + i).name());
      matrix[name] = {{"any", rate(last.own[i], first.own[i])}};
    }
  }
  return {{"matrix", std::move(matrix)},
          {"shadow", std::move(shadow)},
          {"actors", parties(sampler.actors())},
          {"peers", parties(sampler.peers())},
          {"recent", LiveJson::array()}};
}

LiveJson limit_view(const LiveUpstream& upstream) {
  LiveJson moves = LiveJson::array();
  const auto& moved = upstream.history.moves();
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moves.push_back({{"t", moved[i].unix_seconds},
                     {"from", moved[i].from},
                     {"to", moved[i].to},
                     {"reason", name_of(moved[i].reason)}});
  }
  const std::vector<KneePoint> points = upstream.history.knee();
  LiveJson knee = LiveJson::array();
  for (const KneePoint& point : points) {
    knee.push_back(LiveJson::array({number(point.in_flight), number(point.answered),
                                    number(point.p99_ms), number(point.seconds)}));
  }
  const policy::ScopeSecond& s = upstream.second;
  const double refused = s.refused_limit + s.refused_client + s.refused_memory + s.refused_own;
  return {{"demand", number(s.in_flight + s.waiting + refused * s.latency_ms / 1000)},
          {"moves", std::move(moves)},
          {"knee", std::move(knee)},
          {"sentence", knee_sentence(points)}};
}

LiveJson memory_view(const GatewayView& view, bool first) {
  LiveJson json = LiveJson::object();
  if (first) {
    LiveJson addends = LiveJson::array();
    for (const MemoryAddend& one : view.budget.addends) {
      if (one.bytes() == 0) continue;
      addends.push_back({{"name", one.holder}, {"bytes", one.bytes()}, {"note", one.note}});
    }
    json["addends"] = std::move(addends);
  }
  LiveJson pools = LiveJson::array();
  for (const NamedPool& pool : pools_of(view, view.server_stats())) {
    pools.push_back({{"name", pool.name},
                     {"used", pool.stats.used},
                     {"peak", pool.stats.peak},
                     {"capacity", pool.stats.capacity},
                     {"exhausted", pool.stats.exhausted},
                     {"bytes_each", 0}});
  }
  json["pools"] = std::move(pools);
  const io::MemoryReading reading = io::read_memory();
  json["cgroup"] = {{"limit", reading.limit_bytes},
                    {"used", reading.used_bytes},
                    {"mine", io::own_resident_bytes()}};
  if (first) json["hints"] = hints(view);
  return json;
}

LiveJson config_view(const GatewayView& view) {
  const config::Config now = view.config();
  LiveJson changed = LiveJson::array();
  for (const config::ConfigChange& change : config::diff(view.config_at_start, now)) {
    changed.push_back(change.key);
  }
  return {{"text", config::print_config(now)},
          {"changed_since_start", std::move(changed)},
          {"needs_restart", view.waiting_for_restart()}};
}

}  // namespace weir::inline v0::gateway
