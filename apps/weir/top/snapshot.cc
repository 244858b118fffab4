#include "snapshot.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "text.h"

namespace weir::app::top {
namespace {

using Json = nlohmann::json;

// A member that is absent or of another type reads as nothing: a newer gateway must not blank the
// screen.
const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

double number(const Json& value) {
  if (!value.is_number()) return 0;
  const double read = value.get<double>();
  return std::isfinite(read) ? read : 0;
}
double number(const Json& object, const char* key) {
  return number(member(object, key));
}

std::int64_t id_of(const Json& value) {
  const double read = number(value);
  return std::abs(read) < 9e15 ? static_cast<std::int64_t>(read) : 0;
}

std::string text(const Json& value) {
  return value.is_string() ? clean(value.get_ref<const std::string&>()) : std::string();
}
std::string text(const Json& object, const char* key) {
  return text(member(object, key));
}

bool flag(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

const Json& item(const Json& array, std::size_t i) {
  static const Json kNothing;
  return array.is_array() && i < array.size() ? array[i] : kNothing;
}

template <typename Make>
auto list(const Json& array, Make make) {
  std::vector<decltype(make(array))> out;
  if (!array.is_array()) return out;
  for (const Json& one : array) out.push_back(make(one));
  return out;
}

std::vector<std::string> texts(const Json& array) {
  return list(array, [](const Json& one) { return text(one); });
}

template <typename T>
void keep_last(std::deque<T>& items, std::size_t most) {
  while (items.size() > most) items.pop_front();
}

Second second_from(const std::vector<std::string>& columns, const Json& row) {
  Second out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i];
    const double value = number(item(row, i));
    if (name == "offered") out.offered = value;
    if (name == "admitted") out.admitted = value;
    if (name == "refused") out.refused = value;
    if (name == "failed") out.failed = value;
    if (name == "in_flight") out.in_flight = value;
    if (name == "waiting") out.waiting = value;
    if (name == "limit") out.limit = value;
    if (name == "p50_ms") out.p50_ms = value;
    if (name == "p99_ms") out.p99_ms = value;
    if (name == "baseline_ms") out.baseline_ms = value;
  }
  return out;
}

UpstreamNow upstream_from(const Json& json) {
  UpstreamNow out;
  out.name = text(json, "name");
  out.state = text(json, "state");
  out.cause = text(json, "cause");
  out.for_s = number(json, "for_s");
  out.now = Second{.offered = number(json, "offered"),
                   .admitted = number(json, "admitted"),
                   .refused = number(json, "refused"),
                   .failed = number(json, "failed"),
                   .in_flight = number(json, "in_flight"),
                   .waiting = number(json, "waiting"),
                   .limit = number(json, "limit"),
                   .p50_ms = number(json, "p50_ms"),
                   .p99_ms = number(json, "p99_ms"),
                   .baseline_ms = number(json, "baseline_ms")};
  out.limit_min = number(json, "limit_min");
  out.limit_max = number(json, "limit_max");
  out.limit_reason = text(json, "limit_reason");
  out.replicas = number(json, "replicas");
  out.replicas_open = number(json, "replicas_open");
  return out;
}

VerdictNow verdict_from(const Json& json) {
  const Json& evidence = member(json, "evidence");
  return VerdictNow{.upstream = text(json, "upstream"),
                    .cause = text(json, "cause"),
                    .sentence = text(json, "sentence"),
                    .next_step = text(json, "next_step"),
                    .for_s = number(json, "for_s"),
                    .offered = number(evidence, "offered"),
                    .answered = number(evidence, "answered"),
                    .refused = number(evidence, "refused"),
                    .latency_ms = number(evidence, "latency_ms"),
                    .usual_offered = number(evidence, "usual_offered"),
                    .usual_latency_ms = number(evidence, "usual_latency_ms"),
                    .best_answered = number(evidence, "best_answered")};
}

LiveEvent event_from(const Json& json) {
  return LiveEvent{.at = number(json, "t"),
                   .kind = text(json, "kind"),
                   .upstream = text(json, "upstream"),
                   .text = text(json, "text")};
}

void add_events(Snapshot& snapshot, const Json& array) {
  for (LiveEvent& event : list(array, event_from)) snapshot.events.push_back(std::move(event));
  keep_last(snapshot.events, kEventsMax);
}

RefusedParty party_from(const Json& json) {
  return RefusedParty{.id = text(json, "id"),
                      .name = text(json, "name"),
                      .in_flight = number(json, "in_flight"),
                      .bytes = number(json, "bytes"),
                      .refused = number(json, "refused"),
                      .refused_per_s = number(json, "refused_per_s"),
                      .since_s = number(json, "since_s")};
}

Decision decision_from(const Json& json) {
  return Decision{.id = text(json, "id"),
                  .age_ms = number(json, "age_ms"),
                  .priority = text(json, "class"),
                  .reason = text(json, "reason"),
                  .in_flight = number(json, "in_flight"),
                  .limit = number(json, "limit"),
                  .waited_ms = number(json, "waited_ms")};
}

RefusalsPage refusals_from(const Snapshot& snapshot, const Json& json) {
  RefusalsPage out;
  std::map<std::string, ReasonRow> rows;
  const Json& matrix = member(json, "matrix");
  if (matrix.is_object()) {
    for (const auto& [reason, classes] : matrix.items()) {
      ReasonRow& row = rows[clean(reason)];
      for (std::size_t i = 0; i < std::min(kClassesMax, snapshot.classes.size()); ++i) {
        row.by_class[i] = number(classes, snapshot.classes[i].c_str());
        row.sum += row.by_class[i];
      }
    }
  }
  const Json& shadow = member(json, "shadow");
  if (shadow.is_object()) {
    for (const auto& [reason, per_s] : shadow.items()) rows[clean(reason)].shadow = number(per_s);
  }
  for (auto& [reason, row] : rows) {
    row.reason = reason;
    if (row.sum > 0 || row.shadow > 0) out.reasons.push_back(row);
  }
  std::stable_sort(out.reasons.begin(), out.reasons.end(),
                   [](const ReasonRow& a, const ReasonRow& b) { return a.sum > b.sum; });
  out.actors = list(member(json, "actors"), party_from);
  out.peers = list(member(json, "peers"), party_from);
  out.recent = list(member(json, "recent"), decision_from);
  return out;
}

LimitPage limit_from(const Json& json) {
  LimitPage out;
  out.demand = number(json, "demand");
  out.sentence = text(json, "sentence");
  out.moves = list(member(json, "moves"), [](const Json& move) {
    return LimitMove{.at = number(move, "t"),
                     .from = number(move, "from"),
                     .to = number(move, "to"),
                     .reason = text(move, "reason")};
  });
  out.knee = list(member(json, "knee"), [](const Json& bin) {
    return KneeBin{.in_flight = number(item(bin, 0)),
                   .answered_per_s = number(item(bin, 1)),
                   .p99_ms = number(item(bin, 2)),
                   .seconds = number(item(bin, 3))};
  });
  return out;
}

/// True if the row has brought its spark.
bool take_replica(Replica& to, const std::vector<std::string>& columns, const Json& row) {
  bool has_spark = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i];
    const Json& value = item(row, i);
    if (name == "endpoint") to.endpoint = text(value);
    if (name == "state") to.state = text(value);
    if (name == "reason") to.reason = text(value);
    if (name == "zone") to.zone = text(value);
    if (name == "since_s") to.since_s = number(value);
    if (name == "p50_ms") to.p50_ms = number(value);
    if (name == "p99_ms") to.p99_ms = number(value);
    if (name == "in_flight") to.in_flight = number(value);
    if (name == "failures_per_s") to.failures_per_s = number(value);
    if (name == "hedges") to.hedges = number(value);
    if (name == "hedge_wins") to.hedge_wins = number(value);
    if (name == "weight") to.weight = number(value);
    if (name == "quiet") to.quiet = value == true;
    if (name != "spark" || !value.is_array()) continue;
    to.spark.clear();
    for (const Json& one : value) to.spark.push_back(number(one));
    keep_last(to.spark, kReplicaSparkMax);
    has_spark = true;
  }
  return has_spark;
}

