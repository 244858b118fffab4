#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weir/base/time.h"

#include "control/redundancy_budget.h"
#include "policy/hedge_decision.h"
#include "policy/send_again.h"

namespace weir::inline v0::inline control {

/// Numbers the attempts of an executor, from 1. No number is used twice, so an event that comes
/// late cannot be taken for one of another attempt or call.
using AttemptNumber = std::uint32_t;

/// An endpoint that an attempt can be sent to, with its redundancy budget. The budget of an
/// endpoint pays for what its own lateness or failure causes.
struct HedgeCandidate {
  policy::HedgeTarget target{};
  RedundancyBudget* budget = nullptr;
};

/// What holds at the moment of an event.
struct HedgeMoment {
  TimePoint now{};
  policy::HedgeConditions conditions{};
  /// Endpoints that this call has not used, best first (policy::choose_replica()). The first
  /// HedgeExecutor::kCandidatesMax are looked at, during the event only.
  std::span<const HedgeCandidate> candidates{};
};

/// What the owner of the call does next.
struct HedgeStep {
  enum class Kind : std::uint8_t {
    kWait,        // nothing
    kBegin,       // begin `attempt` at candidates[candidate]
    kBeginLater,  // no attempt is under way, the request may be sent again, and no candidate can be
                  // used: after `wait` or longer choose an endpoint, and call restart()
    kSetAside,    // do not read on: this answer is used if no better one comes
    kComplete,    // `attempt` answers the call; if it was set aside, read on
    kFail,        // the call fails with the failure of `attempt`, whose code is `code`
  };
  static constexpr std::size_t kLosersMax = 2;

  Kind kind = Kind::kWait;
  AttemptNumber attempt = 0;
  std::uint32_t candidate = 0;
  bool hedge = false;          // kBegin: beside another attempt; kComplete: a hedge answers
  bool raced = false;          // kComplete, kFail: at least one hedge was sent
  bool same_endpoint = false;  // kBeginLater: the endpoint that failed is as good as another
  bool budget_empty = false;   // a retry was allowed, and there was no token for it
  std::uint8_t code = 0;
  Duration wait{};
  policy::NoHedge no_hedge = policy::NoHedge::kNone;       // a hedge was due and was not sent
  std::optional<policy::SendAgainReason> again{};          // what may_send_again() said, if asked
  std::array<AttemptNumber, kLosersMax> losers_storage{};  // see losers()
  std::uint8_t losers_count = 0;

  /// Attempts to cancel on the wire before the step is done; no event of them is expected.
  [[nodiscard]] std::span<const AttemptNumber> losers() const noexcept {
    return {losers_storage.data(), losers_count};
  }
};

/// The race of the attempts of one read: decides when another attempt is sent, which answer counts,
/// and who is cancelled. A state machine over events: it has no clock, timer or socket, so the
/// network, the simulator and gRPC run the same code.
///
///   attempt    meaning                              leaves by
///   waiting    told to start; nothing was sent      on_started, on_failed
///   sending    a byte was sent                      on_written, on_failed
///   awaiting   the whole request was sent           on_answer, on_failed
///   set aside  its answer is kept as second best    a better answer, the end of the others
///   ended      failed, lost or won                  -
///
/// Rules:
/// - The timer runs from on_written() of the only attempt under way. When it fires, may_hedge()
///   and the budget decide, once. If no hedge is sent, the attempts under way go on.
/// - If the timer fires more than 5 ms late, our own process was late and not the endpoint: it is
///   armed once more, 1 ms later.
/// - A good answer wins at once. An answer that says "try later", a gRPC error, and "not found" of
///   a hedge are set aside while another attempt is under way. If that one does no better, the
///   answer of the first attempt is used, or else the one that there is.
/// - A failure ends one attempt. If it was the only one, may_send_again() decides about the next,
///   which begins at once and is the first of a new race; otherwise the others go on, and the timer
///   runs again for them.
/// - If all have failed, the failure of the first attempt of the race is reported.
///
/// Promises: at most one kComplete or kFail, and no kBegin after it. At most kParallelMax attempts
/// at once. Each hedge, and each retry that is not transparent, holds a RedundancyToken,
/// which comes back unless on_started() was called. No hedge after the deadline. Events of attempts
/// that have ended are ignored.
/// Thread-safety: none; its owner's thread. Cost: O(1), no allocation.
/// Lifetime: one call at a time; begin() starts it again. The budgets outlive the call.
class HedgeExecutor {
 public:
  static constexpr std::size_t kParallelMax = 2;
  static constexpr std::size_t kCandidatesMax = 8;
  static constexpr Duration kLate = std::chrono::milliseconds(5);
  static constexpr Duration kRearm = std::chrono::milliseconds(1);

  struct Call {
    std::uint32_t attempts_max = 3;
    std::uint32_t caller_attempt = 1;
    TimePoint deadline = TimePoint::max();  // max: none
  };

  /// `shared`: the budget of the upstream. The owner deposits once per request into it and into
  /// that of the first endpoint, whether or not the request is hedged.
  explicit HedgeExecutor(RedundancyBudget& shared) noexcept : shared_(&shared) {}

