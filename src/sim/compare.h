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

}  // namespace weir::inline v0::sim
