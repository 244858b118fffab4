#include "h2/h2_stream.h"

#include <utility>

#include "weir/base/assert.h"

#include "connection.h"
#include "h2/h2_session.h"
#include "shard.h"

// The request side of an HTTP/2 stream, and its end. The response side: h2_response.cc.

namespace weir::inline v0::inline server {
constexpr std::size_t kPieceMax =
    http::h2::kFramePayloadMax;  // of kept bytes, between checks of pause()

H2Stream::H2Stream(H2Session& session, http::h2::StreamId wire_id) noexcept
    : session_(session),
      wire_id_(wire_id),
      id_(session.shard().shared().next_stream_id.fetch_add(1, std::memory_order_relaxed)),
      arena_(session.shard(), *this),
      access_(session.connection().access()) {}

/// Each state leads to the next; without kept trailers, kTrailersKept is skipped.
void H2Stream::enter(Request next) noexcept {
  WEIR_ASSERT(static_cast<unsigned>(next) == static_cast<unsigned>(request_) + 1 ||
              (request_ == Request::kBody && next == Request::kEnded));
  request_ = next;
}

void H2Stream::enter(Response next) noexcept {
  WEIR_ASSERT(next > response_);
  response_ = next;
}

/// A stream that has ended in both directions stays kOver, even if END_STREAM is reported later.
void H2Stream::enter(Wire next) noexcept {
  if (wire_ == Wire::kOver) return;
  WEIR_ASSERT(next > wire_ && (wire_ == Wire::kOpen || next >= Wire::kEnded));
  wire_ = next;
}

void H2Stream::begin(const http::h2::RequestHead& head, TimePoint now) {
  LoopShard& shard = session_.shard();
  ++shard.counters().requests;
  ++shard.counters().h2_requests;
  method_ = head.method;
  request_ = head.end_stream        ? Request::kWhole
             : head.expect_continue ? Request::kExpect
                                    : Request::kBody;
  handler_ = &shard.handler();
  may_be_silent_ = !head.meta.protocol.empty();
  if (body_open() && !may_be_silent_) {
    body_guard_.start(now, body_rule(shard.config()));
    session_.watch_deadline(body_guard_.deadline());
  }

  handler_->on_headers(*this, session_.request_of(head));
  for (const http::HeaderView& field : head.headers) {
    if (!wants_events()) return;
    handler_->on_header(*this, field);
  }
  if (request_ == Request::kWhole) return complete();
  if (!held()) invite_body();
}

/// Sends 100 Continue, which the client expects before its body.
void H2Stream::invite_body() {
  if (request_ != Request::kExpect || response_ != Response::kNone) return;
  if (session_.wire().submit_head(wire_id_, {.status = 100, .fields = {}, .end = false}) ==
      http::h2::SubmitStatus::kOk) {
    ++session_.shard().counters().responses[1];
    enter(Request::kBody);
    session_.touch();
  } else {
    session_.add_work(*this);  // no room now: retried when the stream is processed next
  }
}

void H2Stream::receive(const http::BodyChunk& chunk) {
  body_received_ += chunk.len;
  if (framing_ == Framing::kTunnel) tunnel_active_ = session_.now();
  body_guard_.add(chunk.len, session_.now(), body_rule(session_.shard().config()));
  if (request_ == Request::kExpect) enter(Request::kBody);
  if (chunk.last()) {
    if (request_ == Request::kBody) enter(Request::kEnded);
    body_guard_.stop();
  }
  if (!wants_events()) return;
  if (held() || !lease_.empty() || request_ == Request::kTrailersKept) {
    lease_.put(chunk.bytes());
    if (!lease_.empty()) window_.note_stored(session_.now());
    return session_.wire().grant(wire_id_, 0);  // the window is what still fits
  }
  deliver(chunk.bytes(), chunk.last());
}

void H2Stream::receive(const http::HeaderList& trailers) {
  if (!wants_events()) return;
  if (!held() && lease_.empty()) return handler_->on_trailers(*this, trailers);
  lease_.put_trailers(trailers);
  if (request_ == Request::kExpect) enter(Request::kBody);
  enter(Request::kTrailersKept);  // the end follows at once
}

void H2Stream::deliver(std::span<const std::uint8_t> bytes, bool last) {
  if (bytes.empty() && !last) return;
  handler_->on_body(*this,
                    {.data = bytes.data(),
                     .len = bytes.size(),
                     .status = last ? http::BodyStatus::kComplete : http::BodyStatus::kContinue});
  if (!last) return session_.return_window(*this, bytes.size());
  enter(Request::kWhole);
  session_.give_back_lease(*this);
  complete();
}

void H2Stream::complete() {
  if (held()) return;
  enter(Request::kComplete);
  if (wants_events()) handler_->on_complete(*this);
}

bool H2Stream::deliver_kept() {
  bool did = false;
  const auto listening = [this] { return wants_events() && !held() && request_ < Request::kWhole; };
  while (listening() && !lease_.empty()) {
    const std::span<const std::uint8_t> piece = lease_.front(kPieceMax);
    const bool last = request_ == Request::kEnded && piece.size() == lease_.size();
    deliver(piece, last);
    if (!last) lease_.consume(piece.size());
    if (lease_.empty()) window_.note_empty(session_.now());
    did = true;
  }
  if (listening() && lease_.empty() && request_ == Request::kTrailersKept) {
    http::HeaderList trailers;
    lease_.read_trailers(session_.shard().header_storage(), trailers);
    enter(Request::kEnded);
    handler_->on_trailers(*this, trailers);
    did = true;
  }
  if (listening() && lease_.empty() && request_ == Request::kEnded) {
    deliver({}, true);
    did = true;
  }
  return did;
}

bool H2Stream::proceed() {
  if (!wants_events() || held()) return false;
  invite_body();
  bool did = deliver_kept();
  if (request_ == Request::kWhole && !held()) {
    complete();
    did = true;
  }
  const bool timed = framing_ != Framing::kTunnel && !may_be_silent_;
  if (body_open() && !held() && timed && !body_guard_.running()) {
    body_guard_.start(session_.now(), body_rule(session_.shard().config()));
    session_.watch_deadline(body_guard_.deadline());
  }
  return did;
}

void H2Stream::expect_silence() noexcept {
  may_be_silent_ = true;
  body_guard_.stop();
}

void H2Stream::pause() {
  paused_ = true;
  body_guard_.stop();
  if (open() && !session_.connection().output().empty()) session_.wait_for_drain(*this);
}

void H2Stream::resume() {
  if (std::exchange(paused_, false) && open()) session_.add_work(*this);
}

// ---- Time --------------------------------------------------------------------------------------

void H2Stream::watch_writing() {
  if (write_guard_.running()) return;
  write_guard_.start(session_.now(), write_rule(session_.shard().config()));
  put_before_ = session_.put_bytes();
  session_.watch_deadline(write_guard_.deadline());
}

TimePoint H2Stream::deadline() const noexcept {
  const TimePoint next = std::min(body_guard_.deadline(), write_guard_.deadline());
  if (framing_ != Framing::kTunnel) return next;
  return std::min(next, tunnel_active_ + session_.shard().config().tunnel_idle_timeout);
}

void H2Stream::on_deadline(TimePoint now) {
  if (!open() || wire_ == Wire::kOver) return;
  const ServerConfig& config = session_.shard().config();
  if (framing_ == Framing::kTunnel && now >= tunnel_active_ + config.tunnel_idle_timeout) {
    session_.wire().reset(wire_id_, http::h2::ErrorCode::kCancel);
    return session_.add_abort(*this, CloseReason::kTunnelIdle);
  }
  if (body_guard_.too_slow(now, body_rule(config))) {
    body_guard_.stop();
    http::h2::Session& wire = session_.wire();
    const bool told = response_ == Response::kNone &&
                      wire.submit_head(wire_id_, {.status = 408, .fields = {}, .end = true}) ==
                          http::h2::SubmitStatus::kOk;
    if (told) {
      ++session_.shard().counters().responses[4];
    } else {
      wire.reset(wire_id_, http::h2::ErrorCode::kCancel);
    }
    return session_.add_abort(*this, CloseReason::kBodyTimeout);
  }
  const RateGuard::Rule rule = write_rule(config);
  if (!write_guard_.too_slow(now, rule)) return;
  // Too little of this stream was sent. The cause is its own window, or the connection's window,
  // which let too little through for all streams; otherwise it only needs its turn.
  const bool nothing_moves = session_.put_bytes() - put_before_ < rule.bytes_needed();
  if (ring_ == Ring::kBlocked && (session_.wire().stream_window(wire_id_) <= 0 || nothing_moves)) {
    session_.wire().reset(wire_id_, http::h2::ErrorCode::kCancel);
    return session_.add_abort(*this, CloseReason::kWriteTimeout);
  }
  write_guard_.stop();
  watch_writing();
}

Duration H2Stream::blocked_for(TimePoint now) const noexcept {
  if (!open() || access_ == io::Access::kCritical || framing_ == Framing::kTunnel) return {};
  return std::max(write_guard_.lag(now), body_guard_.lag(now));
}

void H2Stream::make_room() {
  session_.shard().make_room(session_.connection());
}

// ---- Tunnels -----------------------------------------------------------------------------------

bool H2Stream::reserve_tunnel() noexcept {
  if (tunnel_place_) return true;
  ServerShared& shared = session_.shard().shared();
  if (!shared.h2_tunnels.take(access_)) return false;
  tunnel_place_ = shared.tunnels.take(access_);
  if (!tunnel_place_) shared.h2_tunnels.give();
  return tunnel_place_;
}

void H2Stream::begin_tunnel() {
  ++session_.shard().counters().tunnels;
  tunnel_active_ = session_.now();
  body_guard_.stop();
  session_.watch_deadline(deadline());
}

void H2Stream::end_tunnel() noexcept {
  if (framing_ == Framing::kTunnel) --session_.shard().counters().tunnels;
  if (!std::exchange(tunnel_place_, false)) return;
  session_.shard().shared().tunnels.give();
  session_.shard().shared().h2_tunnels.give();
}

// ---- Ends --------------------------------------------------------------------------------------

void H2Stream::abandon(CloseReason reason) {
  enter(Response::kOver);
  ++session_.shard().counters().h2_aborted[static_cast<std::size_t>(reason)];
  handler_->on_abort(*this, reason);
  end_tunnel();
  arena_.release();
}

void H2Stream::finish() {
  enter(Response::kOver);
  handler_->on_finished(*this);
  end_tunnel();
  arena_.release();
}

void H2Stream::reset() {
  const bool all_given = !wants_events() && wire_ >= Wire::kEnded;
  if (!open() || end_reason != CloseReason::kNone || all_given) return;
  if (wants_events()) enter(Response::kDone);
  // RFC 8441 §5: CANCEL stands for the reset of a tunnel's connection.
  session_.wire().reset(wire_id_, framing_ == Framing::kTunnel
                                      ? http::h2::ErrorCode::kCancel
                                      : http::h2::ErrorCode::kInternalError);
  session_.add_abort(*this, CloseReason::kReset);
}

// ---- Memory ------------------------------------------------------------------------------------

ArenaAnswer H2Stream::acquire_arena(ArenaWait wait) {
  if (!open()) return {};
  const ArenaAnswer answer = arena_.acquire(access_, wait);
  if (arena_.waiting()) body_guard_.stop();
  return answer;
}

void H2Stream::on_arena_ready(std::byte* memory) {
  arena_.on_ready(memory);
  handler_->on_arena(*this, arena());
  session_.add_work(*this);
}

void H2Stream::set_critical(bool critical) noexcept {
  const io::Access access = critical ? io::Access::kCritical : io::Access::kOrdinary;
  if (std::exchange(access_, access) != access) session_.note_critical(critical);
}

const io::Address& H2Stream::peer() const noexcept {
  return session_.connection().peer();
}

std::optional<io::LocalPeer> H2Stream::local_peer() const {
  return session_.connection().local_peer();
}

io::Loop& H2Stream::loop() const noexcept {
  return session_.shard().loop();
}

// ---- The pool ----------------------------------------------------------------------------------

H2Stream* H2StreamPool::acquire(H2Session& session, http::h2::StreamId wire_id, io::Access access) {
  if (!places_.take(access)) return nullptr;
  const std::lock_guard lock(mutex_);
  H2Stream* stream = slab_.get(slab_.acquire(session, wire_id));
  WEIR_ASSERT(stream != nullptr);  // there is one per place
  return stream;
}

void H2StreamPool::release(H2Stream& stream) {
  {
    const std::lock_guard lock(mutex_);
    slab_.release(slab_.handle_of(&stream));
  }
  places_.give();
}

}  // namespace weir::inline v0::inline server
