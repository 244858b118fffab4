#include "control/scope_seconds.h"

#include <algorithm>

namespace weir::inline v0::inline control {

// Requests that were late or too large say nothing about who is at fault: they count as offered.
ScopeSeconds::Totals ScopeSeconds::totals_of(const ScopeStats& stats, std::uint64_t own) noexcept {
  const auto refused = [&stats](Reason reason) { return stats.refused[index_of(reason)]; };
  Totals out;
  for (const ClassStats& c : stats.classes) out.offered += c.acquired + c.shed;
  out.offered += own;
  out.limit = refused(Reason::kOverload) + refused(Reason::kClassLimit);
  out.client =
      refused(Reason::kPeerLimit) + refused(Reason::kActorInflight) + refused(Reason::kActorBytes);
  out.memory = refused(Reason::kMemory) + refused(Reason::kBytes);
  out.own = own;
  out.failed = stats.errors + stats.overloads;
  out.samples = stats.samples;
  out.latency = stats.latency_sum;
  return out;
}

policy::ScopeSecond ScopeSeconds::next(const ScopeStats& stats, Duration passed,
                                       std::uint64_t refused_own, std::span<const BudgetRow> actors,
                                       const ReplicaSpread& spread) noexcept {
  const Totals now = totals_of(stats, refused_own);
  const double seconds = std::max(to_seconds(passed), 1e-3);
  const auto rate = [seconds](std::uint64_t after, std::uint64_t before) {
    return static_cast<double>(after - std::min(after, before)) / seconds;
  };
  policy::ScopeSecond out;
  out.offered = rate(now.offered, before_.offered);
  out.refused_limit = rate(now.limit, before_.limit);
  out.refused_client = rate(now.client, before_.client);
  out.refused_memory = rate(now.memory, before_.memory);
  out.refused_own = rate(now.own, before_.own);
  out.failed = rate(now.failed, before_.failed);
  out.answered = rate(now.samples, before_.samples);
  if (now.samples > before_.samples) {
    out.latency_ms = to_millis(now.latency - before_.latency) /
                     static_cast<double>(now.samples - before_.samples);
  }
  before_ = now;
  out.baseline_ms = to_millis(stats.baseline);
  out.queue = stats.queue_estimate;
  out.limit = stats.limit;
  out.limit_max = stats.limit_max;
  out.in_flight = stats.in_flight;
  out.waiting = stats.waiting;
  std::uint32_t held = 0;
  std::uint32_t most = 0;
  for (const BudgetRow& row : actors) {
    held += row.in_flight;
    most = std::max(most, row.in_flight);
  }
  out.clients_active = static_cast<std::uint32_t>(actors.size());
  out.top_client_in_flight = held == 0 ? 0 : static_cast<double>(most) / held;
  out.replicas = spread.replicas;
  out.replicas_open = spread.open;
  out.worst_replica = spread.worst;
  return out;
}

}  // namespace weir::inline v0::inline control
