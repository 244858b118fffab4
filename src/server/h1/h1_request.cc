#include <array>
#include <span>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "canned_responses.h"
#include "connection.h"
#include "h1/h1_session.h"
#include "shard.h"

namespace weir::inline v0::inline server {
namespace {

/// The handler of a request that is refused before a handler sees it.
struct NoHandler final : Handler {
  void on_headers(ServerStream&, const ServerRequest&) override {}
};
constinit NoHandler no_handler;

std::span<const char> chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A first line of three words without "HTTP/".
bool names_no_http(std::span<const char> bytes, http::ParseError error) {
  if (error != http::ParseError::kBadVersion) return false;
  const std::string_view text(bytes.data(), bytes.size());
  return text.substr(0, text.find('\n')).find("HTTP/") == std::string_view::npos;
}

}  // namespace

H1Session::H1Session(Connection& connection, LoopShard& shard) noexcept
    : connection_(connection),
      shard_(shard),
      parser_(shard.shared().config),
      arena_(shard, *this) {}

void H1Session::enter(State next) noexcept {
  using enum State;
  constexpr auto to = [](auto... states) { return ((1U << static_cast<unsigned>(states)) | ...); };
  static constexpr std::array<unsigned, 11> kNext = {{
      to(kHead, kDiscard),                            // kIdle
      to(kExpect, kBody, kWhole, kDiscard),           // kHead
      to(kBody, kDrain, kDiscard),                    // kExpect
      to(kWhole, kDrain, kDiscard),                   // kBody
      to(kComplete, kIdle, kTunnelAgreed, kDiscard),  // kWhole
      to(kIdle, kTunnel, kDiscard),                   // kComplete
      to(kIdle, kDiscard),                            // kDrain
      to(kTunnel, kDiscard),                          // kTunnelAgreed
      to(kTunnelEnded, kDiscard),                     // kTunnel
      to(kDiscard),                                   // kTunnelEnded
      0U,                                             // kDiscard
  }};
  WEIR_ASSERT((kNext[static_cast<unsigned>(state_)] & to(next)) != 0);
  state_ = next;
}

/// Each state leads to the next, in a circle; each except kOver also leads to kOver.
void H1Session::enter(Response next) noexcept {
  const unsigned following = (static_cast<unsigned>(response_) + 1) % 5;
  WEIR_ASSERT(static_cast<unsigned>(next) == following ||
              (next == Response::kOver && response_ != Response::kOver));
  response_ = next;
}

bool H1Session::advance(TimePoint now) {
  bool did = false;
  while (!connection_.failed() && !connection_.finishing() && step(now)) did = true;
  return did;
}

/// False if the request is blocked on input, its handler, an arena or the end of its response.
bool H1Session::step(TimePoint now) {
  switch (state_) {
    case State::kIdle:
    case State::kHead:
      return read_head(now);
    case State::kExpect:
    case State::kBody:
    case State::kDrain:
      return read_body(now);
    case State::kWhole:
    case State::kTunnelAgreed:
      return tell_complete();
    case State::kTunnel:
      return read_tunnel(now);
    default:
      return false;
  }
}

bool H1Session::wants_input() const noexcept {
  if (body_open()) return !held() && response_ < Response::kDone;
  if (state_ == State::kTunnel) return !held();
  return state_ == State::kIdle || state_ == State::kHead || state_ == State::kDrain;
}

bool H1Session::read_head(TimePoint now) {
  const std::span<const char> bytes = chars(connection_.input().decrypted());
  if (bytes.empty()) return false;
  if (state_ == State::kIdle) {
    enter(State::kHead);
    head_since_ = now;
  }
  http::h1::RequestHead head;
  const http::h1::HeadResult result = parser_.parse_head(bytes, shard_.header_storage(), head);
  switch (result.status) {
    case http::h1::ParseStatus::kNeedMore:
      return false;
    case http::h1::ParseStatus::kError:
      if (requests_ == 0 && shard_.config().http2_enabled && names_no_http(bytes, result.error)) {
        refuse_unknown_protocol();
      } else {
        refuse(status_of(result.error), CloseReason::kParseError);
      }
      return false;
    case http::h1::ParseStatus::kComplete:
      break;
  }
  begin(head, now);
  connection_.input().consume_decrypted(result.consumed);
  return true;
}

void H1Session::begin(const http::h1::RequestHead& head, TimePoint now) {
  ++requests_;
  id_ = shard_.shared().next_stream_id.fetch_add(1, std::memory_order_relaxed);
  decoder_ = http::h1::BodyDecoder(head.body, shard_.shared().config);
  body_received_ = body_sent_ = response_length_ = drained_ = 0;
  enter(Response::kNone);
  framing_ = Framing::kNone;
  method_ = head.method;
  version_ = head.version;
  access_ = connection_.access();
  pause_ = Pause::kNo;
  keep_alive_ = head.keep_alive;
  upgrade_ = head.upgrade;
  te_trailers_ = head.te_trailers;
  blocked_on_output_ = false;
  user_data = nullptr;
  enter(head.body.empty() ? State::kWhole : head.expect_continue ? State::kExpect : State::kBody);
  if (body_open()) body_guard_.start(now, body_rule(shard_.config()));

  ServerRequest request;
  request.meta = head.meta;
  request.headers = &head.headers;
  request.peer = connection_.peer();
  request.client_unknown = connection_.client_unknown();
  request.received_at = now;
  request.method = head.method;
  request.version = head.version == http::h1::Version::k10 ? HttpVersion::k10 : HttpVersion::k11;
  request.expect_continue = state_ == State::kExpect;
  request.upgrade = head.upgrade;
  request.te_trailers = head.te_trailers;
  request.secure = connection_.transport().secure();
  request.peer_certificate = connection_.transport().peer_certificate();
  if (head.body.kind != http::h1::BodyKind::kChunked) request.body_length = head.body.length;

  handler_ = &shard_.handler();
  if (!take_place(request)) return refuse_early();
  ++shard_.counters().requests;
  handler_->on_headers(*this, request);
  for (const http::HeaderView& field : head.headers) {
    if (response_ >= Response::kDone || connection_.failed()) return;
    handler_->on_header(*this, field);
  }
}

/// Takes an ordinary place or, if the request is critical, a reserved one.
bool H1Session::take_place(const ServerRequest& request) {
  StreamPlaces& places = shard_.shared().streams;
  if (places.take(io::Access::kOrdinary)) return true;
  if (shard_.make_room(connection_) && places.take(io::Access::kOrdinary)) return true;
  set_critical(handler_->is_critical(request, access_ == io::Access::kCritical));
  return access_ == io::Access::kCritical && places.take(access_);
}

void H1Session::make_room() {
  shard_.make_room(connection_);
}

bool H1Session::reserve_tunnel() noexcept {
  tunnel_place_ = tunnel_place_ || shard_.shared().tunnels.take(access_);
  return tunnel_place_;
}

Duration H1Session::blocked_time(TimePoint now) const noexcept {
  if (critical() || response_ == Response::kOver) return {};
  return body_guard_.lag(now);
}

/// No stream place is free: the request is answered without a handler, and the connection stays
/// open.
void H1Session::refuse_early() {
  handler_ = &no_handler;
  shard_.counters().count(RefuseReason::kStreams);
  shard_.on_exhausted();
  say_503();
}

bool H1Session::tell_complete() {
  if (held()) return false;
  enter(state_ == State::kWhole ? State::kComplete : State::kTunnel);
  if (response_ < Response::kDone) handler_->on_complete(*this);
  return true;
}

/// Sends 100 Continue, which the client expects before its body; not if the body has begun.
void H1Session::invite_body() {
  const bool waits = connection_.input().decrypted().empty() && response_ == Response::kNone &&
                     version_ != http::h1::Version::k10;
  if (waits) {
    ++shard_.counters().responses[1];
    if (!connection_.output().append_literal(http::h1::kContinueResponse)) return;  // retried later
  }
  enter(State::kBody);
}

bool H1Session::read_body(TimePoint now) {
  const bool draining = state_ == State::kDrain;
  if (!draining) {
    if (held()) {
      body_guard_.stop();
      return false;
    }
    if (response_ >= Response::kDone) return false;  // flush first, then read the rest
    if (!body_guard_.running()) body_guard_.start(now, body_rule(shard_.config()));
    if (state_ == State::kExpect) invite_body();
  }
  ConnReadBuf& input = connection_.input();
  const std::span<const char> bytes = chars(input.decrypted());
  if (bytes.empty() && !decoder_.end_due()) return false;
  const http::h1::BodyStep step = decoder_.next(bytes, shard_.header_storage());
  body_guard_.add(step.consumed, now, body_rule(shard_.config()));
  switch (step.event) {
    case http::h1::BodyEvent::kNeedMore:
      input.consume_decrypted(step.consumed);
      return false;
    case http::h1::BodyEvent::kError:
      refuse(status_of(step.error), CloseReason::kParseError);
      return false;
    case http::h1::BodyEvent::kTrailers:
      if (!draining) handler_->on_trailers(*this, decoder_.trailers());
      break;
    case http::h1::BodyEvent::kData:
      body_received_ += step.chunk.len;
      drained_ += draining ? step.consumed : 0;
      if (!draining) handler_->on_body(*this, step.chunk);
      break;
  }
  input.consume_decrypted(step.consumed);
  if (step.event == http::h1::BodyEvent::kData && step.chunk.last()) {
    body_guard_.stop();
    if (draining) {
      next_request(now);
    } else {
      enter(State::kWhole);
    }
  } else if (drained_ > shard_.config().drain_bytes_max) {
    enter(State::kDiscard);
    connection_.finish({.reason = CloseReason::kUnreadBody, .linger = true});
    return false;
  }
  return true;
}

bool H1Session::read_tunnel(TimePoint now) {
  if (held()) return false;
  ConnReadBuf& input = connection_.input();
  const std::span<const std::byte> bytes = input.decrypted();
  if (bytes.empty()) return false;
  last_activity_ = now;
  body_received_ += bytes.size();
  handler_->on_body(*this, {.data = reinterpret_cast<const std::uint8_t*>(bytes.data()),
                            .len = bytes.size(),
                            .status = http::BodyStatus::kContinue});
  input.consume_decrypted(bytes.size());
  return true;
}

void H1Session::on_end_of_input(TimePoint now) {
  switch (state_) {
    case State::kIdle:
      return connection_.fail(CloseReason::kClient);
    case State::kTunnel: {
      static_cast<void>(read_tunnel(now));  // the remaining input comes before its end
      if (connection_.failed()) return;
      enter(State::kTunnelEnded);
      last_activity_ = now;
      static constexpr http::BodyChunk kEnd = {nullptr, 0, http::BodyStatus::kComplete};
      handler_->on_body(*this, kEnd);
      return;
    }
    case State::kTunnelEnded:
      return;
    case State::kWhole:
    case State::kComplete:
      if (shard_.config().allow_half_close) return;
      break;
    default:
      break;
  }
  connection_.fail(CloseReason::kClientAbort);
}

void H1Session::on_disconnected(TimePoint) {
  // The kernel may hold unread bytes, and the peer may still read. By default a client that has
  // ended its side counts as disconnected.
  if (shard_.config().allow_half_close || tunnel()) return;
  connection_.fail(CloseReason::kClientAbort);
}

/// An invalid HTTP/2 preface ends the connection without an answer (RFC 9113 §3.4): the client
/// would read an HTTP/1 response as part of a frame.
void H1Session::refuse_unknown_protocol() {
  enter(State::kDiscard);
  shard_.counters().count(RefuseReason::kBadRequest);
  connection_.finish({.reason = CloseReason::kParseError, .linger = true});
}

/// Answers for the server itself; then the connection ends.
void H1Session::refuse(unsigned status, CloseReason reason) {
  enter(State::kDiscard);
  shard_.counters().count(RefuseReason::kBadRequest);
  const bool can_answer = response_ == Response::kNone || response_ == Response::kOver;
  end_streams(reason);
  if (!can_answer || !connection_.output().append_view(canned_close(status))) {
    return connection_.fail(reason);
  }
  ++shard_.counters().responses[status / 100];
  connection_.finish({.reason = reason, .linger = true});
}

void H1Session::next_request(TimePoint now) {
  enter(State::kIdle);
  last_activity_ = now;
  if (!may_keep()) {
    enter(State::kDiscard);
    connection_.finish(
        {.reason = CloseReason::kFinished, .linger = !connection_.input().decrypted().empty()});
  }
}

bool H1Session::may_keep() const noexcept {
  const std::uint64_t requests_max = shard_.config().requests_per_connection_max;
  return keep_alive_ && !shard_.draining() && (requests_max == 0 || requests_ < requests_max);
}

TimePoint H1Session::deadline() const noexcept {
  const ServerConfig& config = shard_.config();
  switch (state_) {
    case State::kIdle:
      return requests_ == 0 ? connection_.opened_at() + config.header_timeout
                            : last_activity_ + config.idle_timeout;
    case State::kHead:
      return head_since_ + config.header_timeout;
    case State::kExpect:
    case State::kBody:
    case State::kDrain:
      return body_guard_.deadline();
    case State::kTunnelAgreed:
    case State::kTunnel:
    case State::kTunnelEnded:
      return last_activity_ + config.tunnel_idle_timeout;
    default:
      return TimePoint::max();
  }
}

void H1Session::on_deadline(TimePoint now) {
  switch (state_) {
    case State::kIdle:
      return connection_.fail(CloseReason::kIdle);
    case State::kHead:
      return refuse(408, CloseReason::kHeaderTimeout);
    case State::kExpect:
    case State::kBody:
      if (!body_guard_.too_slow(now, body_rule(shard_.config()))) return;
      if (response_ == Response::kNone) return refuse(408, CloseReason::kBodyTimeout);
      return connection_.fail(CloseReason::kBodyTimeout);
    case State::kDrain:
      if (!body_guard_.too_slow(now, body_rule(shard_.config()))) return;
      return connection_.fail(CloseReason::kUnreadBody);
    case State::kTunnelAgreed:
    case State::kTunnel:
    case State::kTunnelEnded:
      return connection_.fail(CloseReason::kTunnelIdle);
    default:
      return;
  }
}

void H1Session::on_drain() {
  if (idle() && shard_.closes_idle()) connection_.fail(CloseReason::kShutdown);
}

void H1Session::end_streams(CloseReason reason) {
  if (std::exchange(tunnel_counted_, false)) --shard_.counters().tunnels;
  if (response_ == Response::kOver) return;
  enter(Response::kOver);
  handler_->on_abort(*this, reason);
  release_stream();
}

void H1Session::release_stream() noexcept {
  blocked_on_output_ = false;
  arena_.release();
  if (std::exchange(tunnel_place_, false)) shard_.shared().tunnels.give();
  if (handler_ != &no_handler) shard_.shared().streams.give();
}

}  // namespace weir::inline v0::inline server
