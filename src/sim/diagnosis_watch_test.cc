#include "diagnosis_watch.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

using policy::Cause;

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
