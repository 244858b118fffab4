#include "sim/run.h"

#include <gtest/gtest.h>

#include "sim/scenario_test_support.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const char* const kFixed = R"(
duration = "20s"
[[service]]
name = "s"
workers = 10
time = "10ms"
[service.admission]
[service.admission.limit]
policy = "fixed"
initial_limit = 20
[[load]]
name = "fast"
to = "s"
class = "high"
arrivals = "constant"
rate = 500
[[load]]
name = "slow"
to = "s"
class = "low"
arrivals = "constant"
rate = 100
)";

double value_of(const RunResult& result, Measure measure, std::optional<std::uint32_t> load = {}) {
  VerdictSpec spec;
  spec.measure = measure;
  spec.load = load;
  spec.to = seconds(20);
  return weir::measure(spec, result.recorder, result.balance).value();
}

TEST(Run, MeasuresWhatIsKnownByConstruction) {
  const RunResult result = run_scenario(scenario_of(kFixed));
  EXPECT_NEAR(value_of(result, Measure::kOffered), 600, 1);
  EXPECT_NEAR(value_of(result, Measure::kGoodput), 600, 2);
  EXPECT_NEAR(value_of(result, Measure::kGoodput, 1), 100, 1);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kSuccessRatio), 1);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kShedRatio), 0);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kAmplification), 1);
  EXPECT_NEAR(value_of(result, Measure::kLatencyP50), 10, 0.2);
  EXPECT_NEAR(value_of(result, Measure::kLatencyP999), 10, 0.2);
  EXPECT_NEAR(value_of(result, Measure::kDispatchMean), 10, 0.2);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kLimitMin), 20);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kLimitEnd), 20);
  EXPECT_DOUBLE_EQ(value_of(result, Measure::kCriticalShed), 0);
  EXPECT_LE(value_of(result, Measure::kInFlightMax), 8);
}

TEST(Run, AVerdictHoldsWithinItsBoundsAndOnlyThere) {
  Scenario s = scenario_of(kFixed);
  for (const auto& [min, max, holds] :
       {std::tuple{590.0, 610.0, true}, {610.0, 700.0, false}, {100.0, 590.0, false}}) {
    VerdictSpec spec;
    spec.measure = Measure::kGoodput;
    spec.to = seconds(20);
    spec.min = min;
    spec.max = max;
    s.verdicts = {spec};
    EXPECT_EQ(run_scenario(s).passed(), holds) << min;
  }
}

TEST(Run, RecoveryIsTheTimeUntilGoodputStays) {
  Scenario s = scenario_of(kFixed);
  FaultSpec crash;
  crash.kind = FaultKind::kCrash;
  crash.at = seconds(5);
  crash.lasts = seconds(3);
  s.services[0].faults = {crash};
  VerdictSpec spec;
  spec.measure = Measure::kRecoveryTime;
  spec.after = seconds(5);
  spec.level = 590;
  spec.to = seconds(20);
  spec.max = 4.0;
  s.verdicts = {spec};
  const RunResult result = run_scenario(s);
  EXPECT_NEAR(result.verdicts[0].value, 3, 0.1);
  EXPECT_TRUE(result.passed());
  s.verdicts[0].level = 5000;
  const RunResult never = run_scenario(s);
  EXPECT_FALSE(never.verdicts[0].known);
  EXPECT_FALSE(never.passed());
}

TEST(Run, ProgressGoesFromNearZeroToOne) {
  std::vector<double> seen;
  static_cast<void>(run_scenario(scenario_of(kFixed), nullptr,
                                 [&](double share, std::uint64_t) { seen.push_back(share); }));
  ASSERT_GT(seen.size(), 50U);
  EXPECT_LT(seen.front(), 0.05);
  EXPECT_DOUBLE_EQ(seen.back(), 1);
}

// ---- breaking a rule makes a scenario fail