void take_replicas(Snapshot& snapshot, const Json& json) {
  ReplicasPage& page = snapshot.replicas;
  page.total = number(json, "total");
  page.bad = number(json, "bad");
  page.matching = number(json, "matching");
  page.from = number(json, "from");
  page.cohort_p50_ms = number(json, "cohort_p50_ms");
  page.cohort_p99_ms = number(json, "cohort_p99_ms");
  page.histogram = list(member(json, "histogram"), [](const Json& bin) {
    return HistogramBin{.p50_ms_upper = number(item(bin, 0)), .replicas = number(item(bin, 1))};
  });
  if (const Json& columns = member(json, "columns"); columns.is_array()) {
    snapshot.replica_columns = texts(columns);
  }
  const auto at = std::find(snapshot.replica_columns.begin(), snapshot.replica_columns.end(), "id");
  const auto id_at = static_cast<std::size_t>(at - snapshot.replica_columns.begin());
  std::set<std::int64_t> begun;  // their sparks end with this second already
  if (const Json& rows = member(json, "rows"); rows.is_array()) {
    for (const Json& row : rows) {
      const std::int64_t id = id_of(item(row, id_at));
      Replica& replica = page.known[id];
      replica.id = id;
      if (take_replica(replica, snapshot.replica_columns, row)) begun.insert(id);
    }
  }
  page.order = list(member(json, "order"), id_of);
  for (const std::int64_t id : page.order) {
    const auto found = page.known.find(id);
    if (found == page.known.end() || begun.contains(id)) continue;
    // A row that is not sent is as before; one that is quiet has had no answer, so its p50 is old.
    Replica& replica = found->second;
    replica.spark.push_back(replica.quiet ? 0 : replica.p50_ms);
    keep_last(replica.spark, kReplicaSparkMax);
  }
  std::erase_if(page.known, [&](const auto& one) {
    return std::find(page.order.begin(), page.order.end(), one.first) == page.order.end();
  });
}

