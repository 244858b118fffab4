#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/time.h"

#include "admission_testing.h"
#include "control/hedge_executor.h"
#include "control/latency_tracker.h"

namespace weir::inline v0::inline control {

[[nodiscard]] inline policy::SafeRead a_read() {
  return policy::SafeRead::of({.safe_method = true}).value();
}

/// A replica in virtual time.
struct FakeReplica {
  enum class Does : std::uint8_t { kAnswers, kLacksIt, kTryLater, kFails, kFailsUnsent };

  Duration latency = std::chrono::milliseconds(1);
  Does does = Does::kAnswers;
  policy::HedgeTarget target{};
  RedundancyBudget budget{};
  LatencyTracker tracker{};
  int asked = 0;
  int cancelled = 0;
};

/// Runs whole reads against replicas in virtual time, as an owner of a HedgeExecutor does.
class HedgeRun {
 public:
  explicit HedgeRun(std::size_t replicas) : replicas_(replicas) {}

  struct Result {
    HedgeStep::Kind kind = HedgeStep::Kind::kWait;
    std::size_t replica = 0;  // that answered, or whose failure is reported
    Duration took{};
    int hedges = 0;
    int attempts = 0;
    policy::NoHedge no_hedge = policy::NoHedge::kNotNeeded;
    [[nodiscard]] bool ok() const noexcept { return kind == HedgeStep::Kind::kComplete; }
  };

  [[nodiscard]] FakeReplica& replica(std::size_t i) { return replicas_[i]; }

  /// `order`: the first is the primary, the others are candidates in this order.
  Result fetch(std::vector<std::size_t> order, const HedgeExecutor::Call& call = {}) {
    order_ = std::move(order);
    tried_.clear();
    events_.clear();
    attempt_replica_.clear();
    result_ = {};
    const TimePoint began = now;
    HedgeExecutor executor(shared);
    FakeReplica& first = replicas_[order_.front()];
    shared.deposit();
    first.budget.deposit();
    send(executor, executor.begin(a_read(), call, first.budget), order_.front());
    while (result_.kind == HedgeStep::Kind::kWait) advance(executor);
    result_.took = now - began;
    return result_;
  }

  TimePoint now = kStart;
  RedundancyBudget shared{};
  policy::HedgeConfig config{};
  policy::HedgeConditions conditions{};
  policy::HedgeCohort cohort{};
  Duration timer_late{};  // every timer fires this late

 private:
  using Does = FakeReplica::Does;
  using Event = std::tuple<TimePoint, AttemptNumber>;

  void send(HedgeExecutor& executor, AttemptNumber attempt, std::size_t index) {
    FakeReplica& replica = replicas_[index];
    ++result_.attempts;
    attempt_replica_.resize(std::max<std::size_t>(attempt_replica_.size(), attempt + 1), 0);
    attempt_replica_[attempt] = index;
    tried_.insert(index);
    if (replica.does != Does::kFailsUnsent) {
      ++replica.asked;
      executor.on_started(attempt);
      const policy::HedgeDelay own = replica.tracker.hedge_delay(now);
      executor.on_written(attempt, policy::capped_by(cohort, own, config).delay, now);
    }
    events_.insert({now + replica.latency, attempt});
  }

  void advance(HedgeExecutor& executor) {
    const TimePoint timer = executor.timer_at();
    const bool timer_first =
        timer != TimePoint::max() &&
        (events_.empty() || timer + timer_late < std::get<0>(*events_.begin()));
    if (timer_first) {
      now = timer + timer_late;
      timer_late = {};  // late once
      const HedgeStep step = executor.on_timer(moment());
      if (step.no_hedge != policy::NoHedge::kNone) result_.no_hedge = step.no_hedge;
      return follow(executor, step);
    }
    WEIR_ASSERT(!events_.empty());  // the call would hang
    const auto [at, attempt] = *events_.begin();
    events_.erase(events_.begin());
    now = at;
    happen(executor, attempt);
  }

  void happen(HedgeExecutor& executor, AttemptNumber attempt) {
    FakeReplica& replica = replicas_[attempt_replica_[attempt]];
    const bool failed = replica.does == Does::kFails || replica.does == Does::kFailsUnsent;
    const Duration waited = executor.waited(attempt, now).value_or(Duration(0));
    replica.tracker.record({waited, failed ? AttemptEnd::kFailed : AttemptEnd::kAnswered}, now);
    if (failed) {
      const bool sent = replica.does == Does::kFails;
      const policy::FailedAttempt facts{.failure = policy::AttemptFailure::kStreamReset,
                                        .processed = policy::Processed::kMaybe,
                                        .written = sent};
      return follow(executor, executor.on_failed(attempt, {facts, code_of(attempt)}, moment()));
    }
    const policy::AnswerKind kind = replica.does == Does::kLacksIt ? policy::AnswerKind::kAbsent
                                    : replica.does == Does::kTryLater
                                        ? policy::AnswerKind::kTryLater
                                        : policy::AnswerKind::kGood;
    follow(executor, executor.on_answer(attempt, {.kind = kind}, moment()));
  }

  void follow(HedgeExecutor& executor, const HedgeStep& step) {
    for (const AttemptNumber loser : step.losers()) {
      FakeReplica& replica = replicas_[attempt_replica_[loser]];
      ++replica.cancelled;
      if (const auto waited = executor.waited(loser, now)) {
        replica.tracker.record({*waited, AttemptEnd::kCancelled}, now);
      }
      std::erase_if(events_, [&](const Event& e) { return std::get<1>(e) == loser; });
    }
    switch (step.kind) {
      case HedgeStep::Kind::kWait:
      case HedgeStep::Kind::kSetAside:
        return;
      case HedgeStep::Kind::kBegin:
        result_.hedges += step.hedge ? 1 : 0;
        if (step.hedge) result_.no_hedge = policy::NoHedge::kNone;
        return send(executor, step.attempt, offered_[step.candidate]);
      case HedgeStep::Kind::kBeginLater:  // nowhere to go: the owner ends it
        static_cast<void>(executor.on_cancelled());
        result_.kind = HedgeStep::Kind::kFail;
        return;
      case HedgeStep::Kind::kComplete:
        result_.kind = step.kind;
        result_.replica = attempt_replica_[step.attempt];
        return;
      case HedgeStep::Kind::kFail:
        result_.kind = step.kind;
        result_.replica = step.code;
        return;
    }
  }

  [[nodiscard]] std::uint8_t code_of(AttemptNumber attempt) const {
    return static_cast<std::uint8_t>(attempt_replica_[attempt]);
  }

  HedgeMoment moment() {
    candidates_.clear();
    offered_.clear();
    for (const std::size_t index : order_) {
      if (tried_.contains(index)) continue;
      offered_.push_back(index);
      candidates_.push_back({replicas_[index].target, &replicas_[index].budget});
    }
    return {.now = now, .conditions = conditions, .candidates = candidates_};
  }

  std::deque<FakeReplica> replicas_;
  std::vector<std::size_t> order_;
  std::set<std::size_t> tried_;
  std::set<Event> events_;  // when each attempt answers or fails; ties: the older attempt first
  std::vector<std::size_t> attempt_replica_;
  std::vector<std::size_t> offered_;
  std::vector<HedgeCandidate> candidates_;
  Result result_;
};

}  // namespace weir::inline v0::inline control
