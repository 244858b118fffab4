#include "upstream/call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/http/limits.h"

#include "attempt_facts.h"
#include "policy/retry_backoff.h"
#include "pool_endpoint.h"
#include "upstream/answer_kind.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

// After a call into events_ this object may be destroyed: such calls come last.

namespace weir::inline v0::upstream {
namespace {

constexpr policy::SendAgainRules kSendAgainRules{.attempts_max = Call::kAttemptsMax};

}  // namespace

Call::Call(CallEvents& events) noexcept
    : events_(events),
      first_(*this),
      second_(*this),
      timer_(io::Timer::Fired::to<&Call::on_timer>(*this)) {}

Call::~Call() {
  WEIR_ASSERT(dispatcher_ == nullptr && block_ == nullptr);
}

// ---- the request

void Call::opened(Dispatcher& dispatcher, std::byte* block, io::Access access) noexcept {
  WEIR_ASSERT(!active());
  dispatcher_ = &dispatcher;
  block_ = reinterpret_cast<char*>(block);
  access_ = access;
  endpoint_.reset();
  tried_count_ = attempts_made_ = retries_ = refused_streams_ = stale_connections_ = 0;
  wake_at_ = held_until_ = held_since_ = sent_at_ = {};
  held_for_ = {};
  trailers_at_.reset();
  last_failure_ = UpstreamFailure::kNone;
  body_complete_ = committed_ = tunnel_ = received_ = patient_ = deposited_ = false;
  owes_writable_ = waited_for_owner_ = buffering_ = joins_race_ = false;
  no_hedge_ = policy::NoHedge::kNone;
  late_endpoint_.reset();
  hedged_after_ = {};
  race_.reset();
  numbers_ = {};
  attempt_ = &first_;
}

std::span<char> Call::space() noexcept {
  return {block_, dispatcher_->memory().heads.block_bytes()};
}

void Call::commit(const RequestHead& parts) noexcept {
  head_ = parts;
  head_.text = block_;
}

bool Call::buffer_body(std::uint64_t length, const Start& start) noexcept {
  WEIR_ASSERT(active() && !body_.is_open() && length > 0);
  const bool leased = body_.open({.blocks = &dispatcher_->memory().buffers,
                                  .loop = dispatcher_->loop_index(),
                                  .access = access_,
                                  .keep_max = length}) &&
                      body_.can_keep(static_cast<std::size_t>(length));
  if (!leased) {
    body_.close();
    return false;
  }
  buffering_ = true;
  start_ = start;
  set_deadline();
  rearm();
  return true;
}

void Call::add_to_buffer(std::string_view bytes) noexcept {
  WEIR_ASSERT(active() && body_.keeping());
  body_.append(bytes);
}

Result<void, UpstreamFailure> Call::start(const Start& start) noexcept {
  WEIR_ASSERT(active() && head_.size > 0);
  start_ = start;
  const std::uint32_t last = dispatcher_->upstream().read_classes() - 1;
  start_.reads = static_cast<ReadClass>(std::min<std::uint32_t>(start.reads, last));
  start_.hedge = start.hedge && !start.stream;
  patient_ = patient_ || start.stream;
  const Upstream& upstream = dispatcher_->upstream();
  const bool buffered = std::exchange(buffering_, false);
  if (!buffered) set_deadline();
  body_complete_ = buffered || (head_.framing == RequestFraming::kNone && !head_.upgrade);
  UpstreamFailure failure = UpstreamFailure::kNone;
  if (!body_complete_ &&
      !body_.open({.blocks = &dispatcher_->memory().bodies,
                   .loop = dispatcher_->loop_index(),
                   .access = access_,
                   .keep_max = head_.upgrade ? 0 : upstream.config().retry_body_max})) {
    failure = UpstreamFailure::kNoBuffer;
  }
  deposited_ = start.repeats;
  if (start.only == nullptr) {
    if (!start.repeats) dispatcher_->upstream().budget().deposit();
    enter_race();
  }
  if (failure == UpstreamFailure::kNone) failure = next_attempt();
  if (failure == UpstreamFailure::kNone) return {};
  detach();
  return unexpected(failure);
}

void Call::set_deadline() noexcept {
  const Duration usual = start_.stream ? Duration(0) : dispatcher_->upstream().timeouts().overall;
  const Duration overall = start_.overall.value_or(usual);
  deadline_ = overall > Duration(0) ? dispatcher_->now() + overall : TimePoint::max();
  if (start_.deadline != TimePoint{}) deadline_ = std::min(deadline_, start_.deadline);
}

Duration Call::first_byte_timeout() const noexcept {
  return start_.first_byte.value_or(dispatcher_->upstream().timeouts().first_byte);
}

AttemptFields Call::fields_for(std::uint32_t attempt) const noexcept {
  AttemptFields fields{.attempt = start_.caller_attempt + attempt - 1, .time_left_ms = {}};
  if (start_.grpc_timeout && start_.deadline != TimePoint{}) {
    fields.grpc_timeout = start_.deadline - dispatcher_->now();
  }
  if (start_.forwards_deadline && start_.deadline != TimePoint{}) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(start_.deadline - dispatcher_->now());
    fields.time_left_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 0));
  }
  return fields;
}

