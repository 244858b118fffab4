#include "weir/experimental/sim/replay.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recording_testing.h"
#include "scenario_test_support.h"

namespace weir::inline v0::sim {
namespace {

using ::testing::HasSubstr;

const policy::Recording& past() {
  static const policy::Recording recording = recorded_run(
      scenario_of(overload_scenario(1, "policy = \"fixed\"\ninitial_limit = 40\nmax_limit = 40")));
  return recording;
}

struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

Ran replayed(ReplayOptions options) {
  if (options.name.empty()) {
    options.name = "past.rec";
    options.bytes = bytes_of(past());
  }
  std::ostringstream out;
  std::ostringstream err;
  const int status = replay(options, out, err);
  return {status, out.str(), err.str()};
}

TEST(Replay, PrintsTheFitAndTheForecastSideBySide) {
  const Ran ran = replayed(
      {.assignments = {"admission.limit.max_limit=10", "admission.limit.initial_limit=10"}});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("upstream app"));
  EXPECT_THAT(ran.out, HasSubstr("recorded    replayed    forecast"));
  EXPECT_THAT(ran.out, HasSubstr("overload, low"));
  EXPECT_THAT(ran.out, HasSubstr("16 workers"));
  EXPECT_THAT(ran.out, HasSubstr("fits: "));
  EXPECT_THAT(ran.out, HasSubstr("Recorded retries do not react"));
}

TEST(Replay, WithoutAChangeItPrintsTheFit) {
  const Ran ran = replayed({});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, HasSubstr("recorded    replayed\n"));
}

TEST(Replay, JsonHasTheSameNumbers) {
  const Ran ran =
      replayed({.assignments = {"upstream.app.initial_limit=10", "upstream.app.max_limit=10"},
                .json = true});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto page = nlohmann::json::parse(ran.out);
  EXPECT_TRUE(page["fits"]);
  EXPECT_EQ(page["service"]["saturated"], true);
  EXPECT_GT(page["recorded"]["refused_by"]["overload"]["low"], 100);
  EXPECT_FALSE(page["forecast"].is_null());
}

TEST(Replay, TheInitialLimitFollowsABoundThatIsSet) {
  // The recorded initial_limit is 40.
  using Lines = std::vector<std::string>;
  const auto added = [](const Lines& assignments) {
    const Ran ran = replayed({.assignments = assignments, .json = true});
    EXPECT_EQ(ran.status, 0) << ran.err;
    if (ran.status != 0) return Lines();
    Lines changes = nlohmann::json::parse(ran.out)["changes"].get<Lines>();
    changes.erase(changes.begin(), changes.begin() + static_cast<int>(assignments.size()));
    return changes;
  };
  EXPECT_EQ(added({"admission.limit.max_limit=10"}),
            Lines{"admission.limit.initial_limit=10 (lowered with max_limit)"});
  EXPECT_EQ(added({"upstream.app.max_limit=10"}),
            Lines{"upstream.app.initial_limit=10 (lowered with max_limit)"});
  EXPECT_EQ(added({"admission.limit.max_limit=80", "admission.limit.min_limit=50"}),
            Lines{"admission.limit.initial_limit=50 (raised with min_limit)"});
  EXPECT_EQ(added({"admission.limit.max_limit=64"}), Lines());
  EXPECT_EQ(added({"upstream.app.max_limit=10", "admission.limit.initial_limit=5"}), Lines());
  const Ran both = replayed(
      {.assignments = {"admission.limit.max_limit=10", "admission.limit.initial_limit=20"}});
  EXPECT_THAT(both.err, HasSubstr("admission.limit.initial_limit"))
      << "what was set is not changed";
}

TEST(Replay, ALowerMaximumAloneGivesTheSameForecastAsWithTheInitialLimit) {
  const auto forecast = [](std::vector<std::string> assignments) {
    const Ran ran = replayed({.assignments = std::move(assignments), .json = true});
    return ran.status == 0 ? nlohmann::json::parse(ran.out)["forecast"].dump() : ran.err;
  };
  EXPECT_EQ(forecast({"admission.limit.max_limit=10"}),
            forecast({"admission.limit.max_limit=10", "admission.limit.initial_limit=10"}));
}

TEST(Replay, WhatDoesNotFitIsNotForecast) {
  policy::Recording other = past();
  for (policy::RecordedDecision& one : other.decisions) {
    if (!one.refused() || one.at > std::chrono::seconds(25)) continue;
    one.end = policy::DecisionEnd::kOk;
    one.reason = 0;
    one.latency = std::chrono::milliseconds(1);
  }
  const Ran ran = replayed({.name = "odd.rec", .bytes = bytes_of(other), .workers = 5});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("does not fit"));
  EXPECT_THAT(ran.out, ::testing::Not(HasSubstr("    forecast\n")));
}

TEST(Replay, BadInputSaysWhatIsWrong) {
  const auto error = [](ReplayOptions options) {
    const Ran ran = replayed(std::move(options));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_THAT(error({.name = "x", .bytes = "hello"}), HasSubstr("no recording of Weir"));
  EXPECT_THAT(error({.upstream = "nowhere"}),
              HasSubstr("there is no upstream nowhere; there are app"));
  EXPECT_THAT(error({.assignments = {"admission.limit.max_limt=3"}}),
              HasSubstr("did you mean admission.limit.max_limit?"));
  EXPECT_THAT(error({.assignments = {"server.loops=3"}}), HasSubstr("no option of admission"));
  EXPECT_THAT(error({.assignments = {"admission.limit.max_limit"}}), HasSubstr("key=value"));
  EXPECT_THAT(error({.assignments = {"admission.limit.max_limit=0"}}), HasSubstr("1 to 16383"));
  EXPECT_THAT(error({.config = "/nowhere/weir.toml"}), HasSubstr("/nowhere/weir.toml"));
  policy::Recording broken = past();
  broken.header.config = "[admission]\nmax_concurent = 5\n";
  EXPECT_THAT(error({.name = "b", .bytes = bytes_of(broken)}), HasSubstr("--recorded-config"));
  policy::Recording empty = past();
  empty.decisions.resize(50);
  EXPECT_THAT(error({.name = "e", .bytes = bytes_of(empty)}), HasSubstr("at least 200"));
}

}  // namespace
}  // namespace weir::inline v0::sim
