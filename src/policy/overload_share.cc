#include "policy/overload_share.h"

#include <algorithm>
#include <cmath>

namespace weir::inline v0::inline policy {

std::optional<double> OverloadShare::of(const OutcomeSources& outcomes,
                                        bool wait_for_others) noexcept {
  const OutcomeCounts& total = outcomes.total;
  if (total.all() < kAnswersMin) return std::nullopt;
  if (total.overloaded < kOverloadedMin && total.all() < kAnswersEnough) return std::nullopt;
  double share = static_cast<double>(total.overloaded) / static_cast<double>(total.all());
  bool too_few = false;
  for (const auto& dimension : outcomes.buckets) {
    for (const OutcomeCounts& source : dimension) {
      if (source.overloaded == 0) continue;
      // The counters are read one after the other: a source may be ahead of the total.
      const std::uint64_t others = total.all() - std::min(source.all(), total.all());
      const std::uint64_t bad = total.overloaded - std::min(source.overloaded, total.overloaded);
      if (others >= kOthersMin) {
        share = std::min(share, static_cast<double>(bad) / static_cast<double>(others));
      } else if (others > 0) {
        too_few = true;
      }
    }
  }
  if (share < kCountsFrom) return 0;
  if (too_few && wait_for_others) return std::nullopt;
  return std::min(share, 1.0);
}

std::uint32_t overloads_for_share(double share, std::uint32_t good,
                                  std::uint32_t at_most) noexcept {
  if (share <= 0) return 0;
  if (share >= 1 || good == 0) return at_most;
  const double wanted = std::ceil(good * share / (1 - share));
  return wanted < at_most ? std::max(static_cast<std::uint32_t>(wanted), 1U) : at_most;
}

}  // namespace weir::inline v0::inline policy
