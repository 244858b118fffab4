#include "live/live_feed.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/experimental/gateway/version.h"

#include "admin_server.h"
#include "live/live_views.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::size_t kSparkSeconds = 60;

LiveJson measured(float value) {
  return number(static_cast<double>(value));
}

LiveJson row_json(const UpstreamRow& row) {
  return LiveJson::array({measured(row.offered), measured(row.admitted), measured(row.refused),
                          measured(row.failed), measured(row.in_flight), measured(row.waiting),
                          measured(row.limit), measured(row.p50_ms), measured(row.p99_ms),
                          measured(row.baseline_ms), facts_of(row.cause).name});
}

LiveJson events_json(const std::vector<LiveEvent>& events) {
  LiveJson list = LiveJson::array();
  for (const LiveEvent& event : events) {
    list.push_back({{"t", event.unix_seconds},
                    {"kind", name_of(event.kind)},
                    {"upstream", event.upstream},
                    {"text", event.text}});
  }
  return list;
}

LiveJson upstream_json(const LiveUpstream& upstream) {
  const UpstreamRow& row = upstream.history.rows().back();
  const control::ReplicaSpread spread = upstream.endpoints.spread();
  return {{"name", upstream.name},
          {"state", state_text(upstream.scope.state)},
          {"cause", facts_of(upstream.diagnosis.cause).name},
          {"for_s", upstream.cause_seconds},
          {"offered", measured(row.offered)},
          {"admitted", measured(row.admitted)},
          {"refused", measured(row.refused)},
          {"failed", measured(row.failed)},
          {"in_flight", upstream.scope.in_flight},
          {"waiting", upstream.scope.waiting},
          {"limit", upstream.scope.limit},
          {"limit_min", upstream.scope.limit_min},
          {"limit_max", upstream.scope.limit_max},
          {"limit_reason", name_of(upstream.scope.limit_reason)},
          {"p50_ms", measured(row.p50_ms)},
          {"p99_ms", measured(row.p99_ms)},
          {"baseline_ms", measured(row.baseline_ms)},
          {"replicas", spread.replicas},
          {"replicas_open", spread.open}};
}

LiveJson totals_json(const GatewayView& view, const ServerStats& server) {
  const RequestTotals totals = view.core.totals();
  return {{"received", totals.received},
          {"answered", totals.answered},
          {"refused", totals.refused},
          {"aborted", totals.aborted},
          {"active", totals.active()},
          {"critical_shed", view.core.controller.stats().critical_shed + server.critical_shed +
                                totals.critical_shed}};
}

std::string message(std::string_view event, std::uint64_t id, const LiveJson& data) {
  return "event: " + std::string(event) + "\nid: " + std::to_string(id) +
         "\ndata: " + json_text(data) + "\n\n";
}

AdminPage bad_request(std::string error) {
  return {.status = 400, .body = json_text({{"error", std::move(error)}}) + "\n"};
}

std::string not_an_upstream(const LiveSampler& sampler) {
  std::string text = "upstream: one of";
  for (const auto& one : sampler.upstreams()) text += " " + one->name;
  return text;
}

}  // namespace

LiveFeed::LiveFeed(const GatewayView& view, const LiveSampler& sampler, const LiveQuery& query)
    : view_(view), sampler_(sampler), query_(query), replicas_(query) {}

std::string LiveFeed::next() {
  std::string text;
  if (!std::exchange(begun_, true)) text = message("hello", sampler_.seconds(), hello());
  return text + message("tick", sampler_.seconds(), tick());
}

LiveJson LiveFeed::hello() {
  LiveJson names = LiveJson::array();
  LiveJson spark = LiveJson::object();
  for (const auto& one : sampler_.upstreams()) {
    names.push_back(one->name);
    LiveJson offered = LiveJson::array();
    LiveJson refused = LiveJson::array();
    const auto& rows = one->history.rows();
    for (std::size_t i = rows.begin_of_last(kSparkSeconds); i < rows.size(); ++i) {
      offered.push_back(measured(rows[i].offered));
      refused.push_back(measured(rows[i].refused));
    }
    spark[one->name] = {{"offered", std::move(offered)}, {"refused", std::move(refused)}};
  }
  LiveJson rows = LiveJson::array();
  std::int64_t from = sampler_.unix_seconds();
  if (const LiveUpstream* watched = sampler_.find(query_.upstream); watched != nullptr) {
    // The row of this second comes with the first tick.
    const auto& kept = watched->history.rows();
    const std::uint64_t seconds = sampler_.seconds();
    const std::uint64_t seen = query_.last_id.value_or(0);
    const bool continues = seen > 0 && seen <= seconds;  // not of an earlier process
    const std::size_t wanted = continues ? static_cast<std::size_t>(seconds - seen) : kept.size();
    for (std::size_t i = kept.begin_of_last(wanted); i + 1 < kept.size(); ++i) {
      rows.push_back(row_json(kept[i]));
    }
  }
  from -= static_cast<std::int64_t>(rows.size());
  const std::vector<LiveEvent> events = sampler_.events().after(events_seen_);
  LiveJson classes = LiveJson::array();
  for (const Priority p : kPriorities) classes.push_back(name_of(p));
  return {{"version", version()},
          {"name", view_.host_name},
          {"started", view_.started_unix_seconds},
          {"interval_ms", 1000},
          {"now", sampler_.unix_seconds()},
          {"view", name_of(query_.view)},
          {"upstream", query_.upstream},
          {"upstreams", std::move(names)},
          {"classes", std::move(classes)},
          {"actions", name_of(view_.admin_config().actions)},
          {"history",
           {{"upstream", query_.upstream},
            {"from", from},
            {"step", 1},
            {"columns",
             {"offered", "admitted", "refused", "failed", "in_flight", "waiting", "limit", "p50_ms",
              "p99_ms", "baseline_ms", "cause"}},
            {"rows", std::move(rows)}}},
          {"spark", std::move(spark)},
          {"events", events_json(events)}};
}