bool Call::send_body(std::string_view bytes, bool last) noexcept {
  if (received_) return true;  // the endpoint has answered without it
  WEIR_ASSERT(active() && !owes_writable_);
  body_complete_ = body_complete_ || last;
  if (!body_.is_open()) return true;
  if (!body_.can_keep(bytes.size())) {
    body_.stop_keeping(attempt_->position());
    // Nothing is kept: sends from where the bytes are, and stores the rest only.
    const std::size_t sent = attempt_->pass(bytes, last);
    body_.skip(sent);
    bytes.remove_prefix(sent);
  }
  body_.append(bytes);
  owes_writable_ = !attempt_->pump();
  if (!body_.keeping()) body_.stop_keeping(attempt_->position());
  return !owes_writable_;
}

bool Call::send_trailers(std::span<const http::HeaderView> trailers) noexcept {
  if (received_) return true;
  if (head_.framing != RequestFraming::kChunked || trailers.empty()) return send_body({}, true);
  WEIR_ASSERT(active() && !owes_writable_);
  body_complete_ = true;
  if (!body_.is_open()) return true;
  std::size_t size = 0;
  for (const http::HeaderView& field : trailers) size += field.name.size() + field.value.size() + 4;
  // They must be in one block. Trailers are optional, the end of the body is not.
  const bool kept = body_.can_keep_together(size);
  if (!kept) body_.stop_keeping(attempt_->position());
  if (kept || (size <= dispatcher_->memory().bodies.block_bytes() && body_.held_bytes() == 0)) {
    trailers_at_ = body_.end();
    for (const http::HeaderView& field : trailers) {
      for (const std::string_view piece :
           {field.name, std::string_view(": "), field.value, std::string_view("\r\n")}) {
        body_.append(piece);
      }
    }
  }
  owes_writable_ = !attempt_->pump();
  return !owes_writable_;
}

void Call::on_attempt_writable(Attempt& attempt) {
  if (committed_ && attempt.request_sent()) release_request();
  if (!body_.keeping() && body_.is_open()) body_.stop_keeping(attempt.position());
  if (std::exchange(owes_writable_, false)) events_.on_upstream_writable();
}

// A request that is sent, and whose response has begun, is never sent again.
void Call::release_request() noexcept {
  if (!tunnel_) body_.close();  // a tunnel still needs it for the bytes of the client
  if (block_ == nullptr) return;
  dispatcher_->memory().heads.release(dispatcher_->loop_index(),
                                      reinterpret_cast<std::byte*>(block_));
  block_ = nullptr;
}

// ---- attempts

