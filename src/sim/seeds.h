#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// One verdict over several seeds.
struct SeedsVerdict {
  VerdictSpec spec{};
  std::vector<VerdictResult> results{};  // one per seed, in order

  /// The index of the seed that is furthest on the wrong side of a bound, or nearest to it.
  [[nodiscard]] std::size_t worst() const noexcept;
  [[nodiscard]] double median() const;
  [[nodiscard]] std::size_t failed() const noexcept;
};

/// The verdicts of one scenario over several seeds: its own and those that follow it.
struct SeedsResult {
  std::uint64_t first_seed = 0;
  std::size_t seeds = 0;
  std::vector<SeedsVerdict> verdicts{};

  [[nodiscard]] bool passed() const noexcept;
};

[[nodiscard]] SeedsResult run_seeds(const Scenario& scenario, std::size_t seeds,
                                    const Progress& progress = nullptr);
[[nodiscard]] std::string seeds_text(const Scenario& scenario, const SeedsResult& result);
[[nodiscard]] std::string seeds_json(const Scenario& scenario, const SeedsResult& result);

}  // namespace weir::inline v0::sim