void take_memory(MemoryPage& page, const Json& json) {
  if (const Json& addends = member(json, "addends"); addends.is_array()) {
    page.addends = list(addends, [](const Json& one) {
      return Addend{
          .name = text(one, "name"), .bytes = number(one, "bytes"), .note = text(one, "note")};
    });
  }
  if (const Json& hints = member(json, "hints"); hints.is_array()) page.hints = texts(hints);
  page.pools = list(member(json, "pools"), [](const Json& one) {
    return PoolNow{.name = text(one, "name"),
                   .used = number(one, "used"),
                   .peak = number(one, "peak"),
                   .capacity = number(one, "capacity"),
                   .exhausted = number(one, "exhausted"),
                   .bytes_each = number(one, "bytes_each")};
  });
  const Json& cgroup = member(json, "cgroup");
  page.cgroup_limit = number(cgroup, "limit");
  page.cgroup_used = number(cgroup, "used");
  page.cgroup_mine = number(cgroup, "mine");
}

void take_hello(Snapshot& to, const Json& json) {
  to.version = text(json, "version");
  to.name = text(json, "name");
  to.view = text(json, "view");
  to.upstream = text(json, "upstream");
  to.upstreams = texts(member(json, "upstreams"));
  to.classes = texts(member(json, "classes"));
  to.actions = text(json, "actions");
  to.replicas = {};
  to.memory = {};
  const Json& history = member(json, "history");
  to.history_columns = texts(member(history, "columns"));
  to.history.clear();
  if (const Json& rows = member(history, "rows"); rows.is_array()) {
    for (const Json& row : rows) to.history.push_back(second_from(to.history_columns, row));
  }
  keep_last(to.history, kHistoryMax);
  to.spark.clear();
  if (const Json& sparks = member(json, "spark"); sparks.is_object()) {
    for (const auto& [name, spark] : sparks.items()) {
      Spark& one = to.spark[clean(name)];
      for (const double v : list(member(spark, "offered"), [](const Json& j) { return number(j); }))
        one.offered.push_back(v);
      for (const double v : list(member(spark, "refused"), [](const Json& j) { return number(j); }))
        one.refused.push_back(v);
    }
  }
  to.events.clear();
  add_events(to, member(json, "events"));
  to.hello_now = number(json, "now");
  if (!to.has_tick) to.now = to.hello_now;
}

void take_sparks(Snapshot& to) {
  std::map<std::string, Spark> next;
  for (const UpstreamNow& upstream : to.now_of) {
    Spark& spark = next[upstream.name];
    spark = std::move(to.spark[upstream.name]);
    if (to.now <= to.hello_now) continue;  // hello's last minute ends with its own second
    spark.offered.push_back(upstream.now.offered);
    spark.refused.push_back(upstream.now.refused);
    keep_last(spark.offered, kSparkMax);
    keep_last(spark.refused, kSparkMax);
  }
  to.spark = std::move(next);
}

void take_tick(Snapshot& to, const Json& json) {
  to.has_tick = true;
  to.now = number(json, "now");
  to.state = text(json, "state");
  to.draining = flag(json, "draining");
  to.verdict = verdict_from(member(json, "verdict"));
  const Json& totals = member(json, "totals");
  to.active = number(totals, "active");
  to.critical_shed = number(totals, "critical_shed");
  const Json& memory = member(json, "memory");
  // The same word is the short member of each tick and the member of the view `memory`; the view's
  // has addends or pools.
  to.memory_share = number(memory, "usage");
  to.memory_readable = flag(memory, "readable");
  to.ceiling_bytes = number(memory, "ceiling");
  to.pressure = text(memory, "pressure");
  to.now_of = list(member(json, "upstreams"), upstream_from);
  take_sparks(to);
  to.overrides = list(member(json, "overrides"), [](const Json& one) {
    return Override{
        .kind = text(one, "kind"), .what = text(one, "what"), .left_s = number(one, "left_s")};
  });
  add_events(to, member(json, "events"));
  if (const Json& row = member(json, "row"); row.is_array()) {
    to.history.push_back(second_from(to.history_columns, row));
    keep_last(to.history, kHistoryMax);
  }
  if (json.contains("refusals")) to.refusals = refusals_from(to, member(json, "refusals"));
  if (json.contains("limit")) to.limit = limit_from(member(json, "limit"));
  if (json.contains("replicas")) take_replicas(to, member(json, "replicas"));
  if (to.view == "memory") take_memory(to.memory, memory);
}

}  // namespace

bool apply_message(Snapshot& snapshot, std::string_view event, std::string_view data) {
  if (event != "hello" && event != "tick") return false;
  const Json json = Json::parse(valid_utf8(data), nullptr, false);
  if (!json.is_object()) return false;
  if (event == "hello") {
    take_hello(snapshot, json);
  } else {
    take_tick(snapshot, json);
  }
  return true;
}

}  // namespace weir::app::top