std::optional<Duration> Call::time_left() const noexcept {
  if (deadline_ == TimePoint::max()) return std::nullopt;
  return deadline_ - dispatcher_->now();
}

/// kNone: an attempt is under way, or the call is held. Otherwise why the call cannot go on.
UpstreamFailure Call::next_attempt() noexcept {
  if (start_.only != nullptr) return begin_attempt(*start_.only);
  if (race_) return next_in_race();
  for (;;) {
    const Dispatcher::Chosen chosen = dispatcher_->choose(
        {.tried = tried(),
         .hash = start_.hash,
         .tried_again = true,
         .may_try = is_safe(head_.method) && head_.framing == RequestFraming::kNone});
    if (chosen.endpoint == nullptr) return hold(last_failure_);
    const UpstreamFailure failure = begin_attempt(*chosen.endpoint);
    if (failure == UpstreamFailure::kNone || is_final(failure)) return failure;
    last_failure_ = failure;
    --attempts_made_;  // it reached nobody
    if (!dispatcher_->other_open(tried())) return hold(failure);
  }
}

UpstreamFailure Call::begin_attempt(PoolEndpoint& endpoint) noexcept {
  endpoint_ = endpoint.shared;
  if (tried_count_ < tried_.size()) tried_[tried_count_++] = endpoint_.get();
  ++attempts_made_;
  if (!std::exchange(deposited_, true) && start_.only == nullptr) {
    endpoint.shared->budget().deposit();
  }
  rearm();
  if (attempts_made_ > 1 && body_.is_open()) owes_writable_ = true;
  const Attempt::Plan plan{
      .number = attempts_made_, .access = access_, .check = start_.only != nullptr};
  return attempt_->begin(*dispatcher_, endpoint, plan, token_);
}

/// No endpoint can be used: waits for one, if the bounds of the upstream allow it.
UpstreamFailure Call::hold(UpstreamFailure why) noexcept {
  const UpstreamFailure failure =
      why == UpstreamFailure::kNone ? UpstreamFailure::kNoEndpoint : why;
  const Duration hold_max = dispatcher_->upstream().timeouts().hold;
  if (hold_max <= Duration(0) || deadline_ <= dispatcher_->now()) return failure;
  const TimePoint now = dispatcher_->now();
  if (held_since_ == TimePoint{}) {
    dispatcher_->upstream().counters(dispatcher_->loop_index()).held.add();
    held_since_ = now;
    held_until_ = std::min(now + hold_max, deadline_);
  }
  if (held_until_ <= now || !dispatcher_->hold(*this)) return failure;
  last_failure_ = failure;
  rearm();
  events_.on_upstream_held();
  return UpstreamFailure::kNone;
}

void Call::leave_hold() noexcept {
  if (!held_hook.linked()) return;
  dispatcher_->release(*this);
  held_for_ = dispatcher_->now() - held_since_;
}

bool Call::try_again() noexcept {
  if (!events_.may_leave_hold()) return false;
  leave_hold();
  tried_count_ = 0;
  proceed(next_attempt());
  return true;
}

/// After a step that began another attempt, or could not.
void Call::proceed(UpstreamFailure failure) noexcept {
  if (failure != UpstreamFailure::kNone) return end(failure);
  if (owes_writable_ && attempt_->pump()) on_attempt_writable(*attempt_);
}

policy::SendAgainDecision Call::decide(const policy::FailedAttempt& failed) noexcept {
  return policy::may_send_again(
      failed,
      {.idempotent = is_idempotent(head_.method) || start_.idempotent,
       .body_kept = !body_.is_open() || body_.keeping() || (head_.upgrade && body_.end() == 0),
       .upgrade = head_.upgrade,
       .answered = committed_},
      {.attempts = attempts_made_,
       .caller_attempt = start_.caller_attempt,
       .refused_streams = refused_streams_,
       .stale_connections = stale_connections_,
       .deadline_left = time_left()},
      kSendAgainRules);
}

