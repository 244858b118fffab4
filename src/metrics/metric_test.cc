#include "metrics/metric.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::metrics {
namespace {

std::string golden_text() {
  std::string text;
  for (const MetricInfo& metric : all_metrics()) {
    text += std::string(metric.name) + " " + std::string(name_of(metric.type));
    if (!metric.labels.empty()) text += " " + std::string(metric.labels);
    text += "\n";
  }
  return text;
}

std::string read_file(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Metrics, NamesTypesAndLabelsAreThoseOfTheGoldenFile) {
  EXPECT_EQ(golden_text(), read_file(WEIR_GOLDEN_DIR "/metrics.txt"))
      << "A released name must not change. For a new one, add its line to tests/golden/metrics.txt";
}

TEST(Metrics, EveryRowFollowsTheRules) {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : all_metrics()) {
    SCOPED_TRACE(metric.name);
    EXPECT_TRUE(names.insert(metric.name).second) << "twice in the table";
    EXPECT_TRUE(metric.name.starts_with("weir_") || metric.name.starts_with("process_"));
    EXPECT_TRUE(std::all_of(metric.name.begin(), metric.name.end(), [](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
    }));
    EXPECT_TRUE(metric.help.ends_with("."));
    EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(metric.help[0])) != 0 ||
                std::isupper(static_cast<unsigned char>(metric.help[0])) != 0);
    EXPECT_FALSE(metric.unit.empty());
  }
}

TEST(Metrics, EveryLabelIsDescribedOnceAndUsed) {
  std::set<std::string_view> described;
  for (const LabelInfo& label : all_labels()) {
    EXPECT_TRUE(described.insert(label.name).second) << label.name;
  }
  std::set<std::string_view> used;
  for (const MetricInfo& metric : all_metrics()) {
    for (std::size_t i = 0; i < label_count(metric.labels); ++i) {
      used.insert(label_name(metric.labels, i));
    }
  }
  EXPECT_EQ(described, used);
}

// The eight metrics of admission control that dashboards rely on, by name and type.
TEST(Metrics, AdmissionHasItsEightFamilies) {
  const std::vector<std::pair<std::string_view, MetricType>> expected = {
      {"weir_admission_total", MetricType::kCounter},
      {"weir_admission_rejected_reason", MetricType::kCounter},
      {"weir_admission_in_flight", MetricType::kGauge},
      {"weir_admission_concurrency_limit", MetricType::kGauge},
      {"weir_admission_queue_wait_ms", MetricType::kHistogram},
      {"weir_admission_memory_usage", MetricType::kGauge},
      {"weir_admission_peer_in_flight", MetricType::kGauge},
      {"weir_admission_vegas_queue_estimate", MetricType::kGauge}};
  for (const auto& [name, type] : expected) {
    const auto found = std::ranges::find(all_metrics(), name, &MetricInfo::name);
    ASSERT_NE(found, all_metrics().end()) << name;
    EXPECT_EQ(found->type, type) << name;
  }
}

TEST(Metrics, AlertRulesUseOnlyNamesOfTheTable) {
  const std::string rules = read_file(WEIR_RULES_FILE);
  const auto is_name = [](char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  };
  int found = 0;
  for (std::size_t at = rules.find("weir_"); at != std::string::npos;
       at = rules.find("weir_", at)) {
    std::size_t end = at;
    while (end < rules.size() && is_name(rules[end])) ++end;
    const std::string name = rules.substr(at, end - at);
    EXPECT_NE(std::ranges::find(all_metrics(), name, &MetricInfo::name), all_metrics().end())
        << name;
    ++found;
    at = end;
  }
  EXPECT_GE(found, 15);
}

TEST(MetricsPage, FindsTheRowOfAnEnumerator) {
  EXPECT_EQ(info(Metric::kAdmissionTotal).name, "weir_admission_total");
  EXPECT_EQ(info(Metric::kBuildInfo).name, "weir_build_info");
}

TEST(MetricsPage, WritesASingleSeriesAndRemembersTheFamily) {
  std::vector<char> buffer(1024);
  MetricsPage page(buffer);
  EXPECT_FALSE(page.has(Metric::kDraining));
  EXPECT_TRUE(page.single(Metric::kDraining, true));
  EXPECT_TRUE(page.has(Metric::kDraining));
  EXPECT_TRUE(page.text().ends_with("\nweir_draining 1\n"));
}

TEST(MetricsPageDeathTest, AFamilyStartsOnce) {
  std::vector<char> buffer(1024);
  MetricsPage page(buffer);
  page.single(Metric::kDraining, 0U);
  EXPECT_DEATH(page.single(Metric::kDraining, 0U), "started_");
}

}  // namespace
}  // namespace weir::metrics
