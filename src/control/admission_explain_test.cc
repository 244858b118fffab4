// explain() returns what the next request will get, and changes nothing.
#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using Verdict = DecisionRecord::Verdict;

const DecisionStep& step_of(const DecisionRecord& record, Reason check) {
  for (const DecisionStep& step : record.steps()) {
    if (step.check == check) return step;
  }
  static const DecisionStep kMissing;
  ADD_FAILURE() << "no step " << name_of(check);
  return kMissing;
}

/// Everything that a controller publishes, in one string.
std::string all_of(const AdmissionController& controller, TimePoint now) {
  std::string text;
  const auto add = [&text](auto... values) { ((text += std::to_string(values) + " "), ...); };
  const AdmissionStats all = controller.stats();
  add(all.admitted, all.rejected, all.critical_shed, all.in_flight, all.streaming, all.bytes,
      all.memory_usage, all.actors, all.peers, to_ns(controller.next_expiry()));
  for (std::size_t i = 0; i < controller.scope_count(); ++i) {
    const ScopeStats scope = controller.scope_stats(static_cast<ScopeId>(i), now);
    for (const ClassStats& one : scope.classes) {
      add(one.in_flight, one.bound, one.cap, one.acquired, one.shed, one.waited.count);
    }
    for (const std::uint64_t count : scope.refused) add(count);
    for (const std::uint64_t count : scope.would_refuse) add(count);
    add(scope.in_flight, scope.waiting, scope.limit, scope.drain_per_second, scope.overloaded);
  }
  for (const auto& rows : {controller.top_actors(100), controller.top_peers(100)}) {
    for (const BudgetRow& row : rows) add(row.id, row.in_flight, row.bytes, row.refused);
  }
  return text;
}

