#include "proxied_request.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "weir/base/assert.h"

#include "answer_outcome.h"
#include "forward_head.h"
#include "gateway_loop.h"
#include "grpc_call.h"
#include "hash_key.h"
#include "identity.h"
#include "intent.h"
#include "route_table.h"
#include "upstream/dispatcher.h"
#include "upstream_answer.h"

namespace weir::inline v0::gateway {
namespace {

bool is_event_stream(const upstream::ResponseHead& head) noexcept {
  constexpr std::string_view kType = "text/event-stream";
  return http::equals_ignore_case(
      head.headers.value(http::FieldId::kContentType).substr(0, kType.size()), kType);
}

/// The length that a response to HEAD announces.
std::optional<std::uint64_t> announced_length(const upstream::ResponseHead& head) noexcept {
  if (head.body.kind == http::h1::BodyKind::kLength) return head.body.length;
  if (head.body.kind != http::h1::BodyKind::kNone) return std::nullopt;
  const std::string_view text = head.headers.value(http::FieldId::kContentLength);
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

upstream::Call::Start start_for(const Route& route, const Intent& intent, TimePoint deadline) {
  return {.deadline = deadline,
          .overall = route.config.overall_timeout,
          .first_byte = route.config.first_byte_timeout,
          .stream = route.config.stream && !intent.upgrade,
          .priority = intent.priority,
          .caller_attempt = intent.attempt,
          .forwards_deadline = intent.time_left.has_value(),
          .grpc_timeout = intent.grpc_timeout.has_value(),
          .idempotent = route.config.idempotent,
          .hedge = route.config.hedge,
          .reads = route.reads};
}

}  // namespace

ProxiedRequest::ProxiedRequest(GatewayLoop& home, ServerStream& stream, LoopUpstream& to) noexcept
    : home_(home),
      to_(to),
      stream_(&stream),
      waiter_(
          [](Waiter& waiter) noexcept {
            ProxiedRequest& self = *static_cast<ProxiedRequest*>(waiter.context());
            self.home_.loop().post(self.ready_);
          },
          this),
      ready_(io::Callback<>::to<&ProxiedRequest::on_ready>(*this)),
      call_(*this) {
  ++to_.requests;
}

ProxiedRequest::~ProxiedRequest() {
  --to_.requests;
}

ScopeId ProxiedRequest::scope() const noexcept {
  return to_.served->scope();
}

UpstreamPlace& ProxiedRequest::place() const noexcept {
  return to_.served->place;
}

// ---- from the head to the upstream

void ProxiedRequest::begin(const ServerRequest& request, const Route& route, const Caller& caller,
                           const Intent& intent) {
  GatewayCore& core = home_.core();
  rules_ = home_.use_rules();
  route_ = &route;
  IpText actor_text;
  IpText peer_text;
  const Actor actor =
      home_.rules().identity.actor_of(*request.headers, caller, route.config.identity,
                                      core.controller, actor_text, home_.token_check());
  received_at_ = request.received_at;
  asked_at_ = home_.now();
  max_body_ = route.config.max_body;
  priority_ = intent.priority;
  has_body_ = request.body_length != std::optional<std::uint64_t>(0);
  form_ = wanted_form(request);
  upgrade_ = intent.upgrade;
  stream_route_ = route.config.stream && !upgrade_;  // a tunnel is one from its head on
  if (upgrade_ && request.version == HttpVersion::k2) {
    tunnel_.key = http::WebSocketKey::draw(home_.rng());
  }
  // Turns go by actor where there is one; uploads are always compared by address.
  if (uploads() || !actor.identity.present()) source_ = source_of(caller, core.controller);

  const AdmissionRequest ask = admission_request_for(
      route, intent,
      {.scope = scope(),
       .peer = IdentityFinder::peer_of(*request.headers, caller, core.controller, peer_text),
       .actor = actor.identity,
       .source = source_,
       .received_at = received_at_,
       .body_length = upgrade_ ? 0 : request.body_length});
  // gRPC's own clients fail a call at a 1xx.
  takes_interim_ = request.version != HttpVersion::k10 && !grpc();
  start_ = start_for(route, intent, ask.deadline);
  if (to_.served->upstream.config().balance == policy::Balance::kHash) {
    start_.hash = hash_key(home_.rules().hash_by[route.upstream], request.meta, *request.headers,
                           actor, home_.rng());
  }

  announced_ = route.config.bytes == BytesCharged::kAnnounced && has_body_ && !upgrade_;
  reserved_ = ask.bytes;

  const RequestId id = RequestId::draw(home_.rng());
  note_.take_id(*request.headers, id.view());
  begin_record(ask);
  if (route.config.identity_required && !actor.identity.present()) {
    if (home_.log().on()) {
      note_.take(request, caller);
      note_.route = route.index;
    }
    return refuse(actor.throttled ? GatewayRefusal::kTokenRate : GatewayRefusal::kNoActor);
  }
  const bool in_parts = may_receive_first(request, route);
  const Reason reason = in_parts ? take_ticket(ask) : enter(ask);
  if (home_.log().on()) take_note(request, caller, actor);
  if (reason != Reason::kAdmitted) return refuse(reason);
  // Written now even if the request waits: the views of the head are valid only during this call.
  if (!write_head(request, caller, intent, id)) return;
  in_parts ? receive_first(*request.body_length) : proceed();
}

void ProxiedRequest::take_note(const ServerRequest& request, const Caller& caller,
                               const Actor& actor) {
  note_.take(request, caller);
  note_.take_actor(actor);
  note_.route = route_->index;
  note_limit();
}

void ProxiedRequest::note_limit() noexcept {
  note_.limit = home_.core().controller.limit(to_.served->scope());
}

void ProxiedRequest::begin_record(const AdmissionRequest& ask) noexcept {
  const DecisionRecorder& recorder = home_.core().recorder;
  decision_.request = recorder.tag_of_request(note_.id.view());
  decision_.actor = DecisionRecorder::actor_tag(ask.actor);
  decision_.peer = DecisionRecorder::peer_tag(ask.peer);
  decision_.scope = static_cast<std::uint16_t>(ask.scope);
  decision_.priority = ask.priority;
  decision_.hedge = ask.hedge;
  decision_.mode = home_.core().controller.modes(ask.modes).limit;
  decision_.bytes = ask.bytes;
  decision_.cost = ask.cost;
}

void ProxiedRequest::record_numbers() noexcept {
  const ScopeLoad load = home_.core().controller.load(scope());
  decision_.limit = load.limit;
  decision_.in_flight = load.in_flight;
  decision_.waiting = load.waiting;
}

void ProxiedRequest::record(policy::DecisionEnd end, GatewayReason reason) noexcept {
  if (std::exchange(recorded_, true)) return;
  decision_.at = home_.core().recorder.since_start(asked_at_);
  decision_.wait = waited_;
  const Duration held = home_.now() - asked_at_ - waited_;
  if (granted_) decision_.latency = upstream_time_ > Duration(0) ? upstream_time_ : held;
  decision_.end = end;
  decision_.reason = static_cast<std::uint8_t>(reason.index());
  home_.record(decision_);
}

/// kAdmitted: it was not refused, but perhaps it waits.
Reason ProxiedRequest::enter(const AdmissionRequest& ask) {
  if (!may_ask()) return settle({.reason = Reason::kOverload});
  return settle(home_.core().controller.enter(ask, waiter_, asked_at_));
}

/// Uploads may have ended for it.
bool ProxiedRequest::may_ask() {
  if (!uploads()) return true;
  const bool enforced = home_.core().controller.modes(route_->modes).limit == RuleMode::kEnforce;
  return !enforced || home_.uploads().may_begin(*this, asked_at_);
}

/// Takes admission's decision. If there is no place, uploads may end for it.
Reason ProxiedRequest::settle(Entered entered) {
  const bool waits = entered.kind == Entered::Kind::kWaiting;
  const bool refused = entered.kind == Entered::Kind::kRefused;
  record_numbers();
  if (waits || (refused && entered.reason == Reason::kOverload)) home_.short_of_places(*this);
  if (refused) return entered.reason;
  permit_ = std::move(entered.permit);
  granted_ = !waits;
  if (waits) state_ = State::kWaiting;
  return Reason::kAdmitted;
}

/// To the upstream, or to the waiting room.
void ProxiedRequest::proceed() {
  if (state_ != State::kWaiting) return launch();
  stream_->pause();
  home_.watch_expiry(waiter_.expires_at());
}

/// False: the head could not be written, and the request has been answered.
bool ProxiedRequest::write_head(const ServerRequest& request, const Caller& caller,
                                const Intent& intent, const RequestId& id) {
  const bool critical = priority_ == Priority::kCritical;
  if (!to_.dispatcher.open(call_, critical ? io::Access::kCritical : io::Access::kOrdinary)) {
    fail(upstream::UpstreamFailure::kNoBuffer);
    return false;
  }
  const auto path = route_->edits.path_for(request.meta.path, home_.path_scratch());
  if (!path) {
    refuse(path.error());
    return false;
  }
  const auto head = write_request_head(call_.space(), request,
                                       {.caller = caller,
                                        .intent = intent,
                                        .edits = route_->edits,
                                        .path = *path,
                                        .forwarded = home_.rules().trust.forwarded(),
                                        .request_id = id.view(),
                                        .fallback_host = to_.served->name(),
                                        .upgrade = upgrade_,
                                        .websocket_key = tunnel_.key.view()});
  if (!head) {
    refuse(GatewayRefusal::kHeadTooLarge);
    return false;
  }
  call_.commit(*head);
  return true;
}

/// The waiter was decided. Runs on this loop, in a task that the deciding thread posted.
void ProxiedRequest::on_ready() {
  Result<Permit, Reason> decided = home_.core().controller.collect(waiter_, home_.now());
  if (state_ == State::kLeaving) {
    decided = unexpected(Reason::kAdmitted);  // returns the permit before the place is released
    return home_.release(*this);
  }
  WEIR_ASSERT(state_ == State::kWaiting);
  state_ = State::kJudged;
  waited_ = home_.now() - asked_at_;
  if (note_.taken) note_limit();
  record_numbers();
  if (!decided) return refuse(decided.error());
  permit_ = std::move(*decided);
  granted_ = true;
  launch();
}

void ProxiedRequest::launch() {
  state_ = State::kActive;
  const Result<void, upstream::UpstreamFailure> started = call_.start(start_);
  if (!started) return fail(started.error());
  begin_stream();
  reading_since_ = home_.now();
  // Responses that nobody reads may hold the connections.
  if (!call_.under_way() && to_.served->upstream.full()) stream_->make_room();
  if (uploads()) home_.uploads().add(*this);
  if (grpc() || stream_route_) stream_->expect_silence();
  // The body is requested after the head is sent: until then there is only room for the head. What
  // a client sends behind a request for a tunnel is passed on only if there will be one.
  if (upgrade_ || (streams_body() && !call_.send_body({}, false))) {
    stream_->pause();
  } else {
    stream_->resume();
  }
  charge();
}

/// On a route for streams, from when an endpoint has it: it may be silent for as long as it likes,
/// and occupies a place of streams_max, not one of the limit.
void ProxiedRequest::begin_stream() noexcept {
  if (!stream_route_ || !permit_.has_units()) return;  // held: later
  name_endpoint();
  permit_.skip_sample();
  permit_.to_streaming(home_.now());
}

// ---- the response

// 100 is ours to send: the client's Expect is not forwarded.
bool ProxiedRequest::on_upstream_interim(const upstream::ResponseHead& head) {
  if (!takes_interim_ || head.status == 100 || state_ == State::kLingering) return false;
  std::size_t count = 0;
  const std::span<ResponseField> fields = home_.field_storage();
  for (const http::HeaderView& field : head.headers) {
    if (may_forward_trailer(field)) fields[count++] = {.name = field.name, .value = field.value};
  }
  return stream_->send_headers({.status = static_cast<std::uint16_t>(head.status),
                                .fields = fields.first(count),
                                .content_length = {}}) == SendResult::kSent;
}

bool ProxiedRequest::on_upstream_head(const upstream::ResponseHead& head) {
  if (state_ == State::kLingering) {
    const Outcome outcome = outcome_of(head);
    time_sample();
    if (outcome == Outcome::kIgnored) permit_.skip_sample();
    end_linger(outcome);
    return true;
  }
  if (grpc() && !is_grpc_answer(head)) {
    translate(head);
    return true;
  }
  if (upgrade_ && !is_proper_switch(head)) {
    fail(upstream::UpstreamFailure::kBadResponse);
    return true;
  }
  // A gRPC call does not end without a status: trailers with one follow.
  const bool lacks_status = grpc() && !has_grpc_status(head.headers);
  const bool ended = head.body.empty() && !head.tunnel && !lacks_status;
  const bool in_http2 = !tunnel_.key.empty();
  const auto status = static_cast<std::uint16_t>(head.tunnel && in_http2 ? 200 : head.status);
  const SendResult sent =
      stream_->send_headers({.status = status,
                             .fields = response_fields(head, note_.request_id(), route_->edits,
                                                       home_.field_storage(), in_http2),
                             .content_length = announced_length(head),
                             .dated = head.headers.has(http::FieldId::kDate)},
                            ended);
  switch (sent) {
    case SendResult::kSent:
      response_ended_ = ended;
      status_ = status;
      head_taken(head);
      return true;
    case SendResult::kBlocked:
      return false;  // retried when a write buffer is free
    case SendResult::kInvalid:
      fail(upstream::UpstreamFailure::kBadResponse);
      return true;
    case SendResult::kClosed:
      break;
  }
  call_.cancel();  // on_abort follows
  return true;
}

void ProxiedRequest::head_taken(const upstream::ResponseHead& head) {
  const TimePoint now = home_.now();
  outcome_ = grpc() && head.body.empty() ? outcome_of_grpc(head.headers) : outcome_of(head);
  upstream_time_ = now - permit_.granted_at();
  if (!stream_route_) to_.counters.latency.observe(to_seconds(upstream_time_));
  time_sample();
  name_endpoint();
  if (outcome_ == Outcome::kIgnored) permit_.skip_sample();  // its time is not that of the service
  if (outcome_ == Outcome::kOk) permit_.to_streaming(now);
  if (head.tunnel || is_event_stream(head)) call_.lift_deadlines();
  if (head.tunnel) begin_tunnel();
  if (grpc()) call_.lift_timeouts();  // a stream may be silent; its client's deadline holds
}

std::size_t ProxiedRequest::on_upstream_body(std::string_view bytes) {
  if (tunnel_.stands) return pass_to_client(bytes);
  const std::size_t taken = stream_->send_data(bytes, false);
  untaken_ = bytes.size() - taken;
  charge();  // may end the request
  return taken;
}

bool ProxiedRequest::on_upstream_trailers(const http::HeaderList& trailers) {
  const bool lacks_status = grpc() && !has_grpc_status(trailers);
  if (grpc()) outcome_ = outcome_of_grpc(trailers);
  std::size_t count = 0;
  const std::span<ResponseField> fields = home_.field_storage();
  for (const http::HeaderView& field : trailers) {
    if (!may_forward_trailer(field) || (lacks_status && says_grpc_status(field.id))) continue;
    fields[count++] = {.name = field.name, .value = field.value};
  }
  const SendResult sent = lacks_status ? send_status(note_missing_status(), count)
                                       : stream_->send_trailers(fields.first(count));
  if (sent == SendResult::kBlocked) return false;
  if (sent == SendResult::kInvalid && grpc()) {
    fail(upstream::UpstreamFailure::kBadResponse);  // an end without a status would be no answer
    return true;
  }
  // Trailers are optional, the end of the body is not: on_upstream_complete() sends it instead.
  response_ended_ = sent != SendResult::kInvalid;
  return true;
}

LocalAnswer ProxiedRequest::note_missing_status() noexcept {
  outcome_ = Outcome::kError;
  no_status_ = true;
  return grpc_answer_without_status();
}

// The upstream has done its part. What the client does not read stays charged to its actor, but
// holds no place of the upstream. The status of a gRPC call is among what was not accepted.
void ProxiedRequest::on_upstream_received() {
  if (grpc() && !response_ended_) outcome_ = outcome_of_grpc(call_.kept_trailers());
  end_service(outcome_);
}

void ProxiedRequest::on_upstream_complete() {
  const bool lacks_status = grpc() && !response_ended_;
  if (lacks_status) outcome_ = Outcome::kError;
  end_service(outcome_);
  if (tunnel_.stands && !tunnel_.ended) tunnel_.ended = TunnelEnd::kUpstream;
  if (response_ended_) return;
  if (lacks_status) {
    if (!end_with_status(note_missing_status())) stream_->reset();  // on_abort ends it
    return;
  }
  response_ended_ = true;
  static_cast<void>(stream_->send_data({}, true));
}

void ProxiedRequest::on_writable(ServerStream&) {
  untaken_ = 0;
  if (tunnel_.leaving) say_goodbye();
  if (charge()) call_.resume();
}

}  // namespace weir::inline v0::gateway
