#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"

namespace weir::inline v0::metrics {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };
WEIR_ENUM_NAMES(MetricType, "counter", "gauge", "histogram")

/// One metric family: its name, its labels, its meaning.
///
/// Promises: nothing is copied; the texts must outlive every use (string literals do).
struct MetricInfo {
  std::string_view name;  // "weir_admission_total"
  MetricType type = MetricType::kGauge;
  std::string_view unit;    // "requests", "ms", "bytes", "1" for a ratio; for the documents
  std::string_view labels;  // label names, one space between; empty when there are none
  std::string_view help;    // one sentence

  bool operator==(const MetricInfo&) const = default;
};

/// The number of label names in `labels`.
[[nodiscard]] constexpr std::size_t label_count(std::string_view labels) noexcept {
  if (labels.empty()) return 0;
  std::size_t count = 1;
  for (const char c : labels) count += c == ' ' ? 1 : 0;
  return count;
}

/// The i-th label name; empty past the end.
[[nodiscard]] constexpr std::string_view label_name(std::string_view labels,
                                                    std::size_t index) noexcept {
  for (; index > 0; --index) {
    const std::size_t space = labels.find(' ');
    if (space == std::string_view::npos) return {};
    labels.remove_prefix(space + 1);
  }
  return labels.substr(0, labels.find(' '));
}

}  // namespace weir::inline v0::metrics
