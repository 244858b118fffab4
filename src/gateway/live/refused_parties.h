#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/control/admission_stats.h"

namespace weir::inline v0::gateway {

/// An actor or a peer, and how it is refused.
struct RefusedParty {
  BudgetRow row;
  double refused_per_s = 0;
  std::uint64_t since_s = 0;  // refused for so long without a pause; 0: not now
};

/// Who of those that hold the most is refused the most.
///
/// Thread-safety: none. Cost: O(rows) per second; bounded by the rows that are given.
class RefusedParties {
 public:
  static constexpr std::size_t kLookedAt = 256;  // those that hold the most
  static constexpr std::size_t kShown = 10;

  /// The rows of this second, `seconds` after those before.
  void read(const std::vector<BudgetRow>& rows, double seconds);
  /// Most refusals per second first.
  [[nodiscard]] const std::vector<RefusedParty>& top() const noexcept { return top_; }

 private:
  struct Known {
    std::uint64_t refused = 0;
    std::uint64_t since_s = 0;
  };
  std::unordered_map<std::uint64_t, Known> known_;  // by id, of the rows before
  std::vector<RefusedParty> top_;
};

}  // namespace weir::inline v0::gateway
