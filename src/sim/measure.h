#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "scenario.h"

namespace weir::inline v0::sim {

/// What a measure describes, which decides the keys that a verdict may have.
enum class MeasureOf : std::uint8_t { kCalls, kService, kRun };

enum class MeasureUnit : std::uint8_t { kPerSecond, kRatio, kMillis, kCount, kSeconds };

struct MeasureFacts {
  std::string_view name;
  MeasureOf of = MeasureOf::kCalls;
  MeasureUnit unit = MeasureUnit::kRatio;
};

/// In the order of the enumerators; the only list of names.
inline constexpr std::array kMeasures = {
    MeasureFacts{"offered", MeasureOf::kCalls, MeasureUnit::kPerSecond},
    MeasureFacts{"goodput", MeasureOf::kCalls, MeasureUnit::kPerSecond},
    MeasureFacts{"success_ratio", MeasureOf::kCalls, MeasureUnit::kRatio},
    MeasureFacts{"shed_ratio", MeasureOf::kCalls, MeasureUnit::kRatio},
    MeasureFacts{"amplification", MeasureOf::kCalls, MeasureUnit::kRatio},
    MeasureFacts{"slow_ratio", MeasureOf::kCalls, MeasureUnit::kRatio},
    MeasureFacts{"latency_p50", MeasureOf::kCalls, MeasureUnit::kMillis},
    MeasureFacts{"latency_p90", MeasureOf::kCalls, MeasureUnit::kMillis},
    MeasureFacts{"latency_p99", MeasureOf::kCalls, MeasureUnit::kMillis},
    MeasureFacts{"latency_p999", MeasureOf::kCalls, MeasureUnit::kMillis},
    MeasureFacts{"latency_mean", MeasureOf::kCalls, MeasureUnit::kMillis},
    MeasureFacts{"dispatch_p50", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"dispatch_p99", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"dispatch_mean", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"queue_mean", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"wait_p99", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"refusal_p50", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"refusal_p99", MeasureOf::kService, MeasureUnit::kMillis},
    MeasureFacts{"limit_min", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"limit_max", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"limit_end", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"in_flight_max", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"queue_max", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"memory_max", MeasureOf::kService, MeasureUnit::kRatio},
    MeasureFacts{"crashes", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"wasted_ratio", MeasureOf::kService, MeasureUnit::kRatio},
    MeasureFacts{"dispatched", MeasureOf::kService, MeasureUnit::kPerSecond},
    MeasureFacts{"replica_tries", MeasureOf::kService, MeasureUnit::kRatio},
    MeasureFacts{"ejections", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"suspicions", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"critical_shed", MeasureOf::kRun, MeasureUnit::kCount},
    MeasureFacts{"refused", MeasureOf::kService, MeasureUnit::kCount},
    MeasureFacts{"recovery_time", MeasureOf::kCalls, MeasureUnit::kSeconds},
};

inline constexpr std::array<std::string_view, kMeasures.size()> kMeasureNames = [] {
  std::array<std::string_view, kMeasures.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMeasures[i].name;
  return names;
}();

[[nodiscard]] constexpr const MeasureFacts& facts_of(Measure measure) noexcept {
  return kMeasures[static_cast<std::size_t>(measure)];
}

[[nodiscard]] constexpr std::string_view suffix_of(MeasureUnit unit) noexcept {
  constexpr std::array<std::string_view, 5> kSuffixes = {"/s", "", " ms", "", " s"};
  return kSuffixes[static_cast<std::size_t>(unit)];
}

static_assert(kMeasures.size() == static_cast<std::size_t>(Measure::kRecoveryTime) + 1);

}  // namespace weir::inline v0::sim
