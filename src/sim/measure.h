#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::sim {

/// What a measure describes, which decides the keys that a verdict may have.
enum class MeasureOf : std::uint8_t { kCalls, kService, kRun };

enum class MeasureUnit : std::uint8_t { kPerSecond, kRatio, kMillis, kCount, kSeconds };

// Every measure: enumerator, name, what it describes, unit, and its formula for run.cc: `c` are the
// totals of the selected calls, `s` those of the service, over `seconds`; `v` is the verdict.
// Latencies of calls are of those that succeeded, as the caller sees them, all attempts included;
// dispatch is the time from the permit to the answer, or what a replica was given; slow is a call
// without a good answer within `above`; in_flight_mean is of those that were answered; a fair share
// is what the gateway that completed least (most) completed, of the mean of all gateways. Hedges
// are counted at the gateway, messages at their destination. The last seven are not totals of one
// service: run.cc computes them. Diagnosed is the share of seconds with the diagnosis `cause`.
#define WEIR_MEASURES(X)                                                                     \
  X(kOffered, "offered", kCalls, kPerSecond, ratio(c.offered, seconds))                      \
  X(kGoodput, "goodput", kCalls, kPerSecond, ratio(c.ok(), seconds))                         \
  X(kSuccessRatio, "success_ratio", kCalls, kRatio, ratio(c.ok(), c.ended_all()))            \
  X(kShedRatio, "shed_ratio", kCalls, kRatio, ratio(c.refused, c.arrived))                   \
  X(kAmplification, "amplification", kCalls, kRatio, ratio(c.attempts, c.offered))           \
  X(kSlowRatio, "slow_ratio", kCalls, kRatio, slow_ratio(c, v.above))                        \
  X(kLatencyP50, "latency_p50", kCalls, kMillis, to_millis(c.latency.quantile(0.5)))         \
  X(kLatencyP90, "latency_p90", kCalls, kMillis, to_millis(c.latency.quantile(0.9)))         \
  X(kLatencyP99, "latency_p99", kCalls, kMillis, to_millis(c.latency.quantile(0.99)))        \
  X(kLatencyP999, "latency_p999", kCalls, kMillis, to_millis(c.latency.quantile(0.999)))     \
  X(kAbsentRatio, "absent_ratio", kCalls, kRatio, ratio(c.absent, c.ok()))                   \
  X(kLatencyMean, "latency_mean", kCalls, kMillis, to_millis(c.latency.mean()))              \
  X(kDispatchP50, "dispatch_p50", kService, kMillis, to_millis(s.dispatch.quantile(0.5)))    \
  X(kDispatchP99, "dispatch_p99", kService, kMillis, to_millis(s.dispatch.quantile(0.99)))   \
  X(kDispatchMean, "dispatch_mean", kService, kMillis, to_millis(s.dispatch.mean()))         \
  X(kQueueMean, "queue_mean", kService, kMillis, to_millis(s.queue.mean()))                  \
  X(kWaitP99, "wait_p99", kService, kMillis, to_millis(s.wait.quantile(0.99)))               \
  X(kRefusalP50, "refusal_p50", kService, kMillis, to_millis(s.refusal.quantile(0.5)))       \
  X(kRefusalP99, "refusal_p99", kService, kMillis, to_millis(s.refusal.quantile(0.99)))      \
  X(kLimitMin, "limit_min", kService, kCount, s.limit_min)                                   \
  X(kLimitMax, "limit_max", kService, kCount, s.limit_max)                                   \
  X(kLimitEnd, "limit_end", kService, kCount, s.limit_end)                                   \
  X(kInFlightMax, "in_flight_max", kService, kCount, s.in_flight_max)                        \
  X(kInFlightMean, "in_flight_mean", kService, kCount, in_flight_mean(s, seconds))           \
  X(kQueueMax, "queue_max", kService, kCount, s.queue_max)                                   \
  X(kMemoryMax, "memory_max", kService, kRatio, s.memory_max)                                \
  X(kCrashes, "crashes", kService, kCount, static_cast<double>(s.crashes))                   \
  X(kWastedRatio, "wasted_ratio", kService, kRatio, ratio(s.wasted_ns, s.busy_ns))           \
  X(kDispatched, "dispatched", kService, kPerSecond, ratio(s.dispatched, seconds))           \
  X(kReplicaTries, "replica_tries", kService, kRatio, ratio(s.replica_tries, s.dispatched))  \
  X(kEjections, "ejections", kService, kCount, static_cast<double>(s.ejections))             \
  X(kHedges, "hedges", kService, kCount, static_cast<double>(s.hedges.sent))                 \
  X(kHedgeRatio, "hedge_ratio", kService, kRatio, ratio(s.hedges.sent, s.dispatched))        \
  X(kHedgeWinRatio, "hedge_win_ratio", kService, kRatio, ratio(s.hedges.won, s.hedges.sent)) \
  X(kMessagesDropped, "messages_dropped", kService, kCount,                                  \
    static_cast<double>(s.messages.dropped))                                                 \
  X(kMessagesRefused, "messages_refused", kService, kCount,                                  \
    static_cast<double>(s.messages.refused))                                                 \
  X(kMessagesExpired, "messages_expired", kService, kCount,                                  \
    static_cast<double>(s.messages.expired))                                                 \
  X(kMessagesQueued, "messages_queued_max", kService, kCount, s.messages.queued_max)         \
  X(kSuspicions, "suspicions", kService, kCount, static_cast<double>(s.suspicions))          \
  X(kCriticalShed, "critical_shed", kRun, kCount, 0)                                         \
  X(kFairShareMin, "fair_share_min", kService, kRatio, 0)                                    \
  X(kFairShareMax, "fair_share_max", kService, kRatio, 0)                                    \
  X(kRefused, "refused", kService, kCount, 0)                                                \
  X(kNoHedge, "no_hedge", kService, kCount, 0)                                               \
  X(kDiagnosed, "diagnosed", kService, kRatio, 0)                                            \
  X(kRecoveryTime, "recovery_time", kCalls, kSeconds, 0)

enum class Measure : std::uint8_t {
#define WEIR_X(enumerator, name, of, unit, formula) enumerator,
  WEIR_MEASURES(WEIR_X)
#undef WEIR_X
};

struct MeasureFacts {
  std::string_view name;
  MeasureOf of = MeasureOf::kCalls;
  MeasureUnit unit = MeasureUnit::kRatio;
};
inline constexpr std::array kMeasures = {
#define WEIR_X(enumerator, name, of, unit, formula) \
  MeasureFacts{name, MeasureOf::of, MeasureUnit::unit},
    WEIR_MEASURES(WEIR_X)
#undef WEIR_X
};

inline constexpr std::array<std::string_view, kMeasures.size()> kMeasureNames = [] {
  std::array<std::string_view, kMeasures.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMeasures[i].name;
  return names;
}();

[[nodiscard]] constexpr const MeasureFacts& facts_of(Measure measure) noexcept {
  return kMeasures[static_cast<std::size_t>(measure)];
}

}  // namespace weir::inline v0::sim