LiveJson LiveFeed::tick() {
  const ServerStats server = view_.server_stats();
  const AdmissionStats all = view_.core.controller.stats();
  const LiveUpstream* worst = sampler_.worst();
  const LiveUpstream* watched = sampler_.find(query_.upstream);
  OperatorState state = OperatorState::kHealthy;
  LiveJson upstreams = LiveJson::array();
  for (const auto& one : sampler_.upstreams()) {
    state = std::max(state, one->scope.state);
    upstreams.push_back(upstream_json(*one));
  }
  LiveJson overrides = LiveJson::array();
  const std::vector<Override> in_force = view_.core.overrides();
  for (const Override& one : in_force) {
    overrides.push_back({{"id", one.id()},
                         {"kind", name_of(one.kind)},
                         {"what", one.what()},
                         {"left_s", one.seconds_left(sampler_.now())}});
  }
  const std::vector<LiveEvent> events = sampler_.events().after(events_seen_);
  LiveJson json = {{"now", sampler_.unix_seconds()},
                   {"state", state_text(state)},
                   {"draining", view_.draining.load()},
                   {"verdict", worst == nullptr ? LiveJson() : verdict_json(*worst)},
                   {"totals", totals_json(view_, server)},
                   {"memory",
                    {{"usage", number(all.memory_usage)},
                     {"readable", all.memory_readable},
                     {"ceiling", view_.budget.total_bytes()},
                     {"pressure", name_of(server.pressure)}}},
                   {"upstreams", std::move(upstreams)},
                   {"overrides", std::move(overrides)},
                   {"events", events_json(events)}};
  if (watched != nullptr) json["row"] = row_json(watched->history.rows().back());
  if (watched != nullptr) add_view(json, *watched);
  if (query_.view == LiveView::kMemory) json["memory"].update(memory_view(view_, first_tick_));
  if (query_.view == LiveView::kConfig) add_config(json);
  first_tick_ = false;
  return json;
}

void LiveFeed::add_view(LiveJson& tick, const LiveUpstream& upstream) {
  if (query_.view == LiveView::kRefusals) {
    tick["refusals"] = refusals_view(sampler_, upstream);
    tick["refusals"]["recent"] = recent_refusals(view_.core, upstream.name, sampler_.now());
  }
  if (query_.view == LiveView::kLimit) tick["limit"] = limit_view(upstream);
  if (query_.view == LiveView::kReplicas) {
    tick["replicas"] = replicas_.next(upstream, sampler_.now());
  }
}

void LiveFeed::add_config(LiveJson& tick) {
  const std::uint64_t reloads = view_.reloads_ok.load();
  if (!first_tick_ && reloads == reloads_seen_) return;
  reloads_seen_ = reloads;
  tick["config"] = config_view(view_);
}

AdminPage live_page(const GatewayView& view, const AdminRequest& request) {
  const LiveSampler& sampler = *view.live;
  auto query = read_live_query(request.query, request.last_event_id);
  if (!query) return bad_request(std::move(query.error()));
  if (query->upstream.empty()) {
    const LiveUpstream* worst = sampler.worst();
    if (worst != nullptr) query->upstream = worst->name;
  } else if (sampler.find(query->upstream) == nullptr) {
    return bad_request(not_an_upstream(sampler));
  }
  AdminPage page{.content_type = "text/event-stream"};
  page.feed = std::make_unique<LiveFeed>(view, sampler, *query);
  return page;
}

AdminPage diagnose_page(const GatewayView& view, const AdminRequest& request) {
  const LiveSampler& sampler = *view.live;
  const std::string wanted = query_value(request.query, "upstream");
  if (!wanted.empty() && sampler.find(wanted) == nullptr) {
    return bad_request(not_an_upstream(sampler));
  }
  LiveJson verdicts = LiveJson::array();
  for (const auto& one : sampler.upstreams()) {
    if (!wanted.empty() && one->name != wanted) continue;
    LiveJson verdict = verdict_json(*one);
    verdict["state"] = state_text(one->scope.state);
    verdicts.push_back(std::move(verdict));
  }
  constexpr int kIndent = 2;
  const LiveJson page = {{"now", sampler.unix_seconds()}, {"verdicts", std::move(verdicts)}};
  return {.body = page.dump(kIndent, ' ', true, LiveJson::error_handler_t::replace) + "\n"};
}

}  // namespace weir::inline v0::gateway
