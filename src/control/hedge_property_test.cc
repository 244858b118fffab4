// Many calls at once over random replicas, with random schedules of events: what HedgeExecutor
// promises holds under all of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "hedge_testing.h"

namespace weir::inline v0::inline control {
namespace {

using policy::Openness;
using std::chrono::milliseconds;

constexpr std::size_t kEndpoints = 5;
constexpr std::uint32_t kDeposit = 100;
constexpr std::uint32_t kCap = 8'000;

/// One call, and what the schedule knows of it.
struct ScheduledCall {
  explicit ScheduledCall(RedundancyBudget& shared) : executor(shared) {}
  struct Try {
    AttemptNumber number = 0;
    std::size_t endpoint = 0;
    bool started = false;
    bool live = true;
  };
  HedgeExecutor executor;
  HedgeExecutor::Call facts;
  std::vector<Try> tries;
  int ends = 0;
  bool between = false;

  [[nodiscard]] std::size_t live() const {
    return static_cast<std::size_t>(
        std::count_if(tries.begin(), tries.end(), [](const Try& t) { return t.live; }));
  }
};

/// Requests (+deposit) and paid attempts (-1 token) in the order in which they happened.
class Ledger {
 public:
  void request() { changes_.push_back(-static_cast<std::int64_t>(kDeposit)); }
  void paid() { changes_.push_back(1000); }
  void refunded() { changes_.push_back(-1000); }
  /// The most that any window took beyond its deposits.
  [[nodiscard]] std::int64_t worst_window() const {
    std::int64_t worst = 0;
    std::int64_t sum = 0;
    for (const std::int64_t change : changes_) {
      sum = std::max<std::int64_t>(0, sum + change);
      worst = std::max(worst, sum);
    }
    return worst;
  }