// The token is not taken yet: without one the attempt goes on, since an answer may still come.
bool Call::may_move(const Attempt& attempt) noexcept {
  const Attempt& other = other_than(attempt);
  if (racing() && other.active() && !other.receiving()) return true;  // that one goes on
  const policy::SendAgainDecision decision = decide({.failure = policy::AttemptFailure::kSilent,
                                                     .processed = policy::Processed::kMaybe,
                                                     .written = true,
                                                     .reused = false,
                                                     .pushback = {}});
  return decision.verdict != policy::SendAgain::kNo &&
         dispatcher_->upstream().budget().balance_millitokens() >= policy::kRedundancyToken &&
         attempt.endpoint().shared->budget().balance_millitokens() >= policy::kRedundancyToken &&
         dispatcher_->other_open(tried());
}

bool Call::take_token(const PoolEndpoint& failed, policy::SendAgain verdict) noexcept {
  if (verdict != policy::SendAgain::kFromBudget || token_.held()) return true;
  if (token_.take({.shared = dispatcher_->upstream().budget(),
                   .destination = failed.shared->budget()}) == control::BudgetVerdict::kTaken) {
    return true;
  }
  dispatcher_->upstream().counters(dispatcher_->loop_index()).budget_empty.add();
  return false;
}

void Call::note_decision(policy::SendAgainReason reason) noexcept {
  dispatcher_->upstream()
      .counters(dispatcher_->loop_index())
      .decisions[static_cast<std::size_t>(reason)]
      .add();
}

void Call::on_attempt_failed(Attempt& attempt, const StreamFailure& failure) {
  if (!racing()) return proceed(after_failure(failure));
  const UpstreamFailure ends = failed_in_race(attempt, failure);
  if (ends != UpstreamFailure::kNone) return end(ends);
  if (!racing()) attempt_->resume();  // an answer that was set aside is the one
}

void Call::on_attempt_expired() {
  on_timer(dispatcher_->now());
}

std::optional<Duration> Call::wait_before_retry(bool at_once, Duration pushback) noexcept {
  return policy::retry_wait({.retries = retries_,
                             .other_available = at_once,
                             .pushback = pushback,
                             .deadline_left = time_left()},
                            {}, dispatcher_->rng());
}

/// kNone: another attempt follows, now or later.
UpstreamFailure Call::after_failure(const StreamFailure& failure) noexcept {
  if (start_.only != nullptr) return failure.failure;
  if (race_ && !committed_) return failure.failure;  // the race has decided
  if (is_final(failure.failure)) return failure.failure;
  if (failure.failure == UpstreamFailure::kRefusedStream) ++refused_streams_;
  if (failure.failure == UpstreamFailure::kClosedEarly && failure.reused) ++stale_connections_;
  const policy::SendAgainDecision decision = decide(facts_of(failure));
  if (!failure.written) --attempts_made_;  // it reached nobody
  PoolEndpoint& at = attempt_->endpoint();
  const bool other = dispatcher_->other_open(tried());
  if (!failure.written && !committed_ && !other && !dispatcher_->upstream().any_open()) {
    if (decision.reason == policy::SendAgainReason::kDeadline) return failure.failure;
    return hold(failure.failure);
  }
  if (decision.verdict == policy::SendAgain::kNo) {
    note_decision(decision.reason);
    return failure.failure;
  }
  if (!take_token(at, decision.verdict)) return failure.failure;
  note_decision(decision.reason);
  if (decision.same_endpoint && tried_count_ > 0) --tried_count_;
  // A kept connection that accepted nothing: a new one will do.
  const bool stale = failure.reused && !failure.written && stale_connections_ <= 1;
  const bool at_once = other || decision.same_endpoint || stale;
  const std::optional<Duration> wait = wait_before_retry(at_once, decision.wait);
  if (!wait) return failure.failure;
  if (decision.verdict == policy::SendAgain::kFromBudget) ++retries_;
  last_failure_ = failure.failure;
  if (body_.is_open() && !std::exchange(owes_writable_, true)) events_.on_upstream_blocked();
  if (*wait == Duration(0)) return next_attempt();
  wake_at_ = dispatcher_->now() + *wait;
  rearm();
  return UpstreamFailure::kNone;
}

