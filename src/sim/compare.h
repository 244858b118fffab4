#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// Which limiter replaces a scenario's own: a policy by name, `fixed:64`, or `none`.
struct LimiterChoice {
  LimitKind kind = LimitKind::kAuto;
  bool none = false;        // no admission: every request is let in
  std::uint32_t fixed = 0;  // for fixed only; 0: the scenario's initial limit
};

[[nodiscard]] std::optional<LimiterChoice> limiter_named(std::string_view name) noexcept;
[[nodiscard]] std::string name_of(const LimiterChoice& choice);

/// The scenario with that limiter at every service that has admission, or without admission.
[[nodiscard]] Scenario with_limiter(const Scenario& scenario, const LimiterChoice& choice);

/// One line of a comparison.
struct CompareRow {
  std::string limiter{};
  double goodput = 0;          // calls per second over all loads
  double success_ratio = 0;    // of the calls that ended
  double dispatch_p99_ms = 0;  // at the first service with admission
  bool has_limit = true;
  std::uint32_t limit_min = 0;
  std::uint32_t limit_max = 0;
  std::size_t verdicts_held = 0;
  std::size_t verdicts = 0;
  std::string failed{};  // names of the verdicts that fail
};

[[nodiscard]] CompareRow row_of(const Scenario& scenario, const RunResult& result,
                                std::string limiter);
[[nodiscard]] std::string compare_table(const Scenario& scenario,
                                        const std::vector<CompareRow>& rows);

/// The result of the best fixed limit, and how the scenario's own limiter compares.
struct FixedSearch {
  std::uint32_t limit = 0;  // the smallest with (almost) the best goodput
  double goodput = 0;
  double own_goodput = 0;
  double own_dispatch_p99_ms = 0;
  double unloaded_p99_ms = 0;  // of the service time alone
  int runs = 0;

  static constexpr double kGoodputShare = 0.95;
  static constexpr double kLatencyFactor = 3;
  [[nodiscard]] bool enough_goodput() const noexcept {
    return own_goodput >= kGoodputShare * goodput;
  }
  [[nodiscard]] bool quick_enough() const noexcept {
    return own_dispatch_p99_ms <= kLatencyFactor * unloaded_p99_ms;
  }
};

/// Tries fixed limits from 1 to 1024: every octave, then around the best.
[[nodiscard]] FixedSearch search_fixed(const Scenario& scenario, const Progress& progress);
[[nodiscard]] std::string printed(const FixedSearch& search);

}  // namespace weir::inline v0::sim
