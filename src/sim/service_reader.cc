#include <array>
#include <utility>

#include "sim/scenario_reader.h"

namespace weir::inline v0 {
namespace {

void read_fault(NodeReader& reader, FaultSpec& out) {
  constexpr std::array<std::string_view, 5> kKinds = {"pause", "slow", "crash", "errors",
                                                      "workers"};
  reader.require("at", "an instant of the run, such as \"30s\"");
  reader.duration("at", out.at);
  reader.require("kind", "one of pause, slow, crash, errors, workers");
  reader.choice("kind", out.kind, kKinds);
  if (out.kind != FaultKind::kWorkers) reader.duration("lasts", out.lasts);
  switch (out.kind) {
    case FaultKind::kPause:
    case FaultKind::kCrash:
      reader.require("lasts", "how long, such as \"2s\"");
      break;
    case FaultKind::kSlow:
      reader.require("factor", "0.01 to 1000");
      reader.number("factor", out.factor, 0.01, 1000.0);
      break;
    case FaultKind::kErrors:
      reader.require("share", "0 to 1");
      reader.number("share", out.factor, 0.0, 1.0);
      reader.duration("time", out.time);
      break;
    case FaultKind::kWorkers:
      reader.require("workers", "1 to 1000000");
      reader.whole("workers", out.workers, 1U, 1'000'000U);
      break;
  }
}

void read_memory(NodeReader& reader, MemorySpec& out) {
  read_rate_points(reader, "used", "used", out.used);
  reader.number("per_request", out.per_request, 0.0, 1.0);
  reader.duration("restart", out.restart);
  for (const RatePoint& point : out.used) {
    if (point.value > 1) reader.fault("used", "above 1", "shares of the memory limit, 0 to 1");
  }
}

void read_limit(NodeReader& reader, LimitConfig& out) {
  reader.choice("policy", out.policy, kLimitKindNames);
  reader.whole("initial_limit", out.initial_limit, 1U, kClassUnitsMax);
  reader.whole("min_limit", out.min_limit, 1U, kClassUnitsMax);
  reader.whole("max_limit", out.max_limit, 1U, kClassUnitsMax);
  reader.duration("window_duration", out.window_duration);
  reader.number("vegas_alpha", out.vegas_alpha, 0.0, 1e6);
  reader.number("vegas_beta", out.vegas_beta, 0.0, 1e6);
  reader.number("aimd_backoff", out.aimd_backoff, 0.0, 1.0);
}

void read_classes(NodeReader& reader, ClassRules& out) {
  reader.whole("cap_high", out.caps[index_of(Priority::kHigh)], 0U, kClassUnitsMax);
  reader.whole("cap_normal", out.caps[index_of(Priority::kNormal)], 0U, kClassUnitsMax);
  reader.whole("cap_low", out.caps[index_of(Priority::kLow)], 0U, kClassUnitsMax);
  reader.whole("share_high_permille", out.share_high_permille, 1U, 1000U);
  reader.whole("share_normal_permille", out.share_normal_permille, 1U, 1000U);
  reader.whole("share_low_permille", out.share_low_permille, 1U, 1000U);
}

void read_modes(NodeReader& reader, RuleModes& out) {
  const std::pair<std::string_view, RuleMode*> rules[] = {
      {"deadline", &out.deadline}, {"memory", &out.memory}, {"peer", &out.peer},
      {"actor", &out.actor},       {"bytes", &out.bytes},   {"class_cap", &out.class_cap},
      {"limit", &out.limit}};
  for (const auto& [key, mode] : rules) reader.choice(key, *mode, kRuleModeNames);
}

}  // namespace

void read_admission(NodeReader& reader, AdmissionConfig& out) {
  reader.whole("max_concurrent", out.max_concurrent, 1U, kClassUnitsMax);
  reader.whole("per_peer_limit", out.per_peer_limit, 1U, kClassUnitsMax);
  reader.whole("inflight_max", out.inflight_max, 1U, kClassUnitsMax);
  reader.byte_size("bytes_max", out.bytes_max);
  reader.byte_size("total_bytes_max", out.total_bytes_max);
  reader.number("memory_pressure_threshold", out.memory.memory_pressure_threshold, 0.05, 1.0);
  reader.number("memory_critical_threshold", out.memory.memory_critical_threshold, 0.05, 1.0);
  reader.number("low_priority_shed_ratio", out.memory.low_priority_shed_ratio, 0.0, 1.0);
  reader.duration("high_wait_max", out.high_wait_max);
  reader.duration("normal_wait_max", out.normal_wait_max);
  reader.whole("waiting_max", out.waiting_max, 0U, 65536U);
  reader.whole("actor_table_size", out.actor_table_size, 64U, 1U << 24U);
  reader.whole("peer_table_size", out.peer_table_size, 64U, 1U << 24U);
  reader.table("limit", [&out](NodeReader& r) { read_limit(r, out.limit); });
  reader.table("classes", [&out](NodeReader& r) { read_classes(r, out.classes); });
  reader.table("modes", [&out](NodeReader& r) { read_modes(r, out.modes); });
  reader.adopt(out.validate());
}

void read_service(NodeReader& reader, const ScenarioNames& names, ServiceSpec& out) {
  reader.text("name", out.name);
  reader.require("workers", "1 to 1000000");
  reader.whole("workers", out.workers, 1U, 1'000'000U);
  reader.require("time", "a duration or a distribution");
  read_distribution(reader, "time", out.time);
  reader.number("contention", out.contention, 0.0, 10.0);
  reader.boolean("holds_worker", out.holds_worker);
  reader.boolean("stops_running", out.stops_running);
  reader.whole("queue_max", out.queue_max, 0U, 100'000'000U);
  reader.duration("timeout", out.timeout);
  reader.each("call", [&](NodeReader& r) {
    CallSpec& call = out.calls.emplace_back();
    r.require("to", "the name of a service");
    read_reference(r, "to", names.services, call.to);
    read_caller(r, call.caller);
  });
  reader.each("fault", [&](NodeReader& r) { read_fault(r, out.faults.emplace_back()); });
  reader.table("memory", [&](NodeReader& r) { read_memory(r, out.memory.emplace()); });
  reader.table("admission", [&](NodeReader& r) { read_admission(r, out.admission.emplace()); });
}

}  // namespace weir::inline v0
