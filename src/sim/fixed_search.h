#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// A limit and what it got.
struct BestLimit {
  std::uint32_t limit = 0;  // the smallest with (almost) the best goodput
  double goodput = 0;       // calls per second
};

/// The result of the best fixed limit, of the run and of each phase, and how the scenario's own
/// limiter compares.
struct FixedSearch {
  std::uint32_t limit = 0;
  double goodput = 0;
  double own_goodput = 0;
  double own_dispatch_p99_ms = 0;
  double unloaded_p99_ms = 0;  // of the service time alone
  std::vector<BestLimit> phases{};
  std::vector<double> own_phases{};  // goodput of the scenario's own limiter
  int runs = 0;

  static constexpr double kGoodputShare = 0.95;
  static constexpr double kLatencyFactor = 3;
  static constexpr double kOracleTolerance = 0.02;
  [[nodiscard]] bool enough_goodput() const noexcept {
    return own_goodput >= kGoodputShare * goodput;
  }
  [[nodiscard]] bool quick_enough() const noexcept {
    return own_dispatch_p99_ms <= kLatencyFactor * unloaded_p99_ms;
  }
  /// Whether the scenario states the goodput that this search found, for every phase.
  [[nodiscard]] bool oracles_hold(const Scenario& scenario) const noexcept;
};

/// Tries fixed limits: powers of two until one is never reached or two in a row gain nothing, then
/// around the best ones.
[[nodiscard]] FixedSearch search_fixed(const Scenario& scenario, const Progress& progress);
[[nodiscard]] std::string printed(const Scenario& scenario, const FixedSearch& search);

}  // namespace weir::inline v0::sim
