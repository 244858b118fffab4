#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "weir/base/time.h"
#include "weir/experimental/grpc/hedged_channel.h"

#include "control/hedge_executor.h"
#include "control/redundancy_budget.h"
#include "hedged_attempt.h"
#include "hedged_methods.h"
#include "hedged_outcome.h"
#include "policy/hedge_decision.h"
#include "replica_links.h"

namespace weir::inline v0::grpc {

class HedgedCore;

/// Why a call has ended.
enum class HedgedEnd : std::uint8_t {
  kAnswered,   // with the status of a replica
  kFailed,     // without
  kCancelled,  // by the caller or by close()
};

/// A call that is under way: carries out what control::HedgeExecutor decides for a read, and what
/// policy::may_send_again() says about any other method.
///
/// An attempt that has not been written after the hedge delay (10 to 100 ms), because its replica
/// has no connection or no free stream, moves to a replica that has: that is our own queue, so it
/// is no sample and costs no budget.
///
/// A refusal that is left over is followed by another call of the executor, not before the pushback
/// (policy::retry_overloaded()); it is neither hedged nor repeated by the executor.
///
/// Thread-safety: the lock of its channel. Lifetime: HedgedCore::end() ends it; it is destroyed
/// after the event.
class HedgedPending {
 public:
  static constexpr std::uint32_t kAttemptsMax = 3;
  static constexpr Duration kPatienceMin = std::chrono::milliseconds(10);
  static constexpr Duration kPatienceMax = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kMovesMax = 3;

  struct Start {
    HedgedCallId id = 0;
    std::string method;
    HedgedMethods::Entry kind{};
    ::grpc::ByteBuffer request;
    HedgedCallOptions options;
    TimePoint deadline{};
    gpr_timespec wire_deadline{};  // the same
    HedgedChannel::OnAnswer on_answer;
  };
  HedgedPending(HedgedCore& core, Start start);
  HedgedPending(const HedgedPending&) = delete;
  HedgedPending& operator=(const HedgedPending&) = delete;

  void begin();
  /// The headers of the attempt were sent.
  void on_headers(HedgedAttempt& attempt);
  /// Message and status of the attempt are here.
  void on_resolved(HedgedAttempt& attempt);
  void on_time();
  void end_early(HedgedEnd how, ::grpc::Status status);

  /// When on_time() is due. May change with every event.
  [[nodiscard]] TimePoint due() const noexcept;
  [[nodiscard]] const Start& facts() const noexcept { return start_; }
  /// What the next attempt says in x-weir-attempt.
  [[nodiscard]] std::uint32_t attempt_header() const noexcept {
    return start_.options.attempt + written_;
  }
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] HedgedChannel::OnAnswer take_callback() { return std::move(start_.on_answer); }

  TimePoint armed_for{};  // of its timer; HedgedCore's

 private:
  struct Ended {
    control::AttemptNumber number = 0;
    HedgedOutcome outcome;
    ReplyHints hints;
    ReplicaLink* link = nullptr;
    HedgedAnswer answer;
  };

  struct Place {
    ReplicaLink& link;
    control::AttemptNumber number = 0;
    bool hedge = false;
  };

  [[nodiscard]] ReplicaLinks::Ask ask() const;
  [[nodiscard]] control::HedgeMoment moment(const ReplicaCandidates& candidates) const;
  [[nodiscard]] ReplicaCandidates candidates() const;
  [[nodiscard]] std::optional<Duration> deadline_left() const;
  [[nodiscard]] Duration patience(ReplicaLink& link) const;
  [[nodiscard]] HedgedAttempt* attempt_with(control::AttemptNumber number) const noexcept;

  void begin_next();
  void nowhere_to_go(bool all_full);
  [[nodiscard]] bool begin_at(const Place& place);
  void move_if_stuck();
  void detach(HedgedAttempt& attempt);
  void lose(HedgedAttempt& attempt, bool beaten, bool paced);

  void follow(control::HedgeStep step, ReplicaCandidates& found, bool written);
  void fail_unseen(Ended ended);
  void ended_alone(Ended ended);
  void begin_later(Duration wait, bool written);
  [[nodiscard]] bool again_after_refusal(const Ended& ended);
  [[nodiscard]] bool take_token(ReplicaLink& link);
  void out_of_time();
  void finish(control::AttemptNumber number);
  void end(HedgedEnd how, HedgedAnswer answer);

  void record(ReplicaLink& link, Duration waited, control::AttemptEnd how) const;
  void learn(const HedgedAttempt& attempt, const HedgedOutcome& outcome, const ReplyHints& hints);
  [[nodiscard]] static Ended ended_of(HedgedAttempt& attempt, const HedgedOutcome& outcome,
                                      const ReplyHints& hints);
  [[nodiscard]] static Ended full_queue(control::AttemptNumber number, ReplicaLink& link);
  void count_retry();
  void note_step(const control::HedgeStep& step);
  void note_no_hedge(policy::NoHedge reason);

  HedgedCore& core_;
  Start start_;
  std::optional<control::HedgeExecutor> race_;
  std::array<HedgedAttempt*, control::HedgeExecutor::kParallelMax> attempts_{};
  std::vector<const ReplicaLink*> tried_;
  std::vector<Ended> ended_;
  control::RedundancyToken token_;      // of an attempt that the executor did not ask for
  control::AttemptNumber numbers_ = 0;  // used, without an executor
  std::uint32_t written_ = 0;           // attempts that may have reached a replica
  std::uint32_t retries_ = 0;
  std::uint32_t laters_ = 0;  // waits after attempts that reached nobody
  std::uint32_t moves_ = 0;
  TimePoint patience_at_ = TimePoint::max();
  TimePoint retry_at_ = TimePoint::max();
  policy::NoHedge no_hedge_ = policy::NoHedge::kNone;
  bool between_ = false;  // the executor waits for restart()
  bool deposited_ = false;
  bool refused_ = false;  // an attempt after a refusal: no hedges
  bool hedged_ = false;
  bool judged_ = false;  // whether the hedge was worth it
  bool over_ = false;
};

}  // namespace weir::inline v0::grpc
