#include "http/h2/glitch_score.h"

#include <set>

#include <gtest/gtest.h>

namespace weir::inline v0::http::h2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart = time_from_ns(1'000'000'000);

TEST(GlitchScore, GoawayAtThreeQuartersCloseAtTheLimit) {
  const H2Limits limits;
  GlitchScore score(limits);
  for (int i = 1; i < 750; ++i)
    ASSERT_EQ(score.add(H2Glitch::kEarlyReset, kStart), GlitchVerdict::kBearable) << i;
  for (int i = 750; i < 1000; ++i)
    ASSERT_EQ(score.add(H2Glitch::kEarlyReset, kStart), GlitchVerdict::kGoaway) << i;
  EXPECT_EQ(score.add(H2Glitch::kEarlyReset, kStart), GlitchVerdict::kClose);
  EXPECT_NEAR(score.score(kStart), 1000, 0.01);
  EXPECT_EQ(score.count(H2Glitch::kEarlyReset), 1000U);
}

TEST(GlitchScore, SinksWithTimeAndNeverBelowNothing) {
  const H2Limits limits;
  GlitchScore score(limits);
  for (int i = 0; i < 660; ++i) score.add(H2Glitch::kEarlyReset, kStart);
  EXPECT_NEAR(score.score(kStart + seconds(10)), 330, 0.01);
  EXPECT_EQ(score.score(kStart + seconds(20)), 0);
  EXPECT_EQ(score.score(kStart + seconds(1000)), 0);
  EXPECT_EQ(score.add(H2Glitch::kEarlyReset, kStart + seconds(1000)), GlitchVerdict::kBearable);
  EXPECT_NEAR(score.score(kStart + seconds(1000)), 1, 0.01) << "idle time is not saved up";
}

TEST(GlitchScore, APeerBelowTheDecayLivesForever) {
  const H2Limits limits;
  GlitchScore score(limits);
  TimePoint now = kStart;
  for (int i = 0; i < 100'000; ++i, now += milliseconds(31))
    ASSERT_EQ(score.add(H2Glitch::kEarlyReset, now), GlitchVerdict::kBearable) << i;
}

TEST(GlitchScore, WeightsCount) {
  H2Limits limits;
  limits.glitch_limit = 10;
  limits.glitch_weights[static_cast<std::size_t>(H2Glitch::kEmptyFrame)] = 5;
  GlitchScore score(limits);
  EXPECT_EQ(score.add(H2Glitch::kEmptyFrame, kStart), GlitchVerdict::kBearable);
  EXPECT_EQ(score.add(H2Glitch::kEmptyFrame, kStart), GlitchVerdict::kClose);
}

TEST(FrameAllowance, BurstThenTime) {
  const H2FrameBudget budget{.burst = 3, .per_second = 2};
  FrameAllowance allowance(budget);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allowance.take(kStart));
  EXPECT_FALSE(allowance.take(kStart));
  EXPECT_FALSE(allowance.take(kStart + milliseconds(400)));
  EXPECT_TRUE(allowance.take(kStart + milliseconds(1000)));
  EXPECT_TRUE(allowance.take(kStart + milliseconds(1000)));
  EXPECT_FALSE(allowance.take(kStart + milliseconds(1000)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allowance.take(kStart + seconds(100))) << "the burst";
  EXPECT_FALSE(allowance.take(kStart + seconds(100))) << "and not more";
}

TEST(FrameAllowance, WorkBringsFrames) {
  const H2FrameBudget budget{.burst = 0, .per_second = 0, .per_stream = 2, .per_frame_sent = 3};
  FrameAllowance allowance(budget);
  EXPECT_FALSE(allowance.take(kStart));
  allowance.on_stream();
  allowance.on_frame_sent();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(allowance.take(kStart)) << i;
  EXPECT_FALSE(allowance.take(kStart + seconds(100)));
}

TEST(H2Limits, DefaultsAreValid) {
  EXPECT_TRUE(H2Limits{}.validate().empty());
}

TEST(H2Limits, EveryFaultIsNamed) {
  H2Limits limits;
  limits.concurrent_streams_max = 0;
  limits.connection_window_bytes = 1000;
  limits.header_count_max = 251;
  limits.glitch_goaway_percent = 101;
  limits.glitch_decay_per_second = 0;
  limits.ping_budget.burst = 2'000'000;
  limits.settings_ack_timeout = Duration::zero();
  std::set<std::string> keys;
  for (const ConfigError& error : limits.validate()) keys.insert(error.key);
  EXPECT_EQ(keys,
            (std::set<std::string>{"http2.concurrent_streams_max", "http2.connection_window_bytes",
                                   "http2.header_count_max", "http2.glitch_goaway_percent",
                                   "http2.glitch_decay_per_second", "http2.ping_burst",
                                   "http2.settings_ack_timeout_ms"}));
}

TEST(H2Limits, ASessionHasRoomForTheStreamsThatAreAllowed) {
  H2Limits limits;
  limits.concurrent_streams_max = 1000;
  const ConfigErrors errors = limits.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "http2.session_bytes_max");
  EXPECT_EQ(errors[0].value, "114688");
  limits.session_bytes_max = 48 * 1024 + 640 * 1000;
  EXPECT_TRUE(limits.validate().empty());
}

TEST(H2Limits, GlitchNamesAreDistinct) {
  const std::set<std::string_view> names(kH2GlitchNames.begin(), kH2GlitchNames.end());
  EXPECT_EQ(names.size(), kH2GlitchCount);
  EXPECT_EQ(name_of(H2Glitch::kUngrantedData), "ungranted_data");
}

}  // namespace
}  // namespace weir::inline v0::http::h2