/// A limiter with a broken rule: it never takes anything back, or never gives anything.
class OneWay final : public LimitPolicy {
 public:
  OneWay(const LimitConfig& config, Rng rng, bool up)
      : inner_(make_limit_policy(config, rng)), limit_(inner_->limit()), up_(up) {}
  LimitDecision on_window(const LimitSample& window) noexcept override {
    LimitDecision decision = inner_->on_window(window);
    limit_ = up_ ? std::max(limit_, decision.limit) : std::min(limit_, decision.limit);
    decision.limit = limit_;
    return decision;
  }
  [[nodiscard]] std::uint32_t limit() const noexcept override { return limit_; }
  [[nodiscard]] WindowRules window_rules() const noexcept override {
    return inner_->window_rules();
  }
  void set_bounds(const LimitBounds& bounds) noexcept override { inner_->set_bounds(bounds); }
  [[nodiscard]] std::string_view name() const noexcept override { return "one_way"; }

 private:
  std::unique_ptr<LimitPolicy> inner_;
  std::uint32_t limit_;
  bool up_;
};

std::string failures(const RunResult& result) {
  std::string names;
  for (const VerdictResult& v : result.verdicts) {
    if (!v.holds) names += v.spec.name + "; ";
  }
  return names;
}

TEST(Mutation, ALimiterThatMovesOneWayOnlyIsCaught) {
  for (const bool up : {true, false}) {
    const Scenario s = up ? scenario_of(scenario_file("sustained-2x"), {"duration=30s"})
                          : scenario_of(scenario_file("cold-start"));
    EXPECT_EQ(failures(run_scenario(s)), "");
    const RunResult broken = run_scenario(s, [up](const ServiceSpec& spec, Rng rng) {
      return std::make_unique<OneWay>(spec.admission->limit, rng, up);
    });
    EXPECT_NE(failures(broken), "");
  }
}

TEST(Mutation, ABaselineThatNeverRisesIsCaught) {
  const Scenario s = scenario_of(scenario_file("slower-after-deploy"), {"duration=75s"});
  EXPECT_EQ(failures(run_scenario(s)), "");
  // Vegas keeps the lowest latency it ever saw.
  EXPECT_NE(failures(run_scenario(
                scenario_of(scenario_file("slower-after-deploy"),
                            {"duration=75s", "service.api.admission.limit.policy=vegas"}))),
            "");
}

TEST(Mutation, ClassesWithoutPrecedenceAreCaught) {
  const std::string text = scenario_file("low-class-spike-12x");
  EXPECT_EQ(failures(run_scenario(scenario_of(text))), "");
  // Low gets the whole limit, and high no waiting room: first come, first served.
  const RunResult broken =
      run_scenario(scenario_of(text, {"service.store.admission.priority.share_low_permille=1000",
                                      "service.store.admission.high_wait_max_ms=0"}));
  EXPECT_NE(failures(broken), "");
}

// Every rule of admission, switched off, is missed by the scenario that is about it.
TEST(Mutation, ARuleThatIsOffIsCaught) {
  struct Row {
    const char* rule;
    const char* scenario;
    std::vector<std::string> set;  // shorter
  };
  const Row rows[] = {{"deadline", "late-arrivals", {}},
                      {"memory", "memory-tiers", {}},
                      {"peer", "peer-fairness", {"duration=20s"}},
                      {"actor", "elephants-and-mouse", {"duration=20s"}},
                      {"bytes", "large-uploads", {}},
                      {"class_cap", "class-caps", {}},
                      {"limit", "sustained-10x", {"duration=20s"}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const std::string text = scenario_file(row.scenario);
    std::vector<std::string> set = row.set;
    set.push_back(std::string("service.*.admission.mode_") + row.rule + "=off");
    EXPECT_EQ(failures(run_scenario(scenario_of(text, row.set))), "");
    EXPECT_NE(failures(run_scenario(scenario_of(text, set))), "");
  }
}

}  // namespace
}  // namespace weir