/// A controller with small bounds, and many clients that use it at random.
class Crowd {
 public:
  explicit Crowd(std::uint64_t seed) : rng_(seed), controller_(config(), Rng(seed + 1)) {
    for (std::size_t i = 1; i < config_.scopes_max; ++i) {
      controller_.add_scope("another", config_.limit);
    }
  }
  ~Crowd() {
    for (Waiter& waiter : waiters_) controller_.cancel(waiter);
    collect();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// One random event: a request comes or goes, time passes, or memory usage changes.
  void change() {
    switch (rng_.below(8)) {
      case 0:
        if (!permits_.empty()) permits_.pop_front();
        return;
      case 1:
        now_ += std::chrono::milliseconds(rng_.below(20));
        return collect();
      case 2:
        return controller_.set_memory(static_cast<double>(rng_.below(100)) / 100.0, true);
      case 3: {
        Entered entered = controller_.enter(request(), waiters_.emplace_back(), now_);
        if (entered.kind != Entered::Kind::kWaiting) waiters_.pop_back();
        if (entered.kind == Entered::Kind::kAdmitted) permits_.push_back(std::move(entered.permit));
        return;
      }
      default:
        if (auto permit = controller_.try_admit(request(), now_)) {
          permits_.push_back(std::move(*permit));
        }
        return;
    }
  }

  AdmissionRequest request() {
    AdmissionRequest out;
    out.priority = kPriorities[rng_.below(kPriorityCount)];
    out.scope = static_cast<ScopeId>(rng_.below(config_.scopes_max));
    static constexpr std::array<std::string_view, 4> kNames = {"a", "b", "c", "d"};  // labels
    if (rng_.below(2) == 0) out.actor = controller_.identify(kNames[rng_.below(4)]);
    if (rng_.below(3) == 0) out.peer = controller_.identify(kNames[rng_.below(2)]);
    if (rng_.below(2) == 0) out.bytes = rng_.below(120);
    out.cost = static_cast<std::uint32_t>(rng_.below(5) == 0 ? 1 + rng_.below(40) : 1);
    if (rng_.below(6) == 0) out.deadline = now_ + std::chrono::milliseconds(rng_.below(4));
    out.hedge = rng_.below(8) == 0;
    return out;
  }

  AdmissionController& controller() { return controller_; }
  TimePoint now() const { return now_; }

 private:
  void collect() {
    controller_.expire(now_);
    for (Waiter& waiter : waiters_) {
      const Waiter::State state = waiter.state();
      if (state != Waiter::State::kGranted && state != Waiter::State::kRefused) continue;
      if (auto permit = controller_.collect(waiter, now_)) permits_.push_back(std::move(*permit));
    }
    while (!waiters_.empty() && waiters_.front().state() == Waiter::State::kIdle) {
      waiters_.pop_front();
    }
  }

  AdmissionConfig config() {
    config_ = small_config();
    config_.scopes_max = 1 + static_cast<std::uint32_t>(rng_.below(2));
    config_.max_concurrent = 6 + static_cast<std::uint32_t>(rng_.below(12));
    config_.inflight_max = 3;
    config_.bytes_max = 100;
    config_.total_bytes_max = rng_.below(4) == 0 ? 0 : 110 + rng_.below(200);
    config_.waiting_max = 2;
    config_.streams_max = 8;
    config_.actor_table_size = config_.peer_table_size = 64;
    config_.memory.low_priority_shed_ratio = rng_.below(2) == 0 ? 1.0 : 0.5;
    if (rng_.below(2) == 0) config_.classes.caps[index_of(Priority::kNormal)] = 3;
    for (RuleMode* mode :
         {&config_.modes.deadline, &config_.modes.memory, &config_.modes.peer, &config_.modes.actor,
          &config_.modes.bytes, &config_.modes.class_cap, &config_.modes.limit}) {
      if (rng_.below(6) == 0) *mode = static_cast<RuleMode>(rng_.below(2));
    }
    return config_;
  }

  Rng rng_;
  AdmissionConfig config_;
  AdmissionController controller_;
  TimePoint now_ = kStart;
  std::deque<Permit> permits_;
  std::deque<Waiter> waiters_;
};

TEST(Explain, SaysWhatTryAdmitThenDoesAndChangesNothing) {
  std::array<int, kReasonCount> seen{};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Crowd crowd(seed);
    for (int turn = 0; turn < rounds(200); ++turn) {
      crowd.change();
      const AdmissionRequest request = crowd.request();
      const bool compare = turn % 8 == 0;
      const std::string before = compare ? all_of(crowd.controller(), crowd.now()) : "";
      const DecisionRecord said = crowd.controller().explain(request, crowd.now());
      if (compare) {
        ASSERT_EQ(all_of(crowd.controller(), crowd.now()), before);
      }
      const auto would_before =
          crowd.controller().scope_stats(request.scope, crowd.now()).would_refuse;
      auto permit = crowd.controller().try_admit(request, crowd.now());
      const Reason done = permit ? Reason::kAdmitted : permit.error();
      ASSERT_EQ(name_of(said.reason), name_of(done)) << "seed " << seed << " turn " << turn;
      ASSERT_EQ(said.verdict == Verdict::kAdmitted, permit.has_value());
      ++seen[index_of(done)];
      if (!permit) continue;
      // Rules in shadow mode count what explain() says that they would refuse. (The class word
      // counts only one of cap and limit.)
      const auto would = crowd.controller().scope_stats(request.scope, crowd.now()).would_refuse;
      for (const DecisionStep& step : said.steps()) {
        if (step.check == Reason::kOverload && !step_of(said, Reason::kClassLimit).passes) continue;
        if (step.check == Reason::kActorBytes && !step_of(said, Reason::kActorInflight).passes) {
          continue;
        }
        ASSERT_EQ(would[index_of(step.check)] > would_before[index_of(step.check)], !step.passes)
            << name_of(step.check) << " seed " << seed << " turn " << turn;
      }
    }
  }
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    EXPECT_GT(seen[i], 0) << "the crowd never met " << kReasonFacts[i].name;
  }
}

