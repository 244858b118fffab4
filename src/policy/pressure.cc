#include "weir/policy/pressure.h"

#include <algorithm>
#include <cmath>

#include "weir/base/config_check.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr double kElevatedShedMax = 0.3;  // at the end of ELEVATED; from HIGH on, all are shed

constexpr Duration kBetweenRequests = std::chrono::seconds(1);

double sane(double usage) {
  if (std::isnan(usage)) return 1.0;
  return std::clamp(usage, 0.0, 1.0);
}

PressureLevel level_of(double usage, const PressureConfig& config) {
  if (usage >= config.critical_watermark) return PressureLevel::kCritical;
  if (usage >= config.high_watermark) return PressureLevel::kHigh;
  if (usage >= config.elevated_watermark()) return PressureLevel::kElevated;
  return PressureLevel::kNormal;
}

double shed_probability(double usage, const PressureConfig& config) {
  const PressureLevel level = level_of(usage, config);
  if (level == PressureLevel::kNormal) return 0.0;
  if (level >= PressureLevel::kHigh) return 1.0;
  const double band = config.high_watermark - config.elevated_watermark();
  const double share = (usage - config.elevated_watermark()) / band;
  return std::isnan(share) ? 1.0 : std::clamp(share, 0.0, 1.0) * kElevatedShedMax;
}

/// The fewest closures that bring connection usage below the line.
std::uint32_t closures_needed(std::uint32_t active, double usage, double line) {
  if (active == 0 || !(usage >= line)) return 0;
  const double capacity = std::round(active / usage);  // usage was computed from it: a whole number
  const double keep = std::ceil(line * capacity) - 1;  // the most that stay below the line
  if (!(keep > 0)) return active;
  return active - std::min(active, static_cast<std::uint32_t>(std::min<double>(keep, active)));
}

std::uint32_t closures(PressureLevel level, const PressureState& state, double usage,
                       const PressureConfig& config) {
  if (level == PressureLevel::kNormal) return 0;
  const std::uint32_t idle = std::min(state.idle_connections, state.active_connections);
  const std::uint32_t gentle =
      std::min(idle, closures_needed(state.active_connections, usage, config.elevated_watermark()));
  if (level != PressureLevel::kCritical) return gentle;
  const std::uint32_t hard =
      closures_needed(state.active_connections, usage, config.high_watermark);
  return std::min(state.active_connections, std::max({gentle, hard, 1U}));
}

void decide_stream(PressureDecision& decision, double arenas, double pending,
                   const PressureConfig& config) {
  decision.accept_stream = arenas < config.high_watermark && arenas < config.critical_watermark;
  decision.use_pending_queue = !decision.accept_stream && arenas < config.critical_watermark &&
                               pending < config.high_watermark;
}

}  // namespace

PressureDecision evaluate_pressure(const PressureState& state,
                                   const PressureConfig& config) noexcept {
  const double write = sane(state.tcp_write_slab_usage);
  const double arenas = sane(state.arena_slab_usage);
  const double pending = sane(state.pending_stream_usage);
  const double handles = sane(state.handle_slab_usage);
  const double others = std::max({write, arenas, pending});
  const double fullest = std::max(others, handles);

  PressureDecision decision;
  decision.level = level_of(fullest, config);
  if (decision.level != PressureLevel::kNormal) {
    decision.source = fullest == write     ? PressureSource::kWriteSlab
                      : fullest == arenas  ? PressureSource::kArenas
                      : fullest == pending ? PressureSource::kPendingStreams
                                           : PressureSource::kHandles;
  }

  const double blocking = state.idle_connections > 0 ? others : fullest;
  decision.accept_connection = level_of(blocking, config) < PressureLevel::kHigh;
  decision.connection_shed_probability = shed_probability(blocking, config);

  decide_stream(decision, arenas, pending, config);

  const bool critical = decision.level == PressureLevel::kCritical;
  decision.drop_oldest_backpressure =
      (critical && state.oldest_backpressure_age >= config.stall_grace) ||
      state.oldest_backpressure_age > config.backpressure_timeout ||
      state.backpressure_queue_len > config.backpressure_list_max;
  decision.drop_oldest_pending_stream =
      state.oldest_pending_stream_age > config.pending_stream_timeout;
  decision.connections_to_timeout = closures(decision.level, state, handles, config);
  if (decision.level == PressureLevel::kElevated) decision.idle_at_least = kBetweenRequests;
  if (critical) decision.stalled_at_least = config.stall_grace;
  return decision;
}

ConfigErrors PressureConfig::validate() const {
  constexpr Duration kTimeoutMin = std::chrono::milliseconds(1);
  constexpr Duration kTimeoutMax = std::chrono::hours(24);
  constexpr std::uint32_t kCountMax = 1'000'000;
  ConfigErrors errors;
  check_range(errors, "critical_watermark", critical_watermark, 0.01, 1.0);
  check_range(errors, "high_watermark", high_watermark, 0.01, critical_watermark);
  check_range(errors, "backpressure_list_max", backpressure_list_max, 1U, kCountMax);
  check_range(errors, "backpressure_timeout_ms", backpressure_timeout, kTimeoutMin, kTimeoutMax);
  check_range(errors, "pending_stream_pool_size", pending_stream_pool_size, 0U, kCountMax);
  check_range(errors, "pending_stream_timeout_ms", pending_stream_timeout, kTimeoutMin,
              kTimeoutMax);
  return errors;
}

}  // namespace weir::inline v0::inline policy
