#include "admin_pages.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "weir/base/byte_size.h"
#include "weir/base/number_text.h"
#include "weir/experimental/config/print.h"
#include "weir/experimental/gateway/version.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/line_writer.h"
#include "weir/experimental/metrics/text_writer.h"

#include "admin_host.h"
#include "asset_page.h"
#include "effective_config.h"
#include "explain.h"
#include "live/live_feed.h"
#include "operator_actions.h"
#include "recorder_pages.h"

namespace weir::inline v0::gateway {
namespace {

using Json = nlohmann::ordered_json;

AdminPage json_page(const Json& json, std::uint16_t status = 200) {
  constexpr int kIndent = 2;
  return {.status = status,
          .content_type = "application/json",
          .body = json.dump(kIndent, ' ', true, Json::error_handler_t::replace) + "\n"};
}

AdminPage text_page(std::string text, std::uint16_t status = 200) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(text)};
}

AdminPage complaint(std::string text) {
  return json_page({{"error", std::move(text)}}, 400);
}

Json pool_json(const PoolStats& stats) {
  return {{"used", stats.used},
          {"peak", stats.peak},
          {"capacity", stats.capacity},
          {"exhausted", stats.exhausted}};
}

Json scope_json(const ScopeStats& scope) {
  Json classes;
  for (const Priority p : kPriorities) {
    const ClassStats& one = scope.classes[index_of(p)];
    classes[std::string(name_of(p))] = {
        {"in_flight", one.in_flight}, {"bound", one.bound},       {"cap", one.cap},
        {"standing", one.standing},   {"admitted", one.acquired}, {"refused", one.shed}};
  }
  const auto by_reason = [](const auto& counts) {
    Json found = Json::object();
    for (std::size_t i = 1; i < kReasonCount; ++i) {
      if (counts[i] > 0) found[std::string(kReasonFacts[i].name)] = counts[i];
    }
    return found;
  };
  return {{"state", name_of(scope.state)},
          {"overloaded", scope.overloaded},
          {"limit", scope.limit},
          {"limit_min", scope.limit_min},
          {"limit_max", scope.limit_max},
          {"limit_reason", name_of(scope.limit_reason)},
          {"in_flight", scope.in_flight},
          {"waiting", scope.waiting},
          {"queue_estimate", scope.queue_estimate},
          {"latency_ms", to_millis(scope.latency_avg)},
          {"baseline_ms", to_millis(scope.baseline)},
          {"drained_per_second", scope.drain_per_second},
          {"classes", classes},
          {"refused", by_reason(scope.refused)},
          {"shadow_refused", by_reason(scope.would_refuse)}};
}

AdminPage stats_page(const GatewayView& view, TimePoint now) {
  const AdmissionStats all = view.core.controller.stats();
  const RequestTotals totals = view.core.totals();
  const ServerStats server = view.server_stats();
  Json scopes;
  const std::shared_ptr<const UpstreamSet> upstreams = view.core.upstreams.in_force();
  for (const auto& upstream : upstreams->all) {
    scopes[upstream->name()] = scope_json(view.core.controller.scope_stats(upstream->scope(), now));
  }
  Json leaving = Json::array();
  for (const UpstreamTable::Leaving& one : view.core.upstreams.leaving()) {
    leaving.push_back({{"upstream", one.name}, {"connections", one.connections}});
  }
  const io::LineWriter* const access_log = view.core.access_log;
  const auto log = access_log != nullptr ? access_log->stats() : io::LineWriter::Stats{};
  return json_page(
      {{"version", version()},
       {"uptime_seconds", io::unix_seconds() - view.started_unix_seconds},
       {"draining", view.draining.load()},
       {"requests",
        {{"received", totals.received},
         {"answered", totals.answered},
         {"refused", totals.refused},
         {"aborted", totals.aborted},
         {"active", totals.active()}}},
       {"admission",
        {{"in_flight", all.in_flight},
         {"max_concurrent", view.core.controller.config().max_concurrent},
         {"streaming", all.streaming},
         {"bytes", all.bytes},
         {"critical_shed", all.critical_shed + server.critical_shed + totals.critical_shed},
         {"actors", all.actors},
         {"peers", all.peers}}},
       {"memory",
        {{"usage", all.memory_usage},
         {"readable", all.memory_readable},
         {"ceiling_bytes", view.budget.total_bytes()},
         {"pressure", name_of(server.pressure)}}},
       {"connections",
        {{"open", server.connections.used},
         {"idle", server.idle_connections},
         {"accepted", server.accepted},
         {"tunnels", server.tunnels}}},
       {"access_log", {{"lines", log.written}, {"dropped", log.dropped}}},
       {"reloads", {{"ok", view.reloads_ok.load()}, {"refused", view.reloads_refused.load()}}},
       {"upstreams", scopes},
       {"leaving_upstreams", leaving}});
}

