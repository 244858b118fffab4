#include "live/live_json.h"

#include <limits>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(LiveJson, NumbersHaveThreeSignificantDigits) {
  const auto text = [](double value) { return number(value).dump(); };
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(1264.7), "1260");
  EXPECT_EQ(text(12.345), "12.3");
  EXPECT_EQ(text(20), "20");
  EXPECT_EQ(text(0.0123456), "0.0123");
  EXPECT_EQ(text(-3.14159), "-3.14");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "0");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(LiveJson, NamesAreOnlyData) {
  EXPECT_EQ(json_text({{"name", "</script>\n\"\xff"}}), "{\"name\":\"</script>\\n\\\"\\ufffd\"}");
}

TEST(LiveJson, AVerdictHasItsSentenceItsStepAndItsEvidence) {
  LiveUpstream upstream("app");
  upstream.diagnosis = {.cause = policy::Cause::kDemand, .evidence = {.offered = 1264.7}};
  upstream.cause_seconds = 41;
  const LiveJson json = verdict_json(upstream);
  EXPECT_EQ(json["upstream"], "app");
  EXPECT_EQ(json["cause"], "demand");
  EXPECT_EQ(json["for_s"], 41);
  EXPECT_EQ(json["evidence"]["offered"], 1260);
  EXPECT_FALSE(json["sentence"].get<std::string>().empty());
  EXPECT_FALSE(json["next_step"].get<std::string>().empty());
}

}  // namespace
}  // namespace weir::gateway
