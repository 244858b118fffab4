#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/experimental/metrics/metric_info.h"
#include "weir/experimental/metrics/text_writer.h"

namespace weir::inline v0::metrics {

/// Every metric family that Weir exports: one enumerator per row of metrics.def, in its order.
enum class Metric : std::uint8_t {
#define WEIR_METRIC(id, name, type, unit, labels, help) k##id,
#include "metrics/metrics.def"
#undef WEIR_METRIC
};

/// The possible values of a label, for the documents.
struct LabelInfo {
  std::string_view name;
  std::string_view values;
  std::string_view help;
};

/// All families, in the order of the table; index = static_cast<size_t>(Metric).
[[nodiscard]] std::span<const MetricInfo> all_metrics() noexcept;
[[nodiscard]] std::span<const LabelInfo> all_labels() noexcept;
[[nodiscard]] const MetricInfo& info(Metric metric) noexcept;

/// A page of Weir's own metrics: a TextWriter that takes families from the table and writes each
/// only once, because the format forbids a family in two places.
class MetricsPage {
 public:
  explicit MetricsPage(std::span<char> buffer) noexcept : writer_(buffer) {}

  bool family(Metric metric) noexcept {
    const auto index = static_cast<std::size_t>(metric);
    WEIR_ASSERT(!started_.test(index));
    started_.set(index);
    return writer_.family(info(metric));
  }
  template <class Value>
  bool sample(std::initializer_list<std::string_view> labels, const Value& value) noexcept {
    return writer_.sample(labels, value);
  }
  /// A family with one series and no labels.
  template <class Value>
  bool single(Metric metric, const Value& value) noexcept {
    return family(metric) && sample({}, value);
  }

  [[nodiscard]] bool has(Metric metric) const noexcept {
    return started_.test(static_cast<std::size_t>(metric));
  }
  [[nodiscard]] std::string_view text() const noexcept { return writer_.text(); }
  [[nodiscard]] bool full() const noexcept { return writer_.full(); }

 private:
  TextWriter writer_;
  std::bitset<256> started_;
};

/// docs/reference/metrics.md, generated from metrics.def; a test compares it with the file.
[[nodiscard]] std::string metrics_reference();

}  // namespace weir::inline v0::metrics
