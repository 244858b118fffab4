#include "replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace weir::inline v0::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReplayResult some_result() {
  ReplayResult result;
  result.load.to = std::chrono::seconds(20);
  result.load.left_out = 3;
  result.fit.mean = std::chrono::milliseconds(20);
  result.fit.workers = 12;
  result.recorded.asked = 1000;
  result.recorded.refused = 100;
  result.recorded.by_reason[index_of(Reason::kOverload)][index_of(Priority::kLow)] = 100;
  result.deviations = {{"refused", 100, 110, true}, {"p99", 50, 55, true}};
  return result;
}

const ReplayTitle kTitle{.file = "a.weirrec", .upstream = "app", .others = {"reports"}};

TEST(ReplayReport, SaysWhatIsNotKnown) {
  ReplayResult result = some_result();
  result.forecast = result.recorded;
  result.forecast->in_flight_max = 13;
  const std::string text = replay_text(kTitle, result);
  EXPECT_THAT(text, HasSubstr("workers unknown, at least 12"));
  EXPECT_THAT(text, HasSubstr("up to 13 in flight"));
  EXPECT_THAT(text, HasSubstr("left out: 3 requests"));
  EXPECT_THAT(text, HasSubstr("not replayed (--upstream): reports"));
  EXPECT_THAT(text, HasSubstr("Recorded retries do not react"));
  const auto page = nlohmann::json::parse(replay_json(kTitle, result));
  EXPECT_TRUE(page["service"]["workers"].is_null());
  EXPECT_EQ(page["service"]["workers_at_least"], 12);
  EXPECT_EQ(page["recorded"]["refused_by"]["overload"]["low"], 100);
  EXPECT_TRUE(page["beyond_what_is_known"]);
}

TEST(ReplayReport, ReasonsThatNeverOccurredHaveNoRow) {
  const std::string text = replay_text(kTitle, some_result());
  EXPECT_THAT(text, HasSubstr("overload, low"));
  EXPECT_THAT(text, Not(HasSubstr("overload, high")));
  EXPECT_THAT(text, Not(HasSubstr("  memory,")));
}

TEST(ReplayReport, AMissSaysByHowMuchAndHasNoForecast) {
  ReplayResult result = some_result();
  result.deviations[1] = {"p99", 50, 90, false};
  const std::string text = replay_text(kTitle, result);
  EXPECT_THAT(text, HasSubstr("does not fit: p99 was 50 and is replayed as 90"));
  EXPECT_FALSE(nlohmann::json::parse(replay_json(kTitle, result))["fits"]);
}

}  // namespace
}  // namespace weir::inline v0::sim
