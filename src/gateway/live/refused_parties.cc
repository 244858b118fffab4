#include "live/refused_parties.h"

#include <algorithm>
#include <cmath>

namespace weir::inline v0::gateway {

void RefusedParties::read(const std::vector<BudgetRow>& rows, double seconds) {
  std::unordered_map<std::uint64_t, Known> now;
  top_.clear();
  for (const BudgetRow& row : rows) {
    // One that was not among the rows before may have been refused earlier: its rate is not known.
    const auto known = known_.find(row.id);
    const Known before = known != known_.end() ? known->second : Known{.refused = row.refused};
    const std::uint64_t more = row.refused - std::min(row.refused, before.refused);
    RefusedParty party{.row = row,
                       .refused_per_s = static_cast<double>(more) / std::max(seconds, 1e-3)};
    if (more > 0) {
      party.since_s = before.since_s + static_cast<std::uint64_t>(std::lround(seconds));
    }
    now.emplace(row.id, Known{.refused = row.refused, .since_s = party.since_s});
    top_.push_back(std::move(party));
  }
  known_ = std::move(now);
  std::stable_sort(top_.begin(), top_.end(), [](const RefusedParty& a, const RefusedParty& b) {
    return a.refused_per_s > b.refused_per_s;
  });
  if (top_.size() > kShown) top_.resize(kShown);
}

}  // namespace weir::inline v0::gateway
