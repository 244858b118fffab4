// A broken rule of policy or control makes a scenario fail.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_test_support.h"

namespace weir::sim {
namespace {

/// A limiter with a broken rule: it never lowers the limit, or never raises it.
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
  // Vegas keeps the lowest latency that it has measured.
  EXPECT_NE(failures(run_scenario(
                scenario_of(scenario_file("slower-after-deploy"),
                            {"duration=75s", "service.api.admission.limit.policy=vegas"}))),
            "");
}

TEST(Mutation, ClassesWithoutPrecedenceAreCaught) {
  const std::string text = scenario_file("low-class-spike-12x");
  EXPECT_EQ(failures(run_scenario(scenario_of(text))), "");
  // Low may fill the whole limit, and high has no waiting room: first come, first served.
  const RunResult broken =
      run_scenario(scenario_of(text, {"service.store.admission.priority.share_low_permille=1000",
                                      "service.store.admission.high_wait_max_ms=0"}));
  EXPECT_NE(failures(broken), "");
}

// If a rule of admission is off, the scenario that tests it fails.
TEST(Mutation, ARuleThatIsOffIsCaught) {
  struct Row {
    const char* rule;
    const char* scenario;
    std::vector<std::string> set;  // to shorten the run
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

// The same for the rules about replicas.
TEST(Mutation, AReplicaRuleThatIsOffIsCaught) {
  struct Row {
    const char* scenario;
    const char* set;
  };
  const Row rows[] = {{"replica-slow-of-eleven", "balance=round_robin"},
                      {"replica-slow-of-three", "balance=round_robin"},
                      {"replica-slow-of-three", "balance=least_requests"},
                      {"replica-stopped", "silence=false"},
                      {"replica-stopped-reads", "silence=false"},
                      {"replica-stopped-reads", "attempts=1"},
                      {"replica-ejection-no-cascade", "ejection=false"},
                      {"replica-retry-storm", "budget_pct=0.2"},
                      {"replica-restart-of-the-only-one", "hold_max=0s"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.scenario) + " " + row.set);
    const std::string text = scenario_file(row.scenario);
    const std::string set = std::string("service.api.replicas.") + row.set;
    EXPECT_EQ(failures(run_scenario(scenario_of(text))), "");
    EXPECT_NE(failures(run_scenario(scenario_of(text, {set}))), "");
  }
}

// And for hedging.
TEST(Mutation, AHedgingRuleThatIsOffIsCaught) {
  struct Row {
    const char* scenario;
    const char* set;
  };
  const Row rows[] = {{"hedge-slow-of-three", "service.api.replicas.hedge.enabled=false"},
                      {"hedge-slow-of-three", "service.api.replicas.balance=round_robin"},
                      {"hedge-gc-pause", "service.hedged.replicas.hedge.enabled=false"},
                      {"hedge-latency-table", "service.hedged.replicas.hedge.enabled=false"},
                      {"hedge-stragglers", "service.hedged.replicas.hedge.quantile=0.99"},
                      {"hedge-five-percent-slow", "service.poor.replicas.hedge.budget_pct=0.1"},
                      {"hedge-all-slow", "service.api.replicas.hedge.budget_pct=0.2"},
                      {"hedge-all-slow", "service.api.replicas.hedge.max_delay_ms=1000"},
                      {"outgoing-slow-datacenter", "sender.manager.shared=true"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.scenario) + " " + row.set);
    const std::string text = scenario_file(row.scenario);
    EXPECT_EQ(failures(run_scenario(scenario_of(text))), "");
    EXPECT_NE(failures(run_scenario(scenario_of(text, {row.set}))), "");
  }
}

}  // namespace
}  // namespace weir::sim