  /// Begins a call; returns the number of its first attempt, sent to the endpoint with that budget.
  AttemptNumber begin(const policy::SafeRead& read, const Call& call,
                      RedundancyBudget& first) noexcept;
  /// After kBeginLater: the number of the next attempt.
  AttemptNumber restart(RedundancyBudget& endpoint) noexcept;

  /// The first byte of the request was given to the transport.
  void on_started(AttemptNumber attempt) noexcept;
  /// The last byte was. `delay`: LatencyTracker::hedge_delay() of the endpoint, capped.
  void on_written(AttemptNumber attempt, Duration delay, TimePoint now) noexcept;

  struct Answer {
    policy::AnswerKind kind = policy::AnswerKind::kGood;
    std::optional<policy::Pushback> pushback{};
  };
  [[nodiscard]] HedgeStep on_answer(AttemptNumber attempt, const Answer& answer,
                                    const HedgeMoment& moment) noexcept;
  struct Failure {
    policy::FailedAttempt facts{};
    std::uint8_t code = 0;  // the owner's own name of it
  };
  [[nodiscard]] HedgeStep on_failed(AttemptNumber attempt, const Failure& failure,
                                    const HedgeMoment& moment) noexcept;
  /// timer_at() has come.
  [[nodiscard]] HedgeStep on_timer(const HedgeMoment& moment) noexcept;
  /// The owner ends the call (its client left, its deadline passed). Returns kWait with the losers.
  [[nodiscard]] HedgeStep on_cancelled() noexcept;

  /// When on_timer() is due; max: never. May change with every event.
  [[nodiscard]] TimePoint timer_at() const noexcept { return timer_at_; }
  [[nodiscard]] bool ended() const noexcept { return phase_ == Phase::kIdle; }
  [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }
  /// Since the request was written to that attempt's endpoint; nullopt: it was not, or the number
  /// is too old. Also of those that have just ended: what LatencyTracker learns from a loser.
  [[nodiscard]] std::optional<Duration> waited(AttemptNumber attempt, TimePoint now) const noexcept;

 private:
  enum class Phase : std::uint8_t { kIdle, kRacing, kBetween };
  enum class State : std::uint8_t { kNone, kWaiting, kSending, kAwaiting, kSetAside, kEnded };
  struct Slot {
    AttemptNumber number = 0;
    State state = State::kNone;
    bool hedge = false;
    policy::AnswerKind answer = policy::AnswerKind::kGood;  // of one that is set aside
    TimePoint written_at{};
    RedundancyBudget* budget = nullptr;
    RedundancyToken token{};

    [[nodiscard]] bool under_way() const noexcept {
      return state >= State::kWaiting && state <= State::kAwaiting;
    }
    [[nodiscard]] bool live() const noexcept { return under_way() || state == State::kSetAside; }
  };

  [[nodiscard]] Slot* find_live(AttemptNumber attempt) noexcept;
  [[nodiscard]] Slot* only_live() noexcept;
  [[nodiscard]] Slot* error_set_aside() noexcept;
  [[nodiscard]] bool others_under_way(const Slot& slot) const noexcept;
  [[nodiscard]] std::optional<Duration> deadline_left(TimePoint now) const noexcept;
  Slot& add(RedundancyBudget& endpoint, bool hedge) noexcept;
  AttemptNumber begin_race(RedundancyBudget& endpoint, RedundancyToken token) noexcept;
  [[nodiscard]] HedgeStep hedge(const Slot& late, const HedgeMoment& moment) noexcept;
  [[nodiscard]] HedgeStep all_ended(Slot& last, const policy::FailedAttempt& failed,
                                    const HedgeMoment& moment) noexcept;
  [[nodiscard]] bool send_again(HedgeStep& step, Slot& last, const policy::FailedAttempt& failed,
                                const HedgeMoment& moment) noexcept;
  [[nodiscard]] HedgeStep complete(Slot& winner, HedgeStep step = {}) noexcept;
  [[nodiscard]] HedgeStep fail(HedgeStep step) noexcept;
  void count_failure(Slot& slot, const Failure& failure) noexcept;
  void end_live(HedgeStep& step, AttemptNumber except) noexcept;

  RedundancyBudget* shared_;
  Call call_{};
  std::array<Slot, kParallelMax> slots_{};
  AttemptNumber numbers_ = 0;   // used so far
  AttemptNumber first_ = 0;     // of the race
  std::uint32_t attempts_ = 0;  // that count: a byte was sent, or may still be
  std::uint32_t refused_streams_ = 0;
  std::uint32_t stale_connections_ = 0;
  std::uint8_t first_code_ = 0;  // the failure of the first attempt of the race
  RedundancyToken spare_{};      // of an attempt that failed before it sent a byte
  Duration delay_{};
  TimePoint timer_at_ = TimePoint::max();
  Phase phase_ = Phase::kIdle;
  bool rearmed_ = false;
  bool raced_ = false;
};

}  // namespace weir::inline v0::inline control
