#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/timer.h"
#include "weir/policy/priority.h"

#include "control/hedge_executor.h"
#include "policy/hedge_decision.h"
#include "policy/send_again.h"
#include "upstream/attempt.h"
#include "upstream/failure.h"
#include "upstream/hedge_candidates.h"
#include "upstream/held_response.h"
#include "upstream/kept_body.h"
#include "upstream/read_class.h"
#include "upstream/request_head.h"
#include "upstream/response_head.h"

namespace weir::inline v0::upstream {

class Dispatcher;
class Endpoint;

/// Events of a call, on its loop. Each may cancel the call; then no event follows.
/// Order: on_upstream_interim*, on_upstream_head, on_upstream_body*, on_upstream_trailers?,
/// on_upstream_complete; on_upstream_failed may end it at any point. The others come between.
/// on_upstream_received comes only if the response is complete before the owner has accepted it.
class CallEvents {
 public:
  /// A 1xx head. Returns whether it was passed on; then the request is never sent again. Returns
  /// false if it cancels the call.
  [[nodiscard]] virtual bool on_upstream_interim(const ResponseHead& head) = 0;
  /// False: not accepted; reading stops, and the same head is delivered again after resume().
  [[nodiscard]] virtual bool on_upstream_head(const ResponseHead& head) = 0;
  /// Returns how many bytes were accepted; if fewer than given, reading stops until resume().
  [[nodiscard]] virtual std::size_t on_upstream_body(std::string_view bytes) = 0;
  /// False: as for the head.
  [[nodiscard]] virtual bool on_upstream_trailers(const http::HeaderList& trailers) = 0;
  virtual void on_upstream_complete() = 0;
  /// The whole response has been received, and the endpoint and its connection are free for others;
  /// the call keeps the part that was not accepted, and delivers it after resume(). Must not cancel
  /// the call.
  virtual void on_upstream_received() = 0;
  /// The request is sent again: pass no more of its body until on_upstream_writable(). Must not
  /// cancel the call.
  virtual void on_upstream_blocked() = 0;
  /// All bytes that were passed have been sent: pass more.
  virtual void on_upstream_writable() = 0;
  virtual void on_upstream_failed(UpstreamFailure failure) = 0;
  /// No endpoint can be used: the call waits for one, and needs nothing of the service meanwhile.
  /// Also within start(). Must not cancel the call.
  virtual void on_upstream_held() = 0;
  /// An endpoint can be used: whether the held call may go on. If not, it stays held, and is asked
  /// again. Must not cancel the call.
  [[nodiscard]] virtual bool may_leave_hold() = 0;

 protected:
  ~CallEvents() = default;
};

/// One logical request to an upstream, over one or several attempts, and its one response.
///
/// Use: Dispatcher::open(call) leases the block for the head; write it into space(), commit(); then
/// start(). Body: send_body() accepts everything it is given (at most UpstreamMemory's body_bytes)
/// and returns whether to continue; if not, on_upstream_writable() reports when. Call
/// send_body({}, false) first: before the head is sent, no body is accepted. Or buffer_body()
/// before start(), if nothing is to be sent before the body is complete.
///
/// An attempt that fails before the response began is followed by another one, at once or after a
/// while, if policy::may_send_again() and the budget allow it. If no endpoint can be used, the call
/// is held until one can, within the bounds of the upstream. Head and body are kept until no
/// attempt can need them.
///
/// A read at an upstream with several endpoints may have two attempts at once: if the first is
/// late, control::HedgeExecutor has another one sent, and decides which answer counts. The other
/// attempt is ended on the wire before the response is delivered. A request with a body is such a
/// read if it is marked idempotent, from when its body is complete and sent, as long as all of it
/// is kept.
///
/// A response that its owner does not accept is kept in one block, as far as it fits: so a small
/// one does not occupy its connection, however slow the client is.
///
/// Promises: exactly one of on_upstream_complete and on_upstream_failed, unless it is cancelled.
/// Nothing is sent again after a byte of a response was delivered.
/// Thread-safety: its loop's thread. Cost: no allocation. Lifetime: never started, ended or
/// cancelled when it is destroyed.
class Call {
 public:
  static constexpr std::uint32_t kAttemptsMax = 3;

  explicit Call(CallEvents& events) noexcept;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  /// Room for the head, after Dispatcher::open().
  [[nodiscard]] std::span<char> space() noexcept;
  /// The parts of the head that was written there; `text` is set here.
  void commit(const RequestHead& parts) noexcept;

