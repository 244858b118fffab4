#include "control/hedge_executor.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::inline control {
namespace {

using policy::AnswerKind;
using policy::NoHedge;

NoHedge budget_reason(BudgetVerdict verdict) noexcept {
  switch (verdict) {
    case BudgetVerdict::kTaken:
      return NoHedge::kNone;
    case BudgetVerdict::kSharedEmpty:
      return NoHedge::kBudget;
    case BudgetVerdict::kDestinationEmpty:
      return NoHedge::kDestinationBudget;
  }
  WEIR_UNREACHABLE();
}

/// `late`: the budget of the endpoint that is late, which cannot help itself.
policy::HedgeChoice choose_target(const policy::HedgeProgress& progress, const HedgeMoment& moment,
                                  const RedundancyBudget* late) noexcept {
  std::array<policy::HedgeTarget, HedgeExecutor::kCandidatesMax> targets;
  const std::size_t count = std::min(targets.size(), moment.candidates.size());
  for (std::size_t i = 0; i < count; ++i) {
    targets[i] = moment.candidates[i].target;
    if (moment.candidates[i].budget == late) targets[i].openness = policy::Openness::kClosed;
  }
  return policy::may_hedge(progress, moment.conditions, {targets.data(), count});
}

/// Where a request that failed is sent next. A retry is needed more than a hedge: another zone, a
/// connect or a queue are no reason against it.
std::optional<std::uint32_t> retry_target(std::span<const HedgeCandidate> candidates) noexcept {
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const policy::HedgeTarget& target = candidates[i].target;
    const bool open = target.openness <= policy::Openness::kTrial;
    if (open && !target.pushed_back && target.queue != policy::OutgoingState::kSaturated) return i;
  }
  return std::nullopt;
}

}  // namespace

AttemptNumber HedgeExecutor::begin(const policy::SafeRead& /*read*/, const Call& call,
                                   RedundancyBudget& first) noexcept {
  WEIR_ASSERT(ended());
  call_ = call;
  slots_ = {};
  attempts_ = refused_streams_ = stale_connections_ = 0;
  raced_ = false;
  return begin_race(first, {});
}

AttemptNumber HedgeExecutor::restart(RedundancyBudget& endpoint) noexcept {
  WEIR_ASSERT(phase_ == Phase::kBetween);
  return begin_race(endpoint, std::move(spare_));
}

AttemptNumber HedgeExecutor::begin_race(RedundancyBudget& endpoint,
                                        RedundancyToken token) noexcept {
  phase_ = Phase::kRacing;
  timer_at_ = TimePoint::max();
  first_code_ = 0;
  Slot& slot = add(endpoint, false);
  slot.token = std::move(token);
  return first_ = slot.number;
}

/// The slot whose attempt ended first, so that what is known of the last one stays readable.
HedgeExecutor::Slot& HedgeExecutor::add(RedundancyBudget& endpoint, bool hedge) noexcept {
  Slot* place = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.live() && (place == nullptr || slot.number < place->number)) place = &slot;
  }
  WEIR_ASSERT(place != nullptr);
  *place = Slot{};
  place->number = ++numbers_;
  place->state = State::kWaiting;
  place->hedge = hedge;
  place->budget = &endpoint;
  ++attempts_;
  return *place;
}

HedgeExecutor::Slot* HedgeExecutor::find_live(AttemptNumber attempt) noexcept {
  for (Slot& slot : slots_) {
    if (slot.number == attempt && slot.live()) return &slot;
  }
  return nullptr;
}

HedgeExecutor::Slot* HedgeExecutor::only_live() noexcept {
  Slot* only = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.live()) continue;
    if (only != nullptr) return nullptr;
    only = &slot;
  }
  return only;
}

bool HedgeExecutor::others_under_way(const Slot& slot) const noexcept {
  return std::any_of(slots_.begin(), slots_.end(),
                     [&](const Slot& other) { return &other != &slot && other.under_way(); });
}

std::optional<Duration> HedgeExecutor::deadline_left(TimePoint now) const noexcept {
  if (call_.deadline == TimePoint::max()) return std::nullopt;
  return call_.deadline - now;
}

std::optional<Duration> HedgeExecutor::waited(AttemptNumber attempt, TimePoint now) const noexcept {
  for (const Slot& slot : slots_) {
    if (slot.number != attempt || slot.written_at == TimePoint{}) continue;
    return std::max(now - slot.written_at, Duration::zero());
  }
  return std::nullopt;
}

