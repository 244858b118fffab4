#include <chrono>
#include <string>
#include <utility>

#include "scenario_reader.h"

// Replicas of a service behind its gateway: `[service.replicas]` and `[[service.replica]]`.

namespace weir::inline v0::sim {
namespace {

constexpr Duration kRetransmit = std::chrono::milliseconds(200);  // the shortest of Linux

void read_rules(NodeReader& reader, ReplicasSpec& out) {
  reader.choice("balance", out.balance, policy::kBalanceNames);
  reader.whole("attempts", out.attempts_max, 1U, 10U);
  reader.duration("timeout", out.timeout);
  reader.duration("hold_max", out.hold_max);
  reader.boolean("idempotent", out.idempotent);
  reader.boolean("silence", out.silence);
  reader.boolean("probes", out.probes);
  reader.boolean("ejection", out.ejection);
  reader.boolean("cancel", out.cancel);
  reader.table("hedge", [&out](NodeReader& r) { read_hedge(r, out.hedge.emplace()); });
  const policy::HedgeConfig hedge = out.hedge.value_or(policy::HedgeConfig{});
  double pct = hedge.budget_pct;
  std::uint32_t tokens = hedge.max_budget_tokens;
  reader.number("budget_pct", pct, 0.0, 1.0);
  reader.whole("budget_tokens", tokens, 0U, 1'000'000U);
  out.budget = policy::redundancy_budget_rules(pct, tokens);
}

void read_replica(NodeReader& reader, ReplicasSpec& out) {
  const auto count = static_cast<std::uint32_t>(out.each.size());
  std::uint32_t number = 1;
  reader.require("number", "1 to the count of replicas");
  reader.whole("number", number, 1U, count);
  ReplicaSpec& replica = out.each[number - 1];
  if (reader.has("time")) read_distribution(reader, "time", replica.time.emplace());
  if (reader.has("workers")) reader.whole("workers", replica.workers, 1U, 1'000'000U);
  reader.number("weight", replica.weight, 0.01, 1000.0);
  replica.link.retransmit = kRetransmit;
  read_link(reader, replica.link);
  const bool lost_for_ever = replica.link.loss > 0 && replica.link.retransmit.count() == 0;
  if (lost_for_ever && out.timeout.count() == 0) {
    reader.fault("link", "loss without retransmit", "only with a timeout in [service.replicas]");
  }
}

ServiceSpec replica_of(const ServiceSpec& service, std::uint32_t number) {
  const ReplicaSpec& own = service.replicas->each[number - 1];
  ServiceSpec replica;
  replica.name = service.name + "-" + std::to_string(number);
  replica.workers = own.workers > 0 ? own.workers : service.workers;
  replica.time = own.time ? *own.time : service.time;
  replica.contention = service.contention;
  replica.stops_running = service.stops_running;
  replica.queue_max = service.queue_max;
  replica.memory = service.memory;
  for (const FaultSpec& fault : service.faults) {
    if (fault.kind == FaultKind::kStall) continue;
    if (fault.replica == 0 || fault.replica == number) replica.faults.push_back(fault);
  }
  return replica;
}

}  // namespace

void read_replicas(NodeReader& reader, ServiceSpec& out) {
  reader.table("replicas", [&](NodeReader& r) {
    std::uint32_t count = 2;
    r.require("count", "1 to 1000");
    r.whole("count", count, 1U, 1000U);
    out.replicas.emplace().each.resize(count);
    read_rules(r, *out.replicas);
  });
  if (!out.replicas) return;
  reader.each("replica", [&](NodeReader& r) { read_replica(r, *out.replicas); });
  if (!out.calls.empty()) {
    reader.fault("call", "beside [service.replicas]", "calls of a service without replicas");
  }
}

void add_replicas(Scenario& scenario) {
  const std::size_t named = scenario.services.size();
  for (std::size_t at = 0; at < named; ++at) {
    if (!scenario.services[at].replicas) continue;
    const std::size_t count = scenario.services[at].replicas->each.size();
    for (std::uint32_t i = 1; i <= count; ++i) {
      CallSpec call;
      call.to = static_cast<std::uint32_t>(scenario.services.size());
      call.caller.link = scenario.services[at].replicas->each[i - 1].link;
      call.caller.timeout = scenario.services[at].replicas->timeout;
      ServiceSpec replica = replica_of(scenario.services[at], i);
      scenario.services.push_back(std::move(replica));
      scenario.services[at].calls.push_back(std::move(call));
    }
    ServiceSpec& gateway = scenario.services[at];
    gateway.workers = 1'000'000;
    gateway.time = {};
    gateway.contention = 0;
    gateway.holds_worker = false;
    std::erase_if(gateway.faults, [](const FaultSpec& f) { return f.kind != FaultKind::kStall; });
    gateway.memory.reset();
  }
}

}  // namespace weir::inline v0::sim