  struct Start {
    TimePoint deadline{};                  // set by the caller; zero: none
    std::optional<Duration> overall{};     // unset: the upstream's; 0: none
    std::optional<Duration> first_byte{};  // unset: the upstream's
    /// The answer is a stream, whose head may come with its first message. However long the
    /// endpoint is silent, this is no failure and says nothing about it: no timeout of the upstream
    /// holds, the call is not hedged, and the score learns nothing from it.
    bool stream = false;
    Priority priority = Priority::kNormal;
    std::uint32_t caller_attempt = 1;  // x-weir-attempt of the caller
    bool forwards_deadline = false;    // the time left is sent along
    bool grpc_timeout = false;         // the same as grpc-timeout
    bool idempotent = false;           // the route says so; safe methods are
    bool hedge = true;                 // false: the route does not want it
    bool repeats = false;              // the same request was started before: it has deposited
    std::uint64_t hash = 0;            // for the balance by hash
    ReadClass reads = 0;               // at most the last class of the upstream is used
    PoolEndpoint* only = nullptr;      // a check of this endpoint: one attempt, nothing is counted
  };
  /// Before start(), with the same argument: the whole body, of this length (not 0), is received
  /// first. Leases all blocks for it; the deadline and the overall timeout run from here. False:
  /// too few blocks are free, and none is held; the body can be sent after start().
  [[nodiscard]] bool buffer_body(std::uint64_t length, const Start& start) noexcept;
  /// Bytes of it. When all are there, start() sends head and body as one, and sends them again to
  /// another endpoint where that is allowed; send_body() must not be called.
  void add_to_buffer(std::string_view bytes) noexcept;

  /// On failure the call has ended, and no event follows.
  [[nodiscard]] Result<void, UpstreamFailure> start(const Start& start) noexcept;

  /// True: continue. False: nothing more may be passed until on_upstream_writable().
  [[nodiscard]] bool send_body(std::string_view bytes, bool last) noexcept;
  [[nodiscard]] bool send_trailers(std::span<const http::HeaderView> trailers) noexcept;
  /// Continues reading after something was not accepted.
  void resume() noexcept;
  /// Ends it without further events.
  void cancel() noexcept;
  /// The owner does not need the response any more, but the endpoint works on it: the attempt under
  /// way goes on until `until` at the latest, and no other follows it. Events come as before.
  void finish_alone(TimePoint until) noexcept;
  /// From here on no timeout ends it, however long it is silent: event streams, tunnels.
  void lift_deadlines() noexcept;
  /// The same, but the caller's deadline still ends it.
  void lift_timeouts() noexcept;

  /// send_body() may be called: it is not blocked.
  [[nodiscard]] bool takes_body() const noexcept { return active() && !owes_writable_; }
  [[nodiscard]] bool active() const noexcept { return dispatcher_ != nullptr; }
  [[nodiscard]] bool tunnel() const noexcept { return tunnel_; }
  /// An attempt has its stream: neither held, nor in back-off, nor waiting for a connection.
  [[nodiscard]] bool under_way() const noexcept {
    return (first_.active() && !first_.connecting()) || (second_.active() && !second_.connecting());
  }
  /// Bytes of the request's body that are held in memory.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return body_.held_bytes(); }
  /// Of them, those that the endpoint has not accepted yet; the others are kept for a retry.
  [[nodiscard]] std::uint64_t unsent_bytes() const noexcept {
    return body_.is_open() ? body_.end() - attempt_->position() : 0;
  }
  /// Bytes of the response's body that were received and not accepted.
  [[nodiscard]] std::size_t kept_bytes() const noexcept {
    return kept_.attached() ? kept_.body().size() : 0;
  }
  /// The trailers of the response, if they were received and not accepted.
  [[nodiscard]] http::HeaderList kept_trailers() const noexcept;
  /// The endpoint used last; also after the call has ended.
  [[nodiscard]] const Endpoint* endpoint() const noexcept { return endpoint_.get(); }
  [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_made_; }
  /// A hedge was sent.
  [[nodiscard]] bool hedged() const noexcept { return late_endpoint_ != nullptr; }
  /// The endpoint that was late then; nullptr: none was.
  [[nodiscard]] const Endpoint* late_endpoint() const noexcept { return late_endpoint_.get(); }
  /// How long it was waited for.
  [[nodiscard]] Duration hedged_after() const noexcept { return hedged_after_; }
  /// Why it was not hedged; kNone: it was, or this is not decided yet.
  [[nodiscard]] policy::NoHedge no_hedge() const noexcept { return no_hedge_; }
  /// A timeout ended it while the upstream was blocked on the owner: on more of the request, or on
  /// room for the response.
  [[nodiscard]] bool waited_for_owner() const noexcept { return waited_for_owner_; }
  /// When the last byte of the request was sent to the endpoint that answers; zero if the answer
  /// came before it.
  [[nodiscard]] TimePoint sent_at() const noexcept { return sent_at_; }
  /// The same before the answer too: of the attempt under way.
  [[nodiscard]] TimePoint request_sent_at() const noexcept {
    return sent_at_ == TimePoint{} && attempt_->active() ? attempt_->sent_at() : sent_at_;
  }
  /// How long it waited because no endpoint could be used.
  [[nodiscard]] Duration held_for() const noexcept { return held_for_; }

