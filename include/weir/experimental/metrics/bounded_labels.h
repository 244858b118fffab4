#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::inline v0::metrics {

/// The label value for everything that has no series of its own.
inline constexpr std::string_view kOtherLabel = "other";

/// Counters of one label whose values are fixed at start; all other values count as "other".
///
/// Promises: the number of series never grows after construction, whatever names occur; no count is
/// lost. Thread-safety: all members, any thread. Lifetime: owns the names.
/// Cost: slot() is a linear search, meant for start-up or rare events; add(slot) is one relaxed
/// add. No allocation after construction.
class LabelledCounters {
 public:
  explicit LabelledCounters(std::span<const std::string_view> values);

  /// The slot of a value; the last slot ("other") if it has none.
  [[nodiscard]] std::size_t slot(std::string_view value) const noexcept;
  void add(std::size_t slot, std::uint64_t n = 1) noexcept {
    counters_[slot].fetch_add(n, std::memory_order_relaxed);
  }
  void add(std::string_view value, std::uint64_t n = 1) noexcept { add(slot(value), n); }

  /// Number of series, "other" included.
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }
  [[nodiscard]] std::string_view name(std::size_t slot) const noexcept { return names_[slot]; }
  [[nodiscard]] std::uint64_t value(std::size_t slot) const noexcept {
    return counters_[slot].load(std::memory_order_relaxed);
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::atomic<std::uint64_t>> counters_;
};

/// One series of a label whose values clients choose (a peer, an actor).
struct LabelledValue {
  std::string_view label;
  double value = 0;

  bool operator==(const LabelledValue&) const = default;
};

/// Moves the `top` largest to the front, largest first (ties by label), and adds the rest up in one
/// "other" entry after them. A label that is itself "other" is added to it too. Returns the part of
/// `values` to publish: at most top + 1 entries. Cost: O(n log top), in place, no allocation.
[[nodiscard]] std::span<const LabelledValue> fold_top(std::span<LabelledValue> values,
                                                      std::size_t top) noexcept;

}  // namespace weir::inline v0::metrics
