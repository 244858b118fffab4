#include "diagnosis_watch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

using policy::Cause;

/// A file of the folder of scenarios.
std::optional<std::string> in_scenarios(const std::string& name) {
  std::ostringstream out;
  out << std::ifstream(std::filesystem::path(WEIR_SCENARIO_DIR) / name).rdbuf();
  return out.str();
}

TEST(DiagnosisWatch, EverySecondOfAServiceWithAdmissionIsDiagnosed) {
  const RunResult result = run_scenario(scenario_of(kPlain));  // 1200/s of 800 that it can do
  const std::vector<Cause>& causes = result.recorder.causes(0);
  ASSERT_EQ(causes.size(), 20U);
  for (std::size_t i = 10; i < causes.size(); ++i) EXPECT_EQ(causes[i], Cause::kDemand) << i;
}

TEST(DiagnosisWatch, AServiceWithoutAdmissionIsNot) {
  const std::string text(kPlain);
  const std::size_t at = text.find("[service.admission]\n");
  const RunResult result = run_scenario(scenario_of(std::string(text).erase(at, 20)));
  EXPECT_TRUE(result.recorder.causes(0).empty());
}

TEST(DiagnosisWatch, AVerdictAboutAServiceWithoutAdmissionIsRefused) {
  std::string text(kPlain);
  text.erase(text.find("[service.admission]\n"), 20);
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto read = read_scenario_text(
      text + "[[verdict]]\nmeasure = \"diagnosed\"\ncause = \"fine\"\nmin = 0.9\n", "test.toml", {},
      none);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(printed(read.error()).find("no admission"), std::string::npos) << printed(read.error());
}

TEST(DiagnosisWatch, EveryScenarioWithAdmissionSaysWhatIsDiagnosedOrWhyNot) {
  std::size_t diagnosed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_SCENARIO_DIR)) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().filename().string();
    const auto read = read_scenario_text(*in_scenarios(name), name, {}, in_scenarios);
    ASSERT_TRUE(read.has_value()) << printed(read.error());
    const auto admits = [](const ServiceSpec& one) { return one.admission.has_value(); };
    if (std::ranges::none_of(read->services, admits)) continue;
    const bool judged = std::ranges::any_of(
        read->verdicts, [](const VerdictSpec& one) { return one.measure == Measure::kDiagnosed; });
    EXPECT_TRUE(judged || read->undiagnosed.size() >= 20)
        << name << ": a verdict with measure = \"diagnosed\", or undiagnosed = \"why not\"";
    diagnosed += judged ? 1 : 0;
  }
  EXPECT_GE(diagnosed, 40U);
}

TEST(DiagnosisWatch, AVerdictCountsTheSecondsOfItsSpan) {
  const RunResult result = run_scenario(scenario_of(std::string(kPlain) + R"(
[[service.fault]]
at = "10s"
kind = "crash"
lasts = "5s"
[[verdict]]
measure = "diagnosed"
cause = "unreachable"
from = "13s"
to = "15s"
min = 1
[[verdict]]
measure = "diagnosed"
cause = "memory"
min = 0
max = 0
)"));
  ASSERT_EQ(result.verdicts.size(), 2U);
  EXPECT_TRUE(result.passed()) << result.verdicts[0].value << " " << result.verdicts[1].value;
}

TEST(DiagnosisWatch, AnUnknownCauseIsRefusedWithTheKnownOnes) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto read = read_scenario_text(std::string(kPlain) + R"(
[[verdict]]
measure = "diagnosed"
cause = "the moon"
min = 1
)",
                                       "test.toml", {}, none);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(printed(read.error()).find("sick_replica"), std::string::npos);
}

}  // namespace
}  // namespace weir::sim