// ---- progress of an attempt

void HedgeExecutor::on_started(AttemptNumber attempt) noexcept {
  Slot* slot = find_live(attempt);
  if (slot == nullptr) return;
  slot->token.spent();
  if (slot->state == State::kWaiting) slot->state = State::kSending;
}

void HedgeExecutor::on_written(AttemptNumber attempt, Duration delay, TimePoint now) noexcept {
  on_started(attempt);
  Slot* slot = find_live(attempt);
  if (slot == nullptr || slot->state != State::kSending) return;
  slot->state = State::kAwaiting;
  slot->written_at = now;
  if (only_live() != slot) return;
  delay_ = delay;
  timer_at_ = now + delay;
  rearmed_ = false;
}

// ---- the hedge

HedgeStep HedgeExecutor::on_timer(const HedgeMoment& moment) noexcept {
  if (phase_ != Phase::kRacing || moment.now < timer_at_) return {};
  if (moment.now - timer_at_ > kLate && !std::exchange(rearmed_, true)) {
    timer_at_ = moment.now + kRearm;
    return {};
  }
  timer_at_ = TimePoint::max();
  const Slot* late = only_live();
  return late == nullptr ? HedgeStep{} : hedge(*late, moment);
}

HedgeStep HedgeExecutor::hedge(const Slot& late, const HedgeMoment& moment) noexcept {
  HedgeStep step;
  const policy::HedgeChoice choice = choose_target({.attempts = attempts_,
                                                    .attempts_max = call_.attempts_max,
                                                    .caller_attempt = call_.caller_attempt,
                                                    .deadline_left = deadline_left(moment.now)},
                                                   moment, late.budget);
  step.no_hedge = choice.reason;
  if (choice.reason != NoHedge::kNone) return step;
  RedundancyToken token;
  step.no_hedge = budget_reason(token.take({.shared = *shared_, .destination = *late.budget}));
  if (step.no_hedge != NoHedge::kNone) return step;
  Slot& slot = add(*moment.candidates[choice.target].budget, true);
  slot.token = std::move(token);
  raced_ = true;
  step.kind = HedgeStep::Kind::kBegin;
  step.attempt = slot.number;
  step.candidate = choice.target;
  step.hedge = true;
  return step;
}

// ---- answers and failures

HedgeStep HedgeExecutor::on_answer(AttemptNumber attempt, const Answer& answer,
                                   const HedgeMoment& moment) noexcept {
  Slot* slot = find_live(attempt);
  if (slot == nullptr || !slot->under_way()) return {};
  slot->token.spent();
  const bool doubtful = answer.kind == AnswerKind::kTryLater ||
                        (answer.kind == AnswerKind::kAbsent && slot->hedge) ||
                        (answer.kind == AnswerKind::kError && only_live() != slot);
  if (!doubtful) return complete(*slot);
  slot->answer = answer.kind;
  slot->state = State::kSetAside;
  if (others_under_way(*slot)) {
    return {.kind = HedgeStep::Kind::kSetAside, .attempt = attempt};
  }
  return all_ended(*slot,
                   {.failure = policy::AttemptFailure::kStatus,
                    .processed = policy::Processed::kYes,
                    .written = true,
                    .pushback = answer.pushback},
                   moment);
}

void HedgeExecutor::count_failure(Slot& slot, const Failure& failure) noexcept {
  const policy::FailedAttempt& facts = failure.facts;
  if (facts.failure == policy::AttemptFailure::kRefusedStream) ++refused_streams_;
  const bool stale = facts.failure == policy::AttemptFailure::kConnectionLost && facts.reused &&
                     facts.processed != policy::Processed::kYes;
  if (stale) ++stale_connections_;
  slot.state = State::kEnded;
  if (slot.number == first_) first_code_ = failure.code;
  if (slot.token.held()) spare_ = std::move(slot.token);
}

HedgeStep HedgeExecutor::on_failed(AttemptNumber attempt, const Failure& failure,
                                   const HedgeMoment& moment) noexcept {
  Slot* slot = find_live(attempt);
  if (slot == nullptr) return {};
  count_failure(*slot, failure);
  if (!others_under_way(*slot)) return all_ended(*slot, failure.facts, moment);
  spare_ = {};  // nothing follows at once
  if (!failure.facts.written) {
    --attempts_;  // it reached nobody
    return {};
  }
  const Slot* survivor = only_live();
  if (survivor != nullptr && survivor->state == State::kAwaiting) {
    timer_at_ = moment.now + delay_;
    rearmed_ = false;
  }
  return {};
}

