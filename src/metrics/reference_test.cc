#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "metrics/metric.h"

namespace weir::metrics {
namespace {

TEST(MetricsReference, CommittedDocumentIsMadeFromTheTable) {
  std::ifstream file(WEIR_REFERENCE_DIR "/metrics.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(metrics_reference(), text.str())
      << "run: build/release/tools/weir_gen_reference metrics > docs/reference/metrics.md";
}

}  // namespace
}  // namespace weir::metrics