AdminPage pools_page(const GatewayView& view) {
  Json pools;
  for (const NamedPool& pool : pools_of(view, view.server_stats())) {
    pools[std::string(pool.name)] = pool_json(pool.stats);
  }
  return json_page({{"ceiling_bytes", view.budget.total_bytes()}, {"pools", pools}});
}

Json rows_json(const std::vector<BudgetRow>& rows) {
  Json list = Json::array();
  for (const BudgetRow& row : rows) {
    Json one = {{"id", std::to_string(row.id)}};  // text: JSON readers round large numbers
    if (!row.label.empty()) one["name"] = row.label;
    one["in_flight"] = row.in_flight;
    one["bytes"] = row.bytes;
    one["refused"] = row.refused;
    list.push_back(one);
  }
  return list;
}

AdminPage actors_page(const GatewayView& view, const AdminRequest& request) {
  constexpr std::size_t kMost = 1000;
  const auto top = parse_number<std::size_t>(query_value(request.query, "top", "10"));
  if (!top || *top > kMost) return complaint("top: a number from 0 to 1000");
  const AdmissionStats all = view.core.controller.stats();
  return json_page({{"actors", rows_json(view.core.controller.top_actors(*top))},
                    {"peers", rows_json(view.core.controller.top_peers(*top))},
                    {"actors_known", all.actors},
                    {"peers_known", all.peers}});
}

/// Requests that wait for a connection to the endpoint, of all loops.
Json queue_json(const upstream::Endpoint& endpoint) {
  const control::OutgoingCounts& now = endpoint.queued();
  const control::OutgoingStats all = endpoint.queue_stats();
  return {{"state", name_of(endpoint.queue_state())},
          {"primary", now.primary.held()},
          {"overflow", now.ring.held()},
          {"critical", now.critical.held()},
          {"bytes", now.bytes.held() + now.critical_bytes.held()},
          {"offered", all.offered},
          {"sent", all.sent},
          {"failed", all.failed - std::min(all.failed, all.withdrawn)},
          {"withdrawn", all.withdrawn},
          {"dropped", all.dropped},
          {"refused", all.refused},
          {"expired", all.expired}};
}

Json endpoint_json(const std::string& name, const upstream::EndpointSet::Member& member,
                   const upstream::Upstream& upstream, TimePoint now) {
  using Counters = upstream::EndpointCounters;
  const upstream::Endpoint& endpoint = *member.endpoint;
  const policy::EndpointHealth health = endpoint.health();
  Json failures = Json::object();
  for (std::size_t f = 1; f < upstream::kUpstreamFailureCount; ++f) {
    const std::uint64_t count =
        endpoint.sum([f](const Counters& c) { return c.failures[f].get(); });
    if (count > 0) failures[std::string(upstream::kUpstreamFailureNames[f])] = count;
  }
  const std::optional<TimePoint> until = health.until();
  const upstream::LatencySummary latency = endpoint.recent_latency();
  const policy::CohortLatency cohort = upstream.published().latency;
  return {{"upstream", name},
          {"endpoint", endpoint.label()},
          {"available", endpoint.open()},
          {"state", name_of(health.state())},
          {"reason", name_of(health.reason())},
          {"since_ms", to_millis(now - health.since())},
          {"for_ms", until ? std::max(0.0, to_millis(*until - now)) : 0.0},
          {"weight", member.weight},
          {"zone", member.zone},
          {"p50_ms", to_millis(latency.p50)},
          {"p99_ms", to_millis(latency.p99)},
          {"cohort_p50_ms", to_millis(cohort.median)},
          {"cohort_p99_ms", to_millis(cohort.p99)},
          {"in_flight", endpoint.in_flight()},
          {"connections", endpoint.sum([](const Counters& c) { return c.connections.get(); })},
          {"idle", endpoint.sum([](const Counters& c) { return c.idle.get(); })},
          {"attempts", endpoint.sum([](const Counters& c) { return c.attempts.get(); })},
          {"answered", endpoint.sum([](const Counters& c) { return c.answered.get(); })},
          {"retries", endpoint.sum([](const Counters& c) { return c.retries.get(); })},
          {"hedges", endpoint.sum([](const Counters& c) { return c.hedges.get(); })},
          {"hedge_wins", endpoint.sum([](const Counters& c) { return c.hedge_wins.get(); })},
          {"queue", queue_json(endpoint)},
          {"failures", failures}};
}

