#include <algorithm>

#include "weir/base/assert.h"

#include "answer_outcome.h"
#include "gateway_loop.h"
#include "grpc_call.h"
#include "proxied_request.h"
#include "upstream/dispatcher.h"
#include "upstream_answer.h"

// How a proxied request ends: what the client is told, what the limiter learns, what is logged.

namespace weir::inline v0::gateway {
namespace {

/// Which side ended a stream that the server aborted for this reason.
EndedBy ended_by(CloseReason reason) noexcept {
  switch (reason) {
    case CloseReason::kShutdown:
    case CloseReason::kIdlePressure:
    case CloseReason::kBackpressure:
    case CloseReason::kReset:
      return EndedBy::kServer;
    default:
      return EndedBy::kClient;
  }
}

TunnelEnd tunnel_end_of(EndedBy by) noexcept {
  switch (by) {
    case EndedBy::kClient:
      return TunnelEnd::kClient;
    case EndedBy::kUpstream:
      return TunnelEnd::kUpstream;
    case EndedBy::kServer:
      break;
  }
  return TunnelEnd::kServer;
}

/// The client neither sent nor read fast enough.
bool is_slowness(CloseReason reason) noexcept {
  return reason == CloseReason::kBodyTimeout || reason == CloseReason::kWriteTimeout ||
         reason == CloseReason::kBackpressure;
}
policy::DecisionEnd end_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kOk:
      return policy::DecisionEnd::kOk;
    case Outcome::kIgnored:
      return policy::DecisionEnd::kIgnored;
    case Outcome::kOverload:
      return policy::DecisionEnd::kOverload;
    case Outcome::kError:
      break;
  }
  return policy::DecisionEnd::kError;
}

/// How long an upstream may go on with a request after its client has left. Most answers come
/// within it; then nothing was cut off, and the connection serves others.
constexpr Duration kLingerMax = std::chrono::milliseconds(300);

}  // namespace

void ProxiedRequest::on_upstream_failed(upstream::UpstreamFailure failure) {
  if (state_ == State::kLingering) {
    const bool late = failure == upstream::UpstreamFailure::kOverallTimeout;
    return end_linger(late ? Outcome::kIgnored : meaning_of(failure).outcome);
  }
  fail(failure);
}

void ProxiedRequest::fail(upstream::UpstreamFailure failure) {
  failure_ = failure;
  const bool no_place = failure == upstream::UpstreamFailure::kNoBuffer ||
                        failure == upstream::UpstreamFailure::kNoConnection;
  if (no_place) to_.counters.no_room.add();
  if (no_place && priority_ == Priority::kCritical) home_.count_critical_shed();
  if (meaning_of(failure).http == 504) {
    slow_ = call_.waited_for_owner() ? EndedBy::kClient : EndedBy::kUpstream;
  }
  // A slow client says nothing about the service, nor does how long a stream goes on.
  const bool bound_of_stream =
      stream_route_ && failure == upstream::UpstreamFailure::kOverallTimeout;
  finish_permit(slow_ == EndedBy::kClient ? Outcome::kError
                : bound_of_stream         ? Outcome::kIgnored
                                          : meaning_of(failure).outcome);
  if (stream_->response_started()) {
    call_.cancel();
    if (grpc() && end_with_status(answer_for(failure))) return;  // on_finished ends it
    return stream_->reset();                                     // on_abort ends it
  }
  LocalAnswer local = answer_for(failure);
  if (local.status == 503) local.retry_after = home_.retry_hint(scope(), advised_wait());
  to_.counters.answered[local.status / 100U - 1].add();
  to_.counters.duration.observe(to_seconds(home_.now() - received_at_));
  log({.status = local.status, .reason = local.reason});
  answer(local);
}

/// What the queue to the endpoint advises to those for whom it had no place; 0: nothing.
Duration ProxiedRequest::advised_wait() const noexcept {
  const upstream::Endpoint* endpoint = call_.endpoint();
  if (failure_ != upstream::UpstreamFailure::kNoConnection || endpoint == nullptr) return {};
  return policy::advice_of(endpoint->queue_state(), to_.served->upstream.outgoing().advice).delay;
}

