#include "weir/experimental/metrics/bounded_labels.h"

#include <algorithm>

namespace weir::inline v0::metrics {

LabelledCounters::LabelledCounters(std::span<const std::string_view> values)
    : counters_(values.size() + 1) {
  names_.reserve(values.size() + 1);
  for (const std::string_view value : values) names_.emplace_back(value);
  names_.emplace_back(kOtherLabel);
}

std::size_t LabelledCounters::slot(std::string_view value) const noexcept {
  const std::size_t other = names_.size() - 1;
  for (std::size_t i = 0; i < other; ++i) {
    if (names_[i] == value) return i;
  }
  return other;
}

std::span<const LabelledValue> fold_top(std::span<LabelledValue> values, std::size_t top) noexcept {
  const auto named_end = std::partition(
      values.begin(), values.end(), [](const LabelledValue& v) { return v.label != kOtherLabel; });
  const auto named = static_cast<std::size_t>(named_end - values.begin());
  const std::size_t kept = std::min(top, named);
  std::partial_sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept), named_end,
                    [](const LabelledValue& a, const LabelledValue& b) {
                      return a.value != b.value ? a.value > b.value : a.label < b.label;
                    });
  if (kept == values.size()) return values;
  double rest = 0;
  for (std::size_t i = kept; i < values.size(); ++i) rest += values[i].value;
  values[kept] = {kOtherLabel, rest};
  return values.first(kept + 1);
}

}  // namespace weir::inline v0::metrics