  // For Dispatcher.
  void opened(Dispatcher& dispatcher, std::byte* block, io::Access access) noexcept;
  /// An endpoint may be usable now. False: the owner does not let the call go on yet.
  [[nodiscard]] bool try_again() noexcept;
  [[nodiscard]] TimePoint held_until() const noexcept { return held_until_; }
  void hold_expired() noexcept;
  ListHook<Call> held_hook;

  // For its attempts.
  [[nodiscard]] ReadClass read_class() const noexcept { return start_.reads; }
  [[nodiscard]] const RequestHead& head() const noexcept { return head_; }
  [[nodiscard]] AttemptFields fields_for(std::uint32_t attempt) const noexcept;
  [[nodiscard]] const KeptBody& body() const noexcept { return body_; }
  [[nodiscard]] bool body_complete() const noexcept { return body_complete_; }
  [[nodiscard]] std::optional<std::uint64_t> trailers_at() const noexcept { return trailers_at_; }
  [[nodiscard]] bool patient() const noexcept { return patient_; }
  [[nodiscard]] bool is_stream() const noexcept { return start_.stream; }
  [[nodiscard]] Duration first_byte_timeout() const noexcept;
  [[nodiscard]] Priority priority() const noexcept { return start_.priority; }
  /// The earlier of the caller's and the overall one; max: none.
  [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }
  /// What it holds in memory while it waits for a connection.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept {
    return head_.size + body_.held_bytes();
  }
  /// Its attempt has waited for an answer in vain: whether another endpoint may be asked instead.
  [[nodiscard]] bool may_move(const Attempt& attempt) noexcept;
  [[nodiscard]] bool on_attempt_head(Attempt& attempt, const ResponseHead& head);
  [[nodiscard]] std::size_t on_attempt_body(std::string_view bytes) {
    return kept_.attached() ? 0 : events_.on_upstream_body(bytes);  // in their order
  }
  [[nodiscard]] bool on_attempt_trailers(const http::HeaderList& trailers) {
    return !kept_.attached() && events_.on_upstream_trailers(trailers);
  }
  [[nodiscard]] std::size_t keep_body(std::string_view bytes) noexcept;
  [[nodiscard]] bool keep_trailers(const http::HeaderList& trailers) noexcept;
  void on_attempt_writable(Attempt& attempt);
  void on_attempt_complete();
  /// The token of an attempt that fails without having sent a byte.
  void keep_token(control::RedundancyToken token) noexcept { token_ = std::move(token); }
  void on_attempt_failed(Attempt& attempt, const StreamFailure& failure);
  /// An attempt that waited for a connection was told that the deadline has passed: as our timer.
  void on_attempt_expired();
  /// A byte of its request may have left.
  void on_attempt_started(Attempt& attempt) noexcept;
  /// The whole request has.
  void on_attempt_sent(Attempt& attempt) noexcept;

 private:
  static constexpr std::size_t kTriedMax = kAttemptsMax + 1;

  /// Why a call cannot go on now.
  [[nodiscard]] UpstreamFailure next_attempt() noexcept;
  [[nodiscard]] UpstreamFailure begin_attempt(PoolEndpoint& endpoint) noexcept;
  [[nodiscard]] UpstreamFailure hold(UpstreamFailure why) noexcept;
  [[nodiscard]] UpstreamFailure after_failure(const StreamFailure& failure) noexcept;
  [[nodiscard]] bool retried_instead(const ResponseHead& head) noexcept;
  [[nodiscard]] policy::SendAgainDecision decide(const policy::FailedAttempt& failed) noexcept;
  [[nodiscard]] bool take_token(const PoolEndpoint& failed, policy::SendAgain verdict) noexcept;
  void note_decision(policy::SendAgainReason reason) noexcept;
  [[nodiscard]] std::span<const Endpoint* const> tried() const noexcept {
    return {tried_.data(), tried_count_};
  }
  [[nodiscard]] std::optional<Duration> wait_before_retry(bool at_once, Duration pushback) noexcept;