Json source_json(const std::string& name, const upstream::SourceStatus& source, TimePoint now) {
  const auto ago = [&](TimePoint at) -> Json {
    if (at == TimePoint{}) return nullptr;
    return to_millis(now - at);
  };
  return {{"upstream", name},
          {"source", source.source},
          {"endpoints", source.endpoints},
          {"known", source.known},
          {"cut", source.cut},
          {"reason", source.reason},
          {"error", source.error},
          {"failing_ms", ago(source.failing_since)},
          {"changed_ms_ago", ago(source.changed)},
          {"succeeded_ms_ago", ago(source.succeeded)},
          {"next_in_ms", source.next == TimePoint{} ? Json() : Json(to_millis(source.next - now))}};
}

AdminPage endpoints_page(const GatewayView& view, TimePoint now) {
  Json list = Json::array();
  Json sources = Json::array();
  const std::shared_ptr<const UpstreamSet> upstreams = view.core.upstreams.in_force();
  for (const auto& one : upstreams->all) {
    const std::shared_ptr<const upstream::EndpointSet> set = one->upstream.endpoints();
    for (const upstream::EndpointSet::Member& member : set->members) {
      list.push_back(endpoint_json(one->name(), member, one->upstream, now));
    }
    if (!view.sources) continue;
    for (const upstream::SourceStatus& source : view.sources(*one)) {
      sources.push_back(source_json(one->name(), source, now));
    }
  }
  return json_page({{"endpoints", list}, {"sources", sources}});
}

/// The described request, or why it cannot be read.
struct Description {
  AdmissionRequest request;
  std::shared_ptr<ServedUpstream> upstream;
  std::string error;
  std::optional<std::size_t> route{};
};

/// The part of a query that /explain does not understand; empty if it understands all. Ignoring a
/// misspelt name would explain a different request.
std::string not_understood(std::string_view query) {
  constexpr std::array<std::string_view, 9> kKnown = {
      "route", "class", "actor", "upstream", "peer", "bytes", "cost", "deadline_ms", "attempt"};
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::string_view name = pair.substr(0, pair.find('='));
    if (pair.empty() || std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    std::string text = std::string(name) + ": not one of";
    for (const std::string_view known : kKnown) text += " " + std::string(known);
    return text;
  }
  return {};
}

/// What the route says of its requests: class, cost, modes and upstream.
void take_route(const GatewayView& view, std::string_view text, const UpstreamSet& upstreams,
                Description& said) {
  const config::Config effective = with_overrides(view.config(), view.core.overrides());
  const std::vector<RouteConfig> routes = effective.routes_in_force();
  said.route = parse_number<std::size_t>(text);
  if (!said.route || *said.route >= routes.size()) {
    said.error = "route: the number of a [[route]], 0 to " + std::to_string(routes.size() - 1);
    return;
  }
  const RouteConfig& route = routes[*said.route];
  if (route.answer.given()) {
    said.error = "route: the gateway answers its requests without admission";
    return;
  }
  said.upstream = upstreams.find(route.upstream);
  if (said.upstream == nullptr) said.error = "route: a reload is changing it; ask again";
  said.request.priority = route.priority.value_or(Priority::kNormal);
  said.request.cost = route.cost;
  said.request.modes = route.modes.overrides();
}