/// An answer that says "try later" is dropped if another endpoint can be asked at once.
bool Call::retried_instead(const ResponseHead& head) noexcept {
  if (start_.only != nullptr || !is_unavailable(head)) return false;
  const policy::SendAgainDecision decision = decide({.failure = policy::AttemptFailure::kStatus,
                                                     .processed = policy::Processed::kYes,
                                                     .written = true,
                                                     .reused = false,
                                                     .pushback = pushback_of(head)});
  if (decision.verdict == policy::SendAgain::kNo || decision.wait > Duration(0)) return false;
  if (!dispatcher_->other_open(tried())) return false;
  if (!take_token(attempt_->endpoint(), decision.verdict)) return false;
  note_decision(decision.reason);
  ++retries_;
  attempt_->cancel();
  if (body_.is_open() && !std::exchange(owes_writable_, true)) events_.on_upstream_blocked();
  proceed(next_attempt());
  return true;
}

// ---- ends

void Call::hold_expired() noexcept {
  const bool callers = start_.deadline != TimePoint{} && start_.deadline <= dispatcher_->now();
  if (callers) return end(UpstreamFailure::kDeadline);
  end(last_failure_ == UpstreamFailure::kNone ? UpstreamFailure::kNoEndpoint : last_failure_);
}

void Call::end(UpstreamFailure failure) noexcept {
  detach();
  events_.on_upstream_failed(failure);
}

void Call::detach() noexcept {
  WEIR_ASSERT(!first_.active() && !second_.active());
  if (race_) static_cast<void>(race_->on_cancelled());  // its tokens come back
  leave_hold();
  tunnel_ = false;
  received_ = false;
  if (gone_ != nullptr) *std::exchange(gone_, nullptr) = true;
  token_ = {};
  dispatcher_->loop().cancel(timer_);
  release_request();
  drop_kept();
  dispatcher_ = nullptr;
}

void Call::cancel() noexcept {
  if (!active()) return;
  cancel_attempts();
  detach();
}

void Call::cancel_attempts() noexcept {
  first_.cancel();
  second_.cancel();
}

void Call::finish_alone(TimePoint until) noexcept {
  WEIR_ASSERT(under_way());
  leave_race();
  committed_ = true;  // never sent again
  if (attempt_->request_sent()) release_request();
  deadline_ = std::min(deadline_, until);
  rearm();
}

void Call::lift_deadlines() noexcept {
  start_.deadline = {};
  lift_timeouts();
}

void Call::lift_timeouts() noexcept {
  deadline_ = start_.deadline != TimePoint{} ? start_.deadline : TimePoint::max();
  patient_ = true;
  rearm();
  attempt_->rearm();
}

void Call::rearm() noexcept {
  TimePoint at = deadline_;
  if (wake_at_ != TimePoint{}) at = std::min(at, wake_at_);
  if (race_) at = std::min(at, race_->timer_at());
  if (at == TimePoint::max()) return dispatcher_->loop().cancel(timer_);
  if (!timer_.armed() || timer_.deadline() != at) dispatcher_->loop().arm(timer_, at);
}

void Call::on_timer(TimePoint now) {
  if (deadline_ <= now) {
    waited_for_owner_ = received_ || buffering_ || (!racing() && attempt_->waits_for_owner());
    cancel_attempts();
    if (deadline_ == start_.deadline) return end(UpstreamFailure::kDeadline);
    if (held_hook.linked()) return hold_expired();  // no endpoint was slow: there was none
    return end(UpstreamFailure::kOverallTimeout);
  }
  if (race_ && race_->timer_at() <= now) return hedge_due();
  wake_at_ = {};
  rearm();
  proceed(next_attempt());
}

}  // namespace weir::inline v0::upstream