  // ---- several attempts at once (call_race.cc)
  [[nodiscard]] Result<policy::SafeRead, policy::NoHedge> safe_read() const noexcept;
  void enter_race() noexcept;
  void join_race(Attempt& attempt) noexcept;
  [[nodiscard]] bool racing() const noexcept { return race_ && !race_->ended(); }
  /// Gives up on more attempts; the one under way goes on.
  void leave_race() noexcept;
  [[nodiscard]] control::AttemptNumber number_of(const Attempt& attempt) const noexcept {
    return &attempt == &first_ ? numbers_[0] : numbers_[1];
  }
  [[nodiscard]] Attempt& attempt_with(control::AttemptNumber number) noexcept {
    return number == numbers_[0] ? first_ : second_;
  }
  [[nodiscard]] Attempt& other_than(const Attempt& attempt) noexcept {
    return &attempt == &first_ ? second_ : first_;
  }
  [[nodiscard]] HedgeCandidates candidates() noexcept;
  [[nodiscard]] control::HedgeMoment moment(const HedgeCandidates& candidates) const noexcept;
  [[nodiscard]] UpstreamFailure next_in_race() noexcept;
  struct Place {
    PoolEndpoint& endpoint;
    control::AttemptNumber number = 0;
    bool hedge = false;
  };
  [[nodiscard]] UpstreamFailure begin_in_race(const Place& place) noexcept;
  [[nodiscard]] UpstreamFailure follow(control::HedgeStep step, HedgeCandidates& candidates,
                                       StreamFailure failure) noexcept;
  [[nodiscard]] UpstreamFailure begin_later(const control::HedgeStep& step,
                                            const StreamFailure& failure) noexcept;
  [[nodiscard]] UpstreamFailure failed_in_race(Attempt& attempt,
                                               const StreamFailure& failure) noexcept;
  [[nodiscard]] std::optional<bool> answered_in_race(Attempt& attempt,
                                                     const ResponseHead& head) noexcept;
  void hedge_due() noexcept;
  void note_step(const control::HedgeStep& step) noexcept;
  void note_no_hedge(policy::NoHedge reason) noexcept;
  void lose(Attempt& attempt, bool beaten = false) noexcept;
  void proceed(UpstreamFailure failure) noexcept;
  void end(UpstreamFailure failure) noexcept;
  void detach() noexcept;
  void cancel_attempts() noexcept;
  void release_request() noexcept;
  [[nodiscard]] bool open_kept() noexcept;
  [[nodiscard]] bool deliver_kept() noexcept;
  void drop_kept() noexcept;
  void leave_hold() noexcept;
  void on_timer(TimePoint now);
  void set_deadline() noexcept;
  void rearm() noexcept;
  [[nodiscard]] std::optional<Duration> time_left() const noexcept;

  CallEvents& events_;
  Dispatcher* dispatcher_ = nullptr;
  std::shared_ptr<const Endpoint> endpoint_;
  std::shared_ptr<const Endpoint> late_endpoint_;  // of a call that was hedged
  char* block_ = nullptr;
  RequestHead head_;
  KeptBody body_;
  HeldResponse kept_;
  bool* gone_ = nullptr;  // set when the call ends, while deliver_kept() calls the owner
  Attempt first_;
  Attempt second_;                                   // the other one of a race
  Attempt* attempt_ = &first_;                       // the one that answers, or is expected to
  std::optional<control::HedgeExecutor> race_;       // of a read that may be hedged
  std::array<control::AttemptNumber, 2> numbers_{};  // in race_, of first_ and second_
  io::Timer timer_;
  Start start_;
  control::RedundancyToken token_;  // for the attempt that comes next
  std::array<const Endpoint*, kTriedMax> tried_{};
  std::uint32_t tried_count_ = 0;
  std::uint32_t attempts_made_ = 0;
  std::uint32_t retries_ = 0;  // from the budget
  std::uint32_t refused_streams_ = 0;
  std::uint32_t stale_connections_ = 0;
  TimePoint deadline_{};  // the earlier of the caller's and the overall one; max: none
  TimePoint wake_at_{};   // the next attempt begins; zero: not in back-off
  TimePoint held_until_{};
  TimePoint held_since_{};
  TimePoint sent_at_{};
  Duration held_for_{};
  Duration hedged_after_{};
  std::optional<std::uint64_t> trailers_at_;  // position in the body where trailer lines begin
  UpstreamFailure last_failure_ = UpstreamFailure::kNone;
  io::Access access_ = io::Access::kOrdinary;
  bool buffering_ = false;   // from buffer_body() to start()
  bool joins_race_ = false;  // once its body is sent
  bool body_complete_ = false;
  bool deposited_ = false;  // into the budget of its first endpoint
  bool committed_ = false;  // a response head was delivered
  bool tunnel_ = false;
  bool received_ = false;  // all of the response; a part of it is in kept_
  bool patient_ = false;   // silence is not a failure
  bool owes_writable_ = false;
  bool waited_for_owner_ = false;
  policy::NoHedge no_hedge_ = policy::NoHedge::kNone;
};

}  // namespace weir::inline v0::upstream