/// The names must outlive the description.
Description described(const GatewayView& view, const AdminRequest& asked, const std::string& actor,
                      const std::string& peer, TimePoint now) {
  const std::shared_ptr<const UpstreamSet> upstreams = view.core.upstreams.in_force();
  if (upstreams->all.empty()) {
    return {.request = {}, .upstream = {}, .error = "there is no upstream"};
  }
  Description said{
      .request = {}, .upstream = upstreams->all.front(), .error = not_understood(asked.query)};
  AdmissionRequest& request = said.request;
  const auto value = [&](std::string_view name) { return query_value(asked.query, name); };
  if (const std::string text = value("route"); !text.empty()) {
    take_route(view, text, *upstreams, said);
    if (!said.error.empty()) return said;
  }
  if (const std::string text = value("class"); !text.empty()) {
    const auto priority = priority_named(text);
    if (!priority) said.error = "class: critical, high, normal or low";
    request.priority = priority.value_or(Priority::kNormal);
  }
  if (const std::string name = value("upstream"); !name.empty()) {
    said.upstream = upstreams->find(name);
    if (said.upstream == nullptr) {
      return {.request = {}, .upstream = {}, .error = "upstream: no upstream of that name"};
    }
  }
  if (const std::string text = value("bytes"); !text.empty()) {
    const auto bytes = parse_byte_size(text);
    if (!bytes) said.error = "bytes: " + std::string(kByteSizeSyntax);
    if (bytes) request.bytes = bytes->bytes();
  }
  if (const std::string text = value("cost"); !text.empty()) {
    const auto cost = parse_number<std::uint32_t>(text);
    if (!cost || *cost == 0 || *cost > kClassUnitsMax) said.error = "cost: 1 to 16383";
    request.cost = cost.value_or(1);
  }
  if (const std::string text = value("deadline_ms"); !text.empty()) {
    const auto ms = parse_number<std::int32_t>(text);
    if (!ms) said.error = "deadline_ms: milliseconds that are left";
    request.deadline = now + std::chrono::milliseconds(ms.value_or(0));
  }
  if (const std::string text = value("attempt"); !text.empty()) {
    const auto attempt = parse_number<std::uint64_t>(text);
    if (!attempt) said.error = "attempt: a number, 1 for the first";
    request.hedge = attempt.value_or(1) > 1;
  }
  request.scope = said.upstream->scope();
  const AdmissionController& controller = view.core.controller;
  if (!actor.empty() && !request.hedge) request.actor = named_actor(actor, controller);
  if (!peer.empty()) request.peer = controller.identify(peer);
  return said;
}

AdminPage explain_page(const GatewayView& view, const AdminRequest& asked, TimePoint now) {
  const std::string actor = query_value(asked.query, "actor");
  const std::string peer = query_value(asked.query, "peer");
  const Description said = described(view, asked, actor, peer, now);
  if (!said.error.empty()) return complaint(said.error);
  const AdmissionController& controller = view.core.controller;
  const DecisionRecord record = controller.explain(said.request, now);
  const NumbersInForce numbers{.config = controller.config(),
                               .all = controller.stats(),
                               .scope = controller.scope_stats(said.request.scope, now),
                               .now = now};
  Json steps = Json::array();
  for (const DecisionStep& step : record.steps()) {
    steps.push_back({{"step", step_number(step.check)},
                     {"check", name_of(step.check)},
                     {"found", words_of(step, said.request, numbers)},
                     {"mode", name_of(step.mode)},
                     {"passes", step.passes}});
  }
  constexpr std::array<std::string_view, 3> kVerdicts = {"admitted", "refused", "waits"};
  Json page = {{"request",
                {{"upstream", said.upstream->name()},
                 {"class", name_of(said.request.priority)},
                 {"actor", actor},
                 {"peer", peer},
                 {"bytes", said.request.bytes},
                 {"cost", said.request.cost},
                 {"hedge", said.request.hedge},
                 {"route", said.route ? Json(*said.route) : Json()}}},
               {"verdict", kVerdicts[static_cast<std::size_t>(record.verdict)]}};
  if (record.verdict == DecisionRecord::Verdict::kRefused) {
    page["reason"] = name_of(record.reason);
    page["status"] = facts_of(record.reason).http;
  }
  if (record.verdict == DecisionRecord::Verdict::kWaits) {
    page["wait_ms_max"] = to_millis(record.wait_max);
  }
  page["steps"] = steps;
  return json_page(page);
}

