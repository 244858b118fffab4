#include "policy/discovery_rules.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr std::uint32_t kDoublingsMax = 5;  // 1 s to 32 s

}  // namespace

Duration DiscoveryRules::spread(Duration delay, Rng& rng) const noexcept {
  return std::max(rng.between(delay * 4 / 5, delay), times_.ttl_min);
}

/// ttl_min, doubled with each further failure.
Duration DiscoveryRules::after_failures() const noexcept {
  return std::min(times_.ttl_min * (1U << (failures_ - 1)), times_.failed_again_max);
}

bool DiscoveryRules::confirm_empty(TimePoint now) noexcept {
  if (empties_ == 0) first_empty_ = now;
  empties_ = std::min(empties_ + 1, kEmptyCount);
  return empties_ == kEmptyCount && now - first_empty_ >= times_.empty_span_min;
}

DiscoveryRules::Decision DiscoveryRules::on_lookup(Part first, Part second, TimePoint now,
                                                   Rng& rng) noexcept {
  const std::array<Part, kPartsMax> parts = {first, second};
  const auto any = [&parts](LookupOutcome wanted) {
    return std::any_of(parts.begin(), parts.end(),
                       [wanted](const Part& part) { return part.outcome == wanted; });
  };
  const bool failed = any(LookupOutcome::kFailed);
  failures_ = failed ? std::min(failures_ + 1, kDoublingsMax + 1) : 0;

  Decision decision;
  if (any(LookupOutcome::kRecords)) {
    empties_ = 0;
    Duration ttl = failed ? after_failures() : times_.ttl_max;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].outcome == LookupOutcome::kRecords) {
        decision.actions[i] = SetAction::kReplace;
        ttl = std::min(ttl, parts[i].ttl);
      } else if (parts[i].outcome == LookupOutcome::kEmpty) {
        decision.actions[i] = SetAction::kClear;
      }
    }
    decision.reason = failed ? DiscoveryReason::kPartlyFailed : DiscoveryReason::kRecords;
    decision.next = spread(std::max(ttl, times_.ttl_min), rng);
  } else if (failed) {
    decision.reason = DiscoveryReason::kFailed;
    decision.next = spread(after_failures(), rng);
  } else {
    const bool confirmed = confirm_empty(now);
    if (confirmed) decision.actions.fill(SetAction::kClear);
    decision.reason =
        confirmed ? DiscoveryReason::kEmptyConfirmed : DiscoveryReason::kEmptyUnproven;
    decision.next = spread(times_.empty_again, rng);
  }
  return decision;
}

}  // namespace weir::inline v0::inline policy