 private:
  std::vector<std::int64_t> changes_;
};

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : rng_(seed) {
    for (std::size_t i = 0; i < kEndpoints; ++i) {
      budgets_.emplace_back(policy::RedundancyBudgetRules{.cap_millitokens = 1'000'000});
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += Duration(static_cast<std::int64_t>(rng_.below(1'000'000)));
      if (rng_.chance(0.05)) change_endpoints();
      if (calls_.size() < 40 && rng_.chance(0.4)) begin();
      if (calls_.empty()) continue;
      const std::size_t index = rng_.below(calls_.size());
      act(*calls_[index]);
      check(*calls_[index]);
      if (::testing::Test::HasFailure()) return;
      if (calls_[index]->executor.ended()) {
        finish(*calls_[index]);
        calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
    while (!calls_.empty()) {  // every call can be ended
      cancel(*calls_.back());
      finish(*calls_.back());
      calls_.pop_back();
    }
  }

  [[nodiscard]] std::int64_t worst_window() const { return ledger_.worst_window(); }
  [[nodiscard]] int hedges() const { return hedges_; }
  [[nodiscard]] int completed() const { return completed_; }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  using Try = ScheduledCall::Try;

  void change_endpoints() {
    for (policy::HedgeTarget& target : targets_) {
      target.openness = rng_.chance(0.7) ? Openness::kOpen : static_cast<Openness>(rng_.below(6));
      target.queue =
          rng_.chance(0.8) ? policy::OutgoingState::kHealthy : policy::OutgoingState::kSaturated;
      target.own_zone = rng_.chance(0.8);
      target.connection_ready = rng_.chance(0.9);
    }
    conditions_ = {.enabled = rng_.chance(0.95),
                   .overloaded = rng_.chance(0.1),
                   .cohort_slow = rng_.chance(0.05)};
  }

  void begin() {
    auto call = std::make_unique<ScheduledCall>(shared_);
    if (rng_.chance(0.5)) {
      call->facts.deadline = now_ + Duration(static_cast<std::int64_t>(rng_.below(40'000'000)));
    }
    call->facts.caller_attempt = rng_.chance(0.1) ? 2 : 1;
    const std::size_t endpoint = rng_.below(kEndpoints);
    shared_.deposit();
    ledger_.request();
    const AttemptNumber first = call->executor.begin(a_read(), call->facts, budgets_[endpoint]);
    call->tries.push_back({.number = first, .endpoint = endpoint});
    calls_.push_back(std::move(call));
  }

  /// A random event of a random attempt, also of one that has ended.
  void act(ScheduledCall& call) {
    if (call.between) return restart(call);
    if (rng_.chance(0.02)) return cancel(call);
    if (rng_.chance(0.3)) return fire(call);
    Try& at = call.tries[rng_.below(call.tries.size())];
    switch (rng_.below(5)) {
      case 0:
        at.started = at.started || at.live;
        return call.executor.on_started(at.number);
      case 1:
      case 2:
        at.started = at.started || at.live;
        return call.executor.on_written(at.number, milliseconds(1 + rng_.below(5)), now_);
      case 3:
        return answer(call, at);
      default:
        return fail(call, at);
    }
  }

  void fire(ScheduledCall& call) {
    if (call.executor.timer_at() == TimePoint::max()) return;
    now_ = std::max(now_, call.executor.timer_at());
    follow(call, call.executor.on_timer(moment(call)));
  }

  void answer(ScheduledCall& call, Try& at) {
    if (at.live) at.started = true;
    const auto kind = static_cast<policy::AnswerKind>(rng_.chance(0.6) ? 0 : rng_.below(4));
    follow(call, call.executor.on_answer(at.number, {.kind = kind}, moment(call)));
  }

  void fail(ScheduledCall& call, Try& at) {
    HedgeExecutor::Failure failure;
    failure.facts.failure = static_cast<policy::AttemptFailure>(
        rng_.below(static_cast<std::uint64_t>(policy::AttemptFailure::kBadResponse)));
    failure.facts.written = at.started;
    failure.facts.reused = rng_.chance(0.3);
    failure.facts.processed = rng_.chance(0.2) ? policy::Processed::kNo : policy::Processed::kMaybe;
    const bool was_live = at.live;
    at.live = false;
    const HedgeStep step = call.executor.on_failed(at.number, failure, moment(call));
    ASSERT_TRUE(was_live || step.kind == HedgeStep::Kind::kWait);
    follow(call, step);
  }

  void restart(ScheduledCall& call) {
    if (rng_.chance(0.3)) return cancel(call);
    call.between = false;
    const std::size_t endpoint = rng_.below(kEndpoints);
    call.tries.push_back(
        {.number = call.executor.restart(budgets_[endpoint]), .endpoint = endpoint});
  }

  void cancel(ScheduledCall& call) {
    const HedgeStep step = call.executor.on_cancelled();
    lose(call, step);
    ++call.ends;
  }

  void lose(ScheduledCall& call, const HedgeStep& step) {
    for (const AttemptNumber loser : step.losers()) {
      const auto at = std::find_if(call.tries.begin(), call.tries.end(),
                                   [&](const Try& t) { return t.number == loser; });
      ASSERT_NE(at, call.tries.end());
      ASSERT_TRUE(at->live) << "cancelled twice";
      at->live = false;
    }
  }

  void follow(ScheduledCall& call, const HedgeStep& step) {
    lose(call, step);
    switch (step.kind) {
      case HedgeStep::Kind::kWait:
      case HedgeStep::Kind::kSetAside:
        return;
      case HedgeStep::Kind::kBegin:
        return started(call, step);
      case HedgeStep::Kind::kBeginLater:
        call.between = true;
        return;
      case HedgeStep::Kind::kComplete:
        ++completed_;
        break;
      case HedgeStep::Kind::kFail:
        ++failed_;
        break;
    }
    ++call.ends;
    for (Try& at : call.tries) at.live = at.live && at.number != step.attempt;
  }

  void started(ScheduledCall& call, const HedgeStep& step) {
    ASSERT_EQ(call.ends, 0) << "an attempt after the end";
    ASSERT_LT(now_, call.facts.deadline) << "an attempt after the deadline";
    const std::size_t endpoint = offered_.at(step.candidate);
    const policy::HedgeTarget& target = targets_[endpoint];
    ASSERT_LE(target.openness, Openness::kTrial) << "to one that is draining or ejected";
    if (step.hedge) {
      ++hedges_;
      ASSERT_EQ(target.openness, Openness::kOpen);
      ASSERT_TRUE(conditions_.enabled && !conditions_.overloaded && !conditions_.cohort_slow);
      ASSERT_TRUE(target.own_zone && target.queue == policy::OutgoingState::kHealthy);
    }
    call.tries.push_back({.number = step.attempt, .endpoint = endpoint});
  }

  /// After every event: the balance tells what was paid and given back.
  void check(const ScheduledCall& call) {
    const std::uint32_t balance = shared_.balance_millitokens();
    ASSERT_LE(balance, kCap);
    ASSERT_LE(call.live(), HedgeExecutor::kParallelMax);
    ASSERT_LE(call.ends, 1);
    ASSERT_EQ(call.executor.ended(), call.ends == 1);
    note_balance();
  }

  void note_balance() {
    std::int64_t paid = 0;
    for (const RedundancyBudget& budget : budgets_) {
      paid += 1'000'000 - static_cast<std::int64_t>(budget.balance_millitokens());
    }
    for (; paid_ < paid; paid_ += 1000) ledger_.paid();
    for (; paid_ > paid; paid_ -= 1000) ledger_.refunded();
  }

  void finish(const ScheduledCall& call) {
    ASSERT_EQ(call.ends, 1) << "exactly one end";
    ASSERT_EQ(call.live(), 0U) << "an attempt that nobody cancelled";
    note_balance();
  }

  HedgeMoment moment(const ScheduledCall& call) {
    candidates_.clear();
    offered_.clear();
    for (std::size_t i = 0; i < kEndpoints; ++i) {
      const bool used = std::any_of(call.tries.begin(), call.tries.end(),
                                    [&](const Try& t) { return t.endpoint == i; });
      if (used) continue;
      offered_.push_back(i);
      candidates_.push_back({targets_[i], &budgets_[i]});
    }
    return {.now = now_, .conditions = conditions_, .candidates = candidates_};
  }

  Rng rng_;
  TimePoint now_ = kStart;
  RedundancyBudget shared_{{.deposit_millitokens = kDeposit, .cap_millitokens = kCap}};
  std::deque<RedundancyBudget> budgets_;  // never deposited into: they count what was taken
  std::array<policy::HedgeTarget, kEndpoints> targets_{};
  policy::HedgeConditions conditions_{};
  std::vector<std::unique_ptr<ScheduledCall>> calls_;
  std::vector<HedgeCandidate> candidates_;
  std::vector<std::size_t> offered_;
  Ledger ledger_;
  std::int64_t paid_ = 0;
  int hedges_ = 0;
  int completed_ = 0;
  int failed_ = 0;
};

TEST(HedgeProperties, HoldUnderRandomSchedules) {
  int hedges = 0;
  int completed = 0;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Schedule schedule(seed);
    schedule.run(4000);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    // In any window: attempts <= 0.1 × requests + the burst.
    ASSERT_LE(schedule.worst_window(), std::int64_t{kCap}) << "seed " << seed;
    hedges += schedule.hedges();
    completed += schedule.completed();
    failed += schedule.failed();
  }
  EXPECT_GT(hedges, 1000);  // the schedules do reach what they test
  EXPECT_GT(completed, 5000);
  EXPECT_GT(failed, 300);
}

/// `slow` of three replicas take 100 ms; the share of extra requests over many reads.
double extra_load(std::size_t slow, int reads, const policy::HedgeConditions& conditions) {
  HedgeRun run(3);
  run.conditions = conditions;
  for (std::size_t i = 0; i < slow; ++i) run.replica(i).latency = milliseconds(100);
  int hedges = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(reads); ++i) {
    hedges += run.fetch({i % 3, (i + 1) % 3, (i + 2) % 3}).hedges;
  }
  return static_cast<double>(hedges) / reads;
}

TEST(HedgeProperties, AHedgeStormCannotHappen) {
  EXPECT_LE(extra_load(3, 20'000, {}), 0.10 + 100.0 / 20'000);  // all are slow: budget and burst
  EXPECT_GT(extra_load(3, 20'000, {}), 0.09);
  EXPECT_EQ(extra_load(3, 2000, {.overloaded = true}), 0);
  EXPECT_EQ(extra_load(3, 2000, {.cohort_slow = true}), 0);
}

}  // namespace
}  // namespace weir::inline v0::inline control
