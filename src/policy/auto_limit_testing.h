#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "auto_limit.h"

namespace weir::inline v0::inline policy {

/// The windows of a service with k workers that each take `time` per request. More than k requests
/// at once share the workers, so the latency of all grows in proportion.
struct ServiceModel {
  double workers = 16;
  Duration time = std::chrono::milliseconds(10);
  double demand = 1e9;  // requests per second that arrive
  double p10_factor = 0.9;
  double p90_factor = 1.2;
  double patience_s = 1e6;  // clients leave after this
  bool stalled = false;     // nothing is answered
  TimePoint now = time_from_ns(1'000'000'000);

  LimitSample window(const AutoLimit& policy) {
    const double s = to_seconds(time);
    const double wanted = demand * s;
    const double in_flight = std::min<double>(policy.limit(), wanted);
    const double busy = std::min(in_flight, workers);
    const bool leave = stalled || in_flight * s / busy > patience_s;
    const double latency = leave ? patience_s : in_flight * s / busy;
    const double throughput = in_flight / latency;
    const double wait = latency - s;
    const WindowRules rules = policy.window_rules();
    const double enough = rules.early_close_samples == 0
                              ? 1e9
                              : static_cast<double>(rules.early_close_samples) / throughput;
    const double length =
        std::min(to_seconds(rules.duration), std::max(to_seconds(rules.duration_min), enough));
    LimitSample w;
    w.opened_at = now;
    now += from_seconds(length);
    w.closed_at = now;
    w.sample_count = static_cast<std::uint32_t>(throughput * length);
    w.latency_avg = from_seconds(latency);
    w.latency_p10 = from_seconds(s * p10_factor + wait);
    w.latency_p50 = from_seconds(s + wait);
    w.latency_p90 = from_seconds(s * p90_factor + wait);
    if (leave) {
      w.abandoned_count = w.sample_count;
      w.latency_p10 = w.latency_p50 = w.latency_p90 = from_seconds(latency);
    }
    w.latency_min = w.latency_p10;
    w.in_flight = w.in_flight_max = static_cast<std::uint32_t>(in_flight);
    w.refused_count = wanted > policy.limit() ? 100 : 0;
    return w;
  }

  static Duration from_seconds(double s) { return Duration(static_cast<std::int64_t>(s * 1e9)); }
};

/// Runs windows for a span of time; passes each decision to `look`.
inline void run_for(AutoLimit& policy, ServiceModel& model, Duration span,
                    const std::function<void(const LimitDecision&)>& look = nullptr) {
  const TimePoint end = model.now + span;
  for (int i = 0; i < 100000 && model.now < end; ++i) {
    const LimitDecision decision = policy.on_window(model.window(policy));
    if (look) look(decision);
  }
}

inline LimitConfig config_of(std::uint32_t initial = 128) {
  LimitConfig config;
  config.initial_limit = initial;
  return config;
}

inline void learn(AutoLimit& policy, ServiceModel& model) {
  run_for(policy, model, std::chrono::seconds(5));
}

inline LimitSample slower(LimitSample w, Duration wait) {
  w.latency_avg += wait;
  w.latency_p10 += wait;
  w.latency_p50 += wait;
  w.latency_p90 += wait;
  return w;
}

/// 80 of 100 workers busy with a limit of 128 that was never reached.
inline ServiceModel calm_model() {
  ServiceModel model;
  model.workers = 100;
  model.demand = 8000;
  return model;
}

}  // namespace weir::inline v0::inline policy
