#include "metrics/metric.h"

namespace weir::inline v0::metrics {
namespace {

std::string code(std::string_view text) {
  return "`" + std::string(text) + "`";
}

std::string label_list(std::string_view labels) {
  std::string text;
  for (std::size_t i = 0; i < label_count(labels); ++i) {
    if (i > 0) text += ", ";
    text += code(label_name(labels, i));
  }
  return text;
}

}  // namespace

std::string metrics_reference() {
  std::string text =
      "# Metrics\n\n"
      "Made from `src/metrics/metrics.def` by `weir_gen_reference metrics`; do not edit by "
      "hand.\n\n"
      "The admin endpoint serves these families at `/metrics` in Prometheus' text format. Alert\n"
      "rules over them: `packaging/prometheus/weir.rules.yml`.\n\n"
      "| name | type | unit | labels | meaning |\n"
      "|---|---|---|---|---|\n";
  for (const MetricInfo& metric : all_metrics()) {
    text += "| " + code(metric.name) + " | " + std::string(name_of(metric.type)) + " | " +
            std::string(metric.unit) + " | " + label_list(metric.labels) + " | " +
            std::string(metric.help) + " |\n";
  }
  text +=
      "\n## Labels\n\n"
      "The number of series is bounded: a value outside of its set is counted as `other`.\n\n"
      "| label | values | meaning |\n"
      "|---|---|---|\n";
  for (const LabelInfo& label : all_labels()) {
    text += "| " + code(label.name) + " | " + std::string(label.values) + " | " +
            std::string(label.help) + " |\n";
  }
  return text;
}

}  // namespace weir::inline v0::metrics
