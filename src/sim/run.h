#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "recorder.h"
#include "scenario.h"
#include "world.h"

namespace weir::inline v0::sim {

/// The result of one verdict of the scenario.
struct VerdictResult {
  VerdictSpec spec{};
  double value = 0;   // in the measure's unit
  bool known = true;  // false: it never happened (no recovery)
  bool holds = false;
};

/// The result of one run of a scenario.
struct RunResult {
  Recorder recorder;
  Balance balance;
  std::vector<VerdictResult> verdicts{};
  std::uint64_t digest = 0;  // of all numbers: equal runs have equal digests
  double wall_seconds = 0;   // set by the caller that has a clock; 0: unknown

  [[nodiscard]] bool passed() const noexcept;
};

/// Called from time to time with the progress of a run, 0 to 1.
using Progress = std::function<void(double share, std::uint64_t requests)>;

[[nodiscard]] RunResult run_scenario(const Scenario& scenario,
                                     const PolicyMaker& make_policy = nullptr,
                                     const Progress& progress = nullptr);

/// The value of a measure over the part of the run that the verdict names; nullopt if there is
/// none.
[[nodiscard]] std::optional<double> measure(const VerdictSpec& verdict, const Recorder& recorder,
                                            const Balance& balance);

/// The sum of all calls of a span that a class and a load select.
[[nodiscard]] CallTotals select(const SpanTotals& span, const std::vector<Cohort>& cohorts,
                                std::optional<Priority> priority,
                                std::optional<std::uint32_t> load);

}  // namespace weir::inline v0::sim