AdminPage ready_page(const GatewayView& view, const AdminConfig& config) {
  if (view.draining.load()) return text_page("draining\n", 503);
  const std::shared_ptr<const UpstreamSet> upstreams = view.core.upstreams.in_force();
  for (const auto& one : upstreams->all) {
    if (!config.ready_needs_upstreams || one->upstream.any_open()) continue;
    return text_page("upstream " + one->name() + " has no available endpoint\n", 503);
  }
  return text_page("ready\n");
}

/// Whether a request that was decided is asked about, and not one that is described.
bool names_id(std::string_view query) noexcept {
  return query.starts_with("id=") || query.find("&id=") != std::string_view::npos;
}

constexpr std::string_view kIndex =
    "weir admin\n"
    "  /metrics              Prometheus text\n"
    "  /healthz /readyz      200 while alive; 503 from readyz while draining, and by\n"
    "                        admin.ready_needs_upstreams without an available endpoint\n"
    "  /stats                requests, limits, classes, refusals\n"
    "  /pools                every bounded pool: used, peak, capacity, exhausted\n"
    "  /actors?top=10        who has most in flight\n"
    "  /endpoints            each endpoint: in or out, why, since when; and where they come from\n"
    "  /diagnose             whose fault it is that an upstream refuses, fails or is slow\n"
    "  /live                 the stream of the dashboard: an event per second\n"
    "  /config               the configuration in force\n"
    "  /overrides            what admin.actions changed for a time\n"
    "  /explain?class=low&actor=alice&upstream=app\n"
    "                        what would be decided now, step by step; takes nothing\n"
    "                        also: peer, bytes, cost, deadline_ms, attempt; route=0 takes class,\n"
    "                        cost, modes and upstream of the first [[route]]\n"
    "  /explain?id=REQUEST-ID\n"
    "                        how a request was decided, with the numbers of that moment\n"
    "  /recording?seconds=60 the newest decisions as a file for `weir replay`\n";

/// A probe may ask by any name: these pages say nothing that another site may not know.
bool is_health(std::string_view path) noexcept {
  return path == "/healthz" || path == "/readyz";
}

AdminPage no_page() {
  return text_page("no such page; / lists them\n", 404);
}

/// Pages that do not exist while admin.actions is off.
bool is_of_actions(std::string_view path) noexcept {
  return path.starts_with("/actions/") || path == "/overrides" || action_at(path).has_value();
}

}  // namespace

AdminPage admin_page(const GatewayView& view, const AdminRequest& request, TimePoint now) {
  const AdminConfig config = view.admin_config();
  if (!is_health(request.path) && !admin_host_allowed(request.host, config.hosts)) {
    return text_page("the host " + std::string(request.host) +
                         " is not accepted here: use an IP address or localhost, or add the name "
                         "to admin.hosts\n",
                     421);
  }
  if (view.actions != nullptr && view.actions->has(request.path)) {
    return view.actions->perform(request, now);
  }
  if (view.actions == nullptr && is_of_actions(request.path)) return no_page();
  if (request.method != "GET" && request.method != "HEAD") {
    return text_page("only GET\n", 405);
  }
  const std::string_view path = request.path;
  if (std::optional<AdminPage> asset = asset_page(request)) return std::move(*asset);
  if (path == "/") return text_page(std::string(kIndex));
  if (path == "/healthz") return text_page("ok\n");
  if (path == "/readyz") return ready_page(view, config);
  if (path == "/metrics") {
    return {.status = 200,
            .content_type = metrics::TextWriter::kContentType,
            .body = metrics_page(view, now)};
  }
  if (path == "/stats") return stats_page(view, now);
  if (path == "/pools") return pools_page(view);
  if (path == "/actors") return actors_page(view, request);
  if (path == "/endpoints") return endpoints_page(view, now);
  if (path == "/config") {
    return text_page(overrides_comment(view.core.overrides(), now) +
                     config::print_config(view.config()));
  }
  if (path == "/overrides") return overrides_page(view.core.overrides(), now, io::unix_seconds());
  if (path == "/explain" && names_id(request.query)) {
    return decided_page(view.core, request.query, now);
  }
  if (path == "/explain") return explain_page(view, request, now);
  if (path == "/recording") return recording_page(view.core, request.query, now);
  if (path == "/diagnose") return diagnose_page(view, request);
  if (path == "/live") return live_page(view, request);
  return no_page();
}

}  // namespace weir::inline v0::gateway