TEST(Explain, SaysWhoWouldWait) {
  int waited = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Crowd crowd(seed);
    for (int turn = 0; turn < rounds(200); ++turn) {
      crowd.change();
      crowd.controller().expire(crowd.now());
      const AdmissionRequest request = crowd.request();
      const DecisionRecord said = crowd.controller().explain(request, crowd.now());
      Waiter waiter;
      const Entered entered = crowd.controller().enter(request, waiter, crowd.now());
      ASSERT_EQ(said.verdict == Verdict::kWaits, entered.kind == Entered::Kind::kWaiting)
          << "seed " << seed << " turn " << turn;
      ASSERT_EQ(said.verdict == Verdict::kRefused, entered.kind == Entered::Kind::kRefused);
      if (entered.kind != Entered::Kind::kWaiting) continue;
      ++waited;
      ASSERT_EQ(waiter.expires_at(), crowd.now() + said.wait_max);
      ASSERT_TRUE(crowd.controller().cancel(waiter));
    }
  }
  EXPECT_GT(waited, 0);
}

TEST(Explain, ShowsEveryStepInItsOrderWithItsNumbers) {
  AdmissionConfig config = small_config();
  config.classes.caps[index_of(Priority::kNormal)] = 3;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request;
  request.actor = controller.identify("alice");
  request.peer = controller.identify("node");
  request.bytes = 100;
  auto held = controller.try_admit(request, kStart);
  const DecisionRecord said = controller.explain(request, kStart);
  ASSERT_EQ(said.steps().size(), kReasonCount - 1);
  for (std::size_t i = 0; i < said.steps().size(); ++i) {
    EXPECT_EQ(index_of(said.steps()[i].check), i + 1);
  }
  EXPECT_FALSE(step_of(said, Reason::kDeadline).applies);
  EXPECT_EQ(step_of(said, Reason::kPeerLimit).held, 1U);
  EXPECT_EQ(step_of(said, Reason::kPeerLimit).bound, 4U);
  EXPECT_EQ(step_of(said, Reason::kActorInflight).held, 1U);
  EXPECT_EQ(step_of(said, Reason::kActorBytes).held, 100U);
  EXPECT_EQ(step_of(said, Reason::kBytes).held, 100U);
  EXPECT_EQ(step_of(said, Reason::kClassLimit).held, 1U);
  EXPECT_EQ(step_of(said, Reason::kClassLimit).bound, 3U);
  EXPECT_EQ(step_of(said, Reason::kOverload).held, 1U);
  EXPECT_EQ(step_of(said, Reason::kOverload).bound, 8U) << "0.9 of 8, rounded up";
}

// The level is left 0.03 below its threshold: at 0.84, low is still refused after 0.86.
TEST(Explain, StartsFromTheMemoryLevelInForce) {
  AdmissionController controller(small_config(), Rng(1));
  controller.set_memory(0.86, true);
  controller.set_memory(0.84, true);
  AdmissionRequest low;
  low.priority = Priority::kLow;
  EXPECT_EQ(controller.explain(low, kStart).reason, Reason::kMemory);
  EXPECT_EQ(controller.try_admit(low, kStart).error(), Reason::kMemory);
}

TEST(Explain, TheFirstRefusalDecidesAndTheRestIsShown) {
  AdmissionController controller(plain_config(1), Rng(1));
  auto held = controller.try_admit({}, kStart);
  AdmissionRequest late;
  late.priority = Priority::kLow;
  late.deadline = kStart;
  const DecisionRecord said = controller.explain(late, kStart);
  EXPECT_EQ(said.verdict, Verdict::kRefused);
  EXPECT_EQ(said.reason, Reason::kDeadline);
  EXPECT_FALSE(step_of(said, Reason::kOverload).passes);
}

}  // namespace
}  // namespace weir::inline v0::inline control
