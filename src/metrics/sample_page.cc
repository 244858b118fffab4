// Prints a page with every family of the table, two series where there are labels. A ctest pipes it
// to promtool, which checks the real output of TextWriter.
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/metric.h"

namespace {

void write_family(weir::metrics::TextWriter& writer, const weir::metrics::MetricInfo& info) {
  static constexpr std::array<std::string_view, 3> kFirst = {"alpha", "beta", "gamma"};
  static constexpr std::array<std::string_view, 3> kHostile = {"a\\b", "say \"no\"", "two\nlines"};
  const std::size_t labels = weir::metrics::label_count(info.labels);
  writer.family(info);
  for (const auto& values : {kFirst, kHostile}) {
    const auto given = std::span(values).first(labels);
    if (info.type == weir::metrics::MetricType::kHistogram) {
      weir::metrics::Histogram histogram(weir::metrics::kWaitBoundsMs);
      for (const double v : {0.05, 3.0, 49.0, 1e6}) histogram.observe(v);
      writer.sample(given, histogram.snapshot().view());
    } else {
      writer.sample(given, std::uint64_t{17});
    }
    if (labels == 0) break;
  }
}

}  // namespace

int main() {
  std::vector<char> buffer(1 << 20);
  weir::metrics::TextWriter writer(buffer);
  for (const weir::metrics::MetricInfo& info : weir::metrics::all_metrics())
    write_family(writer, info);
  if (writer.full()) return 1;
  std::fwrite(writer.text().data(), 1, writer.text().size(), stdout);
  return 0;
}