HedgeStep HedgeExecutor::all_ended(Slot& last, const policy::FailedAttempt& failed,
                                   const HedgeMoment& moment) noexcept {
  timer_at_ = TimePoint::max();
  for (Slot& slot : slots_) {
    if (slot.state == State::kSetAside && slot.answer == AnswerKind::kAbsent) return complete(slot);
  }
  if (Slot* slot = error_set_aside()) return complete(*slot);
  HedgeStep step;
  if (send_again(step, last, failed, moment)) return step;
  for (Slot& slot : slots_) {
    if (slot.state == State::kSetAside && slot.number == first_) return complete(slot, step);
  }
  return fail(step);
}

/// If one of the answers is an error: the one to use.
HedgeExecutor::Slot* HedgeExecutor::error_set_aside() noexcept {
  Slot* found = nullptr;
  Slot* first = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state != State::kSetAside) continue;
    if (slot.answer == AnswerKind::kError) found = &slot;
    if (slot.number == first_) first = &slot;
  }
  return found != nullptr && first != nullptr ? first : found;
}

/// True: `step` says how the request is sent again.
bool HedgeExecutor::send_again(HedgeStep& step, Slot& last, const policy::FailedAttempt& failed,
                               const HedgeMoment& moment) noexcept {
  const policy::SendAgainDecision decision =
      policy::may_send_again(failed, {.idempotent = true, .body_kept = true},
                             {.attempts = attempts_,
                              .caller_attempt = call_.caller_attempt,
                              .refused_streams = refused_streams_,
                              .stale_connections = stale_connections_,
                              .deadline_left = deadline_left(moment.now)},
                             {.attempts_max = call_.attempts_max});
  step.again = decision.reason;
  if (decision.verdict == policy::SendAgain::kNo) return false;
  const auto target = retry_target(moment.candidates);
  const bool at_once = target && decision.wait <= Duration::zero() && !decision.same_endpoint;
  // An answer that says "try later" is better than a wait for another one.
  if (!at_once && last.state == State::kSetAside) return false;
  if (decision.verdict == policy::SendAgain::kFromBudget && !spare_.held()) {
    const BudgetVerdict verdict = spare_.take({.shared = *shared_, .destination = *last.budget});
    step.budget_empty = verdict != BudgetVerdict::kTaken;
    if (step.budget_empty) return false;
  }
  if (!failed.written) --attempts_;  // it reached nobody
  end_live(step, 0);
  step.same_endpoint = decision.same_endpoint;
  step.wait = decision.wait;
  phase_ = Phase::kBetween;
  step.kind = HedgeStep::Kind::kBeginLater;
  if (!at_once) return true;
  step.kind = HedgeStep::Kind::kBegin;
  step.candidate = *target;
  step.attempt = begin_race(*moment.candidates[*target].budget, std::move(spare_));
  return true;
}

// ---- ends

/// Zero: without exception.
void HedgeExecutor::end_live(HedgeStep& step, AttemptNumber except) noexcept {
  for (Slot& slot : slots_) {
    if (slot.number == except || !slot.live()) continue;
    slot.state = State::kEnded;
    slot.token = {};
    step.losers_storage[step.losers_count++] = slot.number;
  }
}

HedgeStep HedgeExecutor::complete(Slot& winner, HedgeStep step) noexcept {
  step.kind = HedgeStep::Kind::kComplete;
  step.attempt = winner.number;
  step.hedge = winner.hedge;
  step.raced = raced_;
  end_live(step, winner.number);
  winner.state = State::kEnded;
  timer_at_ = TimePoint::max();
  spare_ = {};
  phase_ = Phase::kIdle;
  return step;
}

HedgeStep HedgeExecutor::fail(HedgeStep step) noexcept {
  step.kind = HedgeStep::Kind::kFail;
  step.attempt = first_;
  step.code = first_code_;
  step.raced = raced_;
  end_live(step, 0);
  spare_ = {};
  phase_ = Phase::kIdle;
  return step;
}

HedgeStep HedgeExecutor::on_cancelled() noexcept {
  HedgeStep step;
  end_live(step, 0);
  timer_at_ = TimePoint::max();
  spare_ = {};
  phase_ = Phase::kIdle;
  return step;
}

}  // namespace weir::inline v0::inline control