void ProxiedRequest::refuse(GatewayReason refusal) {
  std::optional<Duration> hint;
  if (refusal.facts().pushback) hint = home_.retry_hint(scope());
  record(policy::DecisionEnd::kRefused, refusal);
  finish_permit(Outcome::kIgnored);
  // Before it is sent, so that a client that has read it finds it counted.
  to_.counters.refused[refusal.index()].add();
  log({.status = refusal.facts().http, .reason = refusal.name()});
  GatewayLoop& home = home_;
  const TimePoint from = (received_first_ ? asked_at_ : received_at_) + waited_;
  answer(answer_for(refusal, hint));  // this object may be destroyed now
  home.time_refusal(from);
}

bool ProxiedRequest::end_with_status(const LocalAnswer& answer) {
  if (response_ended_) return false;
  response_ended_ = send_status(answer, 0) == SendResult::kSent;
  return response_ended_;
}

SendResult ProxiedRequest::send_status(const LocalAnswer& answer, std::size_t before) {
  const LocalAnswerText text(answer, AnswerForm::kGrpc);
  const std::span<ResponseField> trailers = home_.field_storage();
  std::size_t count = before;
  for (const ResponseField& field : text.head().fields) {
    if (field.name == "content-type") continue;
    if (count == trailers.size()) return SendResult::kInvalid;
    trailers[count++] = field;
  }
  return stream_->send_trailers(trailers.first(count));
}

void ProxiedRequest::translate(const upstream::ResponseHead& head) {
  const LocalAnswer local = grpc_answer_for(head);
  status_ = local.status;
  time_sample();
  name_endpoint();
  finish_permit(outcome_of(head));
  to_.counters.answered[1].add();  // as 200, which every gRPC call has
  to_.counters.duration.observe(to_seconds(home_.now() - received_at_));
  log({.status = local.status, .reason = local.reason});
  answer(local);
}

void ProxiedRequest::answer(LocalAnswer answer) {
  answer.request_id = note_.request_id();
  stream_->set_handler(home_.front_handler());
  static_cast<void>(send_local(*stream_, answer, form_));
  leave();
}

/// Releases everything but the stream, which has ended or is no longer used.
void ProxiedRequest::leave() {
  record(policy::DecisionEnd::kIgnored, Reason::kAdmitted);  // its client left before its turn
  stream_ = nullptr;
  end_upload();
  call_.cancel();
  if (state_ == State::kWaiting && !home_.core().controller.cancel(waiter_)) {
    state_ = State::kLeaving;  // already decided: on_ready() follows
    return;
  }
  home_.release(*this);
}

void ProxiedRequest::on_finished(ServerStream& stream) {
  end_tunnel(TunnelEnd::kServer);
  to_.counters.answered[status_ / 100U - 1].add();
  if (!tunnel_.stands) to_.counters.duration.observe(to_seconds(home_.now() - received_at_));
  finish_permit(outcome_);
  const bool failed = failure_ != upstream::UpstreamFailure::kNone;
  log({.status = status_,
       .reason = failed       ? name_of(failure_)
                 : no_status_ ? grpc_answer_without_status().reason
                              : std::string_view{}});
  static_cast<void>(stream);
  leave();
}

void ProxiedRequest::on_abort(ServerStream& stream, CloseReason reason) {
  static_cast<void>(stream);
  EndedBy by = ended_by(reason);
  if (is_slowness(reason)) slow_ = EndedBy::kClient;
  if (failure_ != upstream::UpstreamFailure::kNone) by = slow_.value_or(EndedBy::kUpstream);
  if (reason == CloseReason::kBodyTimeout && status_ == 0) status_ = 408;  // as the server answered
  end_tunnel(reason == CloseReason::kTunnelIdle ? TunnelEnd::kIdle : tunnel_end_of(by));
  to_.counters.aborted[static_cast<std::size_t>(by)].add();
  const bool lingers = may_linger(reason);
  if (!lingers) finish_permit(Outcome::kIgnored);
  log({.status = status_,
       .reason = failure_ != upstream::UpstreamFailure::kNone ? name_of(failure_)
                 : cut_ != Reason::kAdmitted                  ? name_of(cut_)
                                                              : std::string_view{},
       .aborted = name_of(by)});
  lingers ? linger() : leave();
}

