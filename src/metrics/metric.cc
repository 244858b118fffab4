#include "metrics/metric.h"

#include <array>

namespace weir::inline v0::metrics {
constexpr std::array kMetrics = {
#define WEIR_METRIC(id, name, type, unit, labels, help) \
  MetricInfo{name, MetricType::k##type, unit, labels, help},
#include "metrics/metrics.def"
#undef WEIR_METRIC
};
static_assert(kMetrics.size() <= 256, "Metric is one byte");

constexpr std::array kLabels = {
#define WEIR_LABEL(name, values, help) LabelInfo{name, values, help},
#include "metrics/metric_labels.def"
#undef WEIR_LABEL
};

std::span<const MetricInfo> all_metrics() noexcept {
  return kMetrics;
}

std::span<const LabelInfo> all_labels() noexcept {
  return kLabels;
}

const MetricInfo& info(Metric metric) noexcept {
  return kMetrics[static_cast<std::size_t>(metric)];
}

}  // namespace weir::inline v0::metrics
