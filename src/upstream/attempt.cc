#include "upstream/attempt.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "attempt_facts.h"
#include "connection_pool.h"
#include "policy/peak_ewma.h"
#include "policy/silence.h"
#include "pool_endpoint.h"
#include "upstream/answer_kind.h"
#include "upstream/call.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

// After a call into call_ this object may be destroyed: such calls come last.

namespace weir::inline v0::upstream {
namespace {

/// An answer that speaks against the endpoint. 500 does not: a request can cause it. A refusal by
/// an admission control behind us does not either.
bool is_bad(const ResponseHead& head) noexcept {
  return is_unavailable(head) && !head.headers.has(http::FieldId::kXWeirReason);
}

/// Whether a failure speaks against the endpoint. Failed connects are noted by the pool.
bool is_bad(const StreamFailure& failure) noexcept {
  switch (failure.failure) {
    case UpstreamFailure::kClosedEarly:
      return !failure.reused;
    case UpstreamFailure::kBadResponse:
    case UpstreamFailure::kTruncated:
    case UpstreamFailure::kStreamReset:
    case UpstreamFailure::kFirstByteTimeout:
    case UpstreamFailure::kStalled:
      return true;
    default:
      return false;
  }
}

}  // namespace

Attempt::Attempt(Call& call) noexcept
    : call_(call), timer_(io::Timer::Fired::to<&Attempt::on_timer>(*this)) {}

Attempt::~Attempt() {
  WEIR_ASSERT(!active());
}

// ---- to the endpoint

UpstreamFailure Attempt::begin(Dispatcher& dispatcher, PoolEndpoint& endpoint, Plan plan,
                               control::RedundancyToken& token) noexcept {
  WEIR_ASSERT(!active());
  dispatcher_ = &dispatcher;
  endpoint_ = &endpoint;
  plan_ = plan;
  position_ = 0;
  sent_at_ = owner_waited_at_ = {};
  tunnel_ = error_answer_ = bad_answer_ = false;
  state_ = State::kConnecting;
  Dispatcher::pin(endpoint);
  if (!plan.check) {
    endpoint.shared->add_in_flight();
    endpoint.counters.attempts.add();
    if (plan.hedge) {
      endpoint.counters.hedges.add();
    } else if (plan.number > 1) {
      endpoint.counters.retries.add();
    }
  }
  const Result<ClientStream*, UpstreamFailure> stream =
      dispatcher.pool().acquire(endpoint, *this,
                                {.entry = {.access = plan.access,
                                           .priority = call_.priority(),
                                           .bytes = call_.waiting_bytes(),
                                           .until = call_.deadline()},
                                 .waits = !plan.hedge,
                                 .http1 = call_.head().upgrade});
  if (!stream) {
    count(AttemptOutcome::kFailed, stream.error());
    end();
    return stream.error();
  }
  if (*stream != nullptr && !can_carry(**stream)) {
    count(AttemptOutcome::kFailed, UpstreamFailure::kHttp2Required);
    (*stream)->decline();
    end();
    return UpstreamFailure::kHttp2Required;
  }
  token_ = std::move(token);
  if (*stream != nullptr) start(**stream);
  return UpstreamFailure::kNone;
}

/// ALPN may have chosen HTTP/1.1, in which gRPC would lose its status.
bool Attempt::can_carry(const ClientStream& stream) const noexcept {
  return stream.is_http2() || !call_.head().http2_only;
}

void Attempt::on_connection(ClientStream& stream) {
  if (!can_carry(stream)) {
    stream.decline();
    return on_no_connection(UpstreamFailure::kHttp2Required);
  }
  start(stream);
  // The body, if there is one, was waiting for the head.
  if (stream_ != nullptr && pump()) call_.on_attempt_writable(*this);
}

void Attempt::on_no_connection(UpstreamFailure failure) {
  if (failure == UpstreamFailure::kDeadline) return call_.on_attempt_expired();
  fail(
      {.failure = failure, .processed = policy::Processed::kNo, .written = false, .reused = false});
}

void Attempt::start(ClientStream& stream) noexcept {
  stream_ = &stream;
  state_ = State::kSending;
  stream.start(call_.head(), call_.fields_for(plan_.number), *this);
  static_cast<void>(pump());
  if (stream.may_have_sent()) call_.on_attempt_started(*this);
  rearm();
}

std::size_t Attempt::pass(std::string_view bytes, bool last) noexcept {
  if (stream_ == nullptr || position_ != call_.body().end() || stream_->request_ended()) return 0;
  const std::size_t accepted = stream_->send(bytes, last);
  position_ += accepted;
  return accepted;
}

bool Attempt::pump() noexcept {
  if (stream_ == nullptr) return false;
  const KeptBody& body = call_.body();
  const std::uint64_t trailers_at = call_.trailers_at().value_or(body.end());
  while (!stream_->request_ended()) {
    if (position_ < trailers_at) {
      const std::string_view piece =
          body.from(position_).substr(0, static_cast<std::size_t>(trailers_at - position_));
      const bool last =
          call_.body_complete() && !call_.trailers_at() && position_ + piece.size() == body.end();
      const std::size_t accepted = stream_->send(piece, last);
      position_ += accepted;
      if (accepted < piece.size()) return false;
      continue;
    }
    if (!call_.body_complete()) break;
    if (position_ < body.end()) {
      const std::string_view lines = body.from(position_);
      const std::size_t accepted = stream_->send_trailers(lines);
      position_ += accepted;
      if (accepted < lines.size()) return false;
      continue;
    }
    static_cast<void>(stream_->send({}, true));
    if (!stream_->request_ended()) return false;
  }
  if (stream_->request_sent()) note_sent();
  // A request that the endpoint does not want to read has been accepted as far as it will be.
  return stream_->request_ended() || position_ == body.end();
}

void Attempt::note_sent() noexcept {
  if (request_sent()) return;
  sent_at_ = dispatcher_->now();
  token_.spent();
  if (state_ != State::kSending) return;
  state_ = State::kAwaiting;
  if (!plan_.check && !call_.is_stream()) dispatcher_->add_unanswered(*this);
  rearm();
  call_.on_attempt_sent(*this);
}

void Attempt::on_stream_writable() {
  if (pump()) call_.on_attempt_writable(*this);
}

void Attempt::resume() noexcept {
  if (stream_ != nullptr) stream_->resume();
}

// ---- from the endpoint

bool Attempt::on_stream_head(const ResponseHead& head) {
  if (!head.informational && state_ != State::kReceiving) note_answered(head);
  return call_.on_attempt_head(*this, head);
}

void Attempt::note_answered(const ResponseHead& head) noexcept {
  const TimePoint now = dispatcher_->now();
  Endpoint& endpoint = *endpoint_->shared;
  if (unanswered_hook.linked()) dispatcher_->remove_unanswered(*this);
  state_ = State::kReceiving;
  rearm();
  tunnel_ = head.tunnel;
  token_.spent();
  if (plan_.check) return;
  endpoint_->counters.answered.add();
  error_answer_ = head.status >= 500 || is_unavailable(head);
  bad_answer_ = is_bad(head);
  if (request_sent() && !call_.is_stream()) teach(now - sent_at_, error_answer_);
  const bool later = answer_kind_of(head) == policy::AnswerKind::kTryLater;
  if (later) {
    if (const std::optional<policy::Pushback> asked = pushback_of(head)) {
      note_pushback(asked->stop ? std::nullopt : std::optional(asked->wait));
    }
  }
  const bool refused = error_answer_ || later;
  record(refused ? control::AttemptEnd::kFailed : control::AttemptEnd::kAnswered);
  if (bad_answer_) {
    dispatcher_->upstream().note_health(endpoint, policy::HealthEvent::kBadAnswer, now);
  } else if (tunnel_) {
    note_good();
  }
}

/// It asked for fewer requests, perhaps for some time.
void Attempt::note_pushback(std::optional<Duration> asked) noexcept {
  endpoint_->shared->push_back(policy::pushback_period(asked), dispatcher_->now());
}

/// An endpoint that breaks off its answers is not well, although their heads are good: the answer
/// counts when it is complete.
void Attempt::note_good() noexcept {
  dispatcher_->upstream().note_good(*endpoint_->shared, policy::HealthEvent::kAnswered,
                                    dispatcher_->now());
}

// A hang does not teach the score: otherwise a pause of 5 s would cost the endpoint its share for a
// minute.
void Attempt::teach(Duration latency, bool error) noexcept {
  const TimePoint now = dispatcher_->now();
  if (policy::caught_in_silence(sent_at_, endpoint_->shared->suspected_until(now))) return;
  endpoint_->counters.latency.record(latency);
  teach_score({.latency = latency, .error = error});
}

void Attempt::teach_score(const policy::LatencySample& sample) noexcept {
  const TimePoint now = dispatcher_->now();
  Endpoint& endpoint = *endpoint_->shared;
  if (policy::caught_in_silence(sent_at_, endpoint.suspected_until(now))) return;
  endpoint.set_score(policy::with_sample(
      endpoint.score(), sample, dispatcher_->upstream().published().latency, kScoreRules, now));
}

// Ended by our side before the answer: it would have taken longer than this. Otherwise an endpoint
// whose answers are all later than the callers' deadlines would never look slow. A deadline that is
// shorter than what the endpoint usually takes says nothing; that a hedge was faster does.
void Attempt::teach_unanswered(bool beaten) noexcept {
  if (state_ != State::kAwaiting || plan_.check || call_.is_stream()) return;
  const Duration passed = dispatcher_->now() - sent_at_;
  const bool news = static_cast<double>(passed.count()) > endpoint_->shared->score().ns;
  if (beaten) teach_score({.latency = passed, .censored = true, .beaten = true});
  if (news) teach(passed, false);
}

/// For the hedge delay of reads. A hang says nothing about it, as for the score.
void Attempt::record(control::AttemptEnd end) noexcept {
  if (!plan_.read || !request_sent()) return;
  const TimePoint now = dispatcher_->now();
  Endpoint& endpoint = *endpoint_->shared;
  if (policy::caught_in_silence(sent_at_, endpoint.suspected_until(now))) return;
  endpoint.reads(call_.read_class()).tracker.record({.latency = now - sent_at_, .end = end}, now);
}

std::size_t Attempt::on_stream_body(std::string_view bytes) {
  return call_.on_attempt_body(bytes);
}

bool Attempt::on_stream_trailers(const http::HeaderList& trailers) {
  return call_.on_attempt_trailers(trailers);
}

std::size_t Attempt::keep_body(std::string_view bytes) noexcept {
  return call_.keep_body(bytes);
}

bool Attempt::keep_trailers(const http::HeaderList& trailers) noexcept {
  return call_.keep_trailers(trailers);
}

void Attempt::on_stream_complete() {
  count(error_answer_ ? AttemptOutcome::kError : AttemptOutcome::kOk);
  if (!bad_answer_ && !plan_.check) note_good();
  end();
  call_.on_attempt_complete();
}

void Attempt::on_stream_failed(const StreamFailure& failure) {
  stream_ = nullptr;
  fail(failure);
}

// ---- ends

void Attempt::fail(const StreamFailure& failure) noexcept {
  if (state_ == State::kAwaiting) {
    const bool late = failure.failure == UpstreamFailure::kFirstByteTimeout;
    record(late ? control::AttemptEnd::kTimedOut : control::AttemptEnd::kFailed);
  }
  count(AttemptOutcome::kFailed, failure.failure);
  const bool wants_fewer = failure.failure == UpstreamFailure::kRefusedStream ||
                           failure.failure == UpstreamFailure::kCalmDown;
  if (wants_fewer && !plan_.check) note_pushback(std::nullopt);
  if (failure.written) {
    token_.spent();
  } else {
    call_.keep_token(std::move(token_));  // it reached nobody: the next attempt needs it
  }
  if (is_bad(failure) && !plan_.check) {
    dispatcher_->upstream().note_health(*endpoint_->shared, policy::HealthEvent::kBadAnswer,
                                        dispatcher_->now());
  }
  end();
  call_.on_attempt_failed(*this, failure);
}

void Attempt::count(AttemptOutcome outcome, UpstreamFailure failure) noexcept {
  if (plan_.check) return;
  if (failure != UpstreamFailure::kNone) endpoint_->counters.failures[index_of(failure)].add();
  endpoint_->counters.ended[static_cast<std::size_t>(outcome)].add();
}

void Attempt::end() noexcept {
  dispatcher_->loop().cancel(timer_);
  dispatcher_->pool().stop_waiting(*this);
  if (unanswered_hook.linked()) dispatcher_->remove_unanswered(*this);
  token_ = {};  // given back unless it was spent
  stream_ = nullptr;
  state_ = State::kNone;
  if (!plan_.check) endpoint_->shared->sub_in_flight();
  dispatcher_->unpin(*endpoint_);
}

void Attempt::note_cancelled(bool beaten) noexcept {
  teach_unanswered(beaten);
  if (state_ == State::kAwaiting) record(control::AttemptEnd::kCancelled);
  const bool answered = state_ == State::kReceiving && error_answer_;
  count(answered ? AttemptOutcome::kError : AttemptOutcome::kCancelled);
}

std::optional<policy::LoserEnd> Attempt::lose(bool beaten) noexcept {
  if (!active()) return std::nullopt;
  note_cancelled(beaten);
  std::optional<policy::LoserEnd> how;
  if (ClientStream* stream = std::exchange(stream_, nullptr)) how = stream->lose();
  end();
  return how;
}

ClientStream& Attempt::let_finish() noexcept {
  WEIR_ASSERT(awaiting());
  note_cancelled(true);
  ClientStream& stream = *std::exchange(stream_, nullptr);
  end();
  return stream;
}

void Attempt::cancel() noexcept {
  if (!active()) return;
  note_cancelled();
  if (ClientStream* stream = std::exchange(stream_, nullptr)) {
    token_.spent();  // bytes may be on their way
    stream->cancel();
  }
  end();
}

void Attempt::give_up(UpstreamFailure failure) noexcept {
  const bool written = stream_ != nullptr;
  if (ClientStream* stream = std::exchange(stream_, nullptr)) stream->cancel();
  fail({.failure = failure,
        .processed = written ? policy::Processed::kMaybe : policy::Processed::kNo,
        .written = written,
        .reused = false});
}

bool Attempt::leave_silent() noexcept {
  if (!call_.may_move(*this)) return false;
  give_up(UpstreamFailure::kHung);
  return true;
}

// ---- timeouts

bool Attempt::waits_for_owner() const noexcept {
  if (stream_ == nullptr) return false;
  const bool request_due = !call_.body_complete() && position_ == call_.body().end();
  return stream_->paused() || (state_ == State::kSending && request_due);
}

Duration Attempt::silence_allowed() const noexcept {
  return state_ == State::kAwaiting ? call_.first_byte_timeout()
                                    : dispatcher_->upstream().timeouts().inactivity;
}

void Attempt::rearm() noexcept {
  if (!active()) return;
  if (stream_ == nullptr || call_.patient()) return dispatcher_->loop().cancel(timer_);
  const TimePoint since = std::max(stream_->progress_at(), owner_waited_at_);
  dispatcher_->loop().arm(timer_, since + silence_allowed());
}

// Progress moves the deadline without arming the timer again. A slow client does not count against
// the endpoint; the server's own timeouts cover it.
void Attempt::on_timer(TimePoint now) {
  if (waits_for_owner()) owner_waited_at_ = now;
  if (std::max(stream_->progress_at(), owner_waited_at_) + silence_allowed() > now) return rearm();
  const bool answer_due = state_ == State::kAwaiting;
  if (answer_due && !plan_.check) teach(now - sent_at_, true);
  give_up(answer_due ? UpstreamFailure::kFirstByteTimeout : UpstreamFailure::kStalled);
}

}  // namespace weir::inline v0::upstream