// A client that takes a request back does not take back the work of the upstream: to close the
// connection would cost the upstream a new one, and to give the permit back would let the same
// client start the same work again at once.
bool ProxiedRequest::may_linger(CloseReason reason) const noexcept {
  return ended_by(reason) == EndedBy::kClient && call_.active() && call_.under_way() &&
         call_.request_sent_at() != TimePoint{} && status_ == 0 && !upgrade_ && !stream_route_ &&
         !grpc() && failure_ == upstream::UpstreamFailure::kNone && home_.has_spare_places();
}

void ProxiedRequest::linger() noexcept {
  stream_ = nullptr;
  end_upload();
  state_ = State::kLingering;
  call_.finish_alone(home_.now() + kLingerMax);
}

void ProxiedRequest::end_linger(Outcome outcome) noexcept {
  finish_permit(outcome);
  call_.cancel();
  home_.release(*this);
}

// From the last byte of the request to the head of the response. An answer before the end of the
// body, a request that waited for an endpoint and one that was sent again have no such time. A
// hedged one has: that of the endpoint that answered.
void ProxiedRequest::time_sample() noexcept {
  if (stream_route_) return permit_.skip_sample();
  const TimePoint sent = call_.request_sent_at();
  const bool sent_again = call_.attempts() > 1 && !call_.hedged();
  if (sent == TimePoint{} || call_.held_for() > Duration(0) || sent_again) {
    permit_.skip_sample();
  } else {
    permit_.start_sample_at(sent);
  }
}

// One endpoint alone cannot pull the limit down: admission counts outcomes by endpoint.
void ProxiedRequest::name_endpoint() noexcept {
  if (const upstream::Endpoint* endpoint = call_.endpoint()) {
    permit_.set_endpoint(endpoint->number());
  }
}

void ProxiedRequest::end_service(Outcome outcome) noexcept {
  if (!permit_ || permit_.served()) return;
  if (status_ == 0) time_sample();
  name_endpoint();
  to_.counters.outcomes[static_cast<std::size_t>(outcome)].add();
  if (permit_.has_units()) permit_.end_service(outcome, home_.now());
}

void ProxiedRequest::finish_permit(Outcome outcome) noexcept {
  if (!permit_) return;
  end_service(outcome);
  record(end_of(outcome), Reason::kAdmitted);
  std::move(permit_).finish(outcome, home_.now());
}

void ProxiedRequest::log(const Ending& ending) noexcept {
  if (!home_.log().on()) return;
  const upstream::Endpoint* endpoint = call_.endpoint();
  const upstream::Endpoint* late = call_.late_endpoint();
  const bool due = policy::was_due(call_.no_hedge());
  home_.log().record({.note = note_,
                      .status = ending.status,
                      .upstream = to_.served->name(),
                      .endpoint = endpoint != nullptr ? endpoint->label() : std::string_view{},
                      .reason = ending.reason,
                      .aborted = ending.aborted,
                      .slow = slow_ ? name_of(*slow_) : std::string_view{},
                      .tunnel = tunnel_.stands ? name_of(*tunnel_.ended) : std::string_view{},
                      .priority = priority_,
                      .attempts = call_.attempts(),
                      .late_endpoint = late != nullptr ? late->label() : std::string_view{},
                      .hedged_after = call_.hedged_after(),
                      .hedge_skipped = due ? policy::name_of(call_.no_hedge()) : std::string_view{},
                      .bytes_in = stream_->body_bytes_received(),
                      .bytes_out = stream_->body_bytes_sent(),
                      .total = home_.now() - received_at_,
                      .waited = waited_,
                      .upstream_time = upstream_time_});
}

}  // namespace weir::inline v0::gateway
