#pragma once

#include <cstdint>

#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline policy {

/// How full the memory of the machine or cgroup is.
///   kNormal     all classes are admitted
///   kPressured  above the first threshold: the share low_priority_shed_ratio of low is shed
///   kCritical   above the second threshold: normal and low are shed
/// Critical and high are never refused because of memory.
enum class MemoryLevel : std::uint8_t { kNormal, kPressured, kCritical };

WEIR_ENUM_NAMES(MemoryLevel, "normal", "pressured", "critical")

/// The thresholds, as fractions of the memory that may be used.
struct MemoryRules {
  double memory_pressure_threshold = 0.85;
  double memory_critical_threshold = 0.95;
  double low_priority_shed_ratio = 1.0;  // the share of low that is shed above the first threshold
  double leave_margin = 0.03;            // a level is left this far below its threshold

  bool operator==(const MemoryRules&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// The level after a reading. A level is entered above its threshold T and left at T − leave_margin
/// or below, so usage around T does not change the level repeatedly. A reading that is not a number
/// counts as 0: memory that cannot be read must not stop a service (the reader reports it).
[[nodiscard]] constexpr MemoryLevel next_memory_level(MemoryLevel before, double usage,
                                                      const MemoryRules& rules) noexcept {
  const auto holds = [usage, &rules](double threshold, bool already) {
    return usage > (already ? threshold - rules.leave_margin : threshold);
  };
  if (holds(rules.memory_critical_threshold, before == MemoryLevel::kCritical)) {
    return MemoryLevel::kCritical;
  }
  if (holds(rules.memory_pressure_threshold, before != MemoryLevel::kNormal)) {
    return MemoryLevel::kPressured;
  }
  return MemoryLevel::kNormal;
}

/// Spreads a share of refusals evenly over a counted sequence: of any N consecutive requests (by
/// ordinal), exactly floor or ceil of ratio × N are shed. It is not random: every run gives the
/// same result, and the share is right for few requests too. The ratio is stored in millionths.
class ShedShare {
 public:
  constexpr ShedShare() noexcept = default;
  constexpr explicit ShedShare(double ratio) noexcept : per_million_(rounded(ratio)) {}

  /// Whether the request with this ordinal (0, 1, 2, …; the caller's counter) is shed.
  [[nodiscard]] constexpr bool sheds(std::uint64_t ordinal) const noexcept {
    // Request n is shed if a whole number lies between ratio × n and ratio × (n + 1). The pattern
    // repeats every million requests, so the counter may grow without bound and may wrap.
    const std::uint64_t n = ordinal % kMillion;
    return (n + 1) * per_million_ / kMillion > n * per_million_ / kMillion;
  }
  [[nodiscard]] constexpr std::uint32_t per_million() const noexcept { return per_million_; }

 private:
  static constexpr std::uint32_t kMillion = 1'000'000;

  static constexpr std::uint32_t rounded(double ratio) noexcept {
    if (!(ratio > 0.0)) return 0;  // NaN too
    if (ratio >= 1.0) return kMillion;
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, small, and lround is not constexpr
    return static_cast<std::uint32_t>(ratio * kMillion + 0.5);
  }

  std::uint32_t per_million_ = kMillion;
};

/// True if the decision depends on the low requests' counter; only then should it be advanced.
[[nodiscard]] constexpr bool counts_low_request(MemoryLevel level, Priority priority) noexcept {
  return level == MemoryLevel::kPressured && priority == Priority::kLow;
}

/// Reason::kMemory or kAdmitted. `low_ordinal` is read only if counts_low_request().
///
/// Promises: total and pure; critical and high are always admitted; a higher level never admits a
/// class that a lower one refuses.
[[nodiscard]] constexpr Reason decide_memory(MemoryLevel level, Priority priority,
                                             std::uint64_t low_ordinal, ShedShare share) noexcept {
  if (priority != Priority::kNormal && priority != Priority::kLow) return Reason::kAdmitted;
  if (level == MemoryLevel::kCritical) return Reason::kMemory;
  if (counts_low_request(level, priority) && share.sheds(low_ordinal)) return Reason::kMemory;
  return Reason::kAdmitted;
}

}  // namespace weir::inline v0::inline policy
