#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "canned_responses.h"
#include "connection.h"
#include "h1/h1_session.h"
#include "shard.h"

namespace weir::inline v0::inline server {
constexpr std::size_t kHeadOverhead = 192;  // status line, date, framing, connection
constexpr std::size_t kFieldOverhead = 4;   // ": ", CRLF
constexpr std::size_t kChunkOverhead = http::h1::kChunkHeadRoom + http::h1::kChunkTailRoom;
constexpr std::size_t kChunkWorthIt = 512;  // with less room, a new buffer is taken
constexpr std::size_t kCopyMax = 2048;      // a body up to this size is copied behind its head

/// For calls from outside a round: the connection runs later in this turn.
void H1Session::touch() noexcept {
  connection_.schedule();
}

SendResult H1Session::blocked() noexcept {
  blocked_on_output_ = true;
  if (connection_.output().blocked()) shard_.on_exhausted();
  touch();
  return SendResult::kBlocked;
}

H1Session::HeadPlan H1Session::plan(const ResponseHead& head, bool last) const noexcept {
  const http::OpenEnded open_ended =
      version_ == http::h1::Version::k11 ? http::OpenEnded::kChunked : http::OpenEnded::kUntilClose;
  const http::ResponsePlan framed = http::plan_response({.method = method_,
                                                         .status = head.status,
                                                         .length = head.content_length,
                                                         .open_ended = open_ended,
                                                         .last = last,
                                                         .upgrade = upgrade_});
  HeadPlan plan{.framing = framed.framing, .length = framed.length};
  if (plan.framing == Framing::kTunnel) return plan;
  plan.keep = may_keep() && state_ != State::kExpect && plan.framing != Framing::kUntilClose;
  if (state_ == State::kBody && decoder_.remaining() > shard_.config().drain_bytes_max && last) {
    plan.keep = false;  // the rest of the body is not worth reading
  }
  plan.whole = may_be_whole(framed);
  return plan;
}

std::size_t H1Session::head_bytes_estimate(const ResponseHead& head) const noexcept {
  std::size_t size = kHeadOverhead;
  for (const ResponseField& field : head.fields) {
    size += field.name.size() + field.value.size() + kFieldOverhead;
  }
  return size;
}

Result<std::size_t, SendResult> H1Session::write_head(std::span<char> into,
                                                      const ResponseHead& head,
                                                      const HeadPlan& plan) {
  http::h1::HeadWriter writer(into);
  writer.status(head.status);
  if (!head.dated) writer.date(shard_.date(shard_.loop().now()));
  for (const ResponseField& field : head.fields) writer.field(field.name, field.value);
  switch (plan.framing) {
    case Framing::kLength:
      writer.content_length(plan.length);
      break;
    case Framing::kChunked:
      writer.chunked();
      break;
    case Framing::kNone:
    case Framing::kUntilClose:
    case Framing::kFrames:
    case Framing::kTunnel:
      break;
  }
  if (plan.framing != Framing::kTunnel) {
    if (!plan.keep) {
      writer.connection_close();
    } else if (version_ == http::h1::Version::k10) {
      writer.connection_keep_alive();
    }
  } else if (head.status == 101) {
    writer.fields("connection: upgrade\r\n");
  }
  const Result<std::size_t, http::h1::WriteError> written = writer.end();
  if (!written) return unexpected(SendResult::kInvalid);
  return *written;
}

void H1Session::head_sent(const ResponseHead& head, const HeadPlan& plan) noexcept {
  enter(Response::kOpen);
  framing_ = plan.framing;
  response_length_ = plan.length;
  keep_alive_ = plan.keep;
  ++shard_.counters().responses[head.status / 100];
  if (method_ == http::Method::kHead) framing_ = Framing::kNone;
  if (plan.framing != Framing::kTunnel) return;
  ++shard_.counters().tunnels;
  tunnel_counted_ = true;
  enter(state_ == State::kComplete ? State::kTunnel : State::kTunnelAgreed);
  last_activity_ = shard_.loop().now();
}

/// A 1xx other than 101.
SendResult H1Session::inform(const ResponseHead& head) {
  if (version_ == http::h1::Version::k10) return SendResult::kSent;  // HTTP/1.0 has no 1xx
  if (head.status == 100 && state_ == State::kExpect) enter(State::kBody);
  const std::span<char> space = connection_.output().contiguous(head_bytes_estimate(head), access_);
  if (space.empty()) return blocked();
  http::h1::HeadWriter writer(space);
  writer.status(head.status);
  for (const ResponseField& field : head.fields) writer.field(field.name, field.value);
  const Result<std::size_t, http::h1::WriteError> written = writer.end();
  if (!written) return SendResult::kInvalid;
  connection_.output().commit(*written);
  ++shard_.counters().responses[1];
  touch();
  return SendResult::kSent;
}

SendResult H1Session::send_headers(const ResponseHead& head, bool last) {
  if (response_ != Response::kNone) return SendResult::kClosed;
  if (head.status < 100 || head.status > 599) return SendResult::kInvalid;
  if (head.status == 101 && !upgrade_) return SendResult::kInvalid;
  if (head.status < 200 && head.status != 101) return inform(head);
  const HeadPlan how = plan(head, last);
  if (last && !how.whole) return SendResult::kInvalid;
  const std::size_t estimate = head_bytes_estimate(head);
  if (estimate > shard_.config().tcp_write_buffer_size) return SendResult::kInvalid;
  if (how.framing == Framing::kTunnel && !reserve_tunnel()) return SendResult::kInvalid;
  const std::span<char> space = connection_.output().contiguous(estimate, access_);
  if (space.empty()) return blocked();
  const Result<std::size_t, SendResult> written = write_head(space, head, how);
  if (!written) return written.error();
  connection_.output().commit(*written);
  head_sent(head, how);
  if (last && framing_ != Framing::kTunnel) end_response();
  touch();
  return SendResult::kSent;
}

std::size_t H1Session::put_chunks(std::string_view bytes) {
  Outbox& output = connection_.output();
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const std::size_t left = bytes.size() - taken;
    const std::size_t wish = std::min(left, kChunkWorthIt) + kChunkOverhead;
    const std::span<char> space = output.contiguous(wish, access_);
    if (space.empty()) break;
    const std::size_t size = std::min(left, space.size() - kChunkOverhead);
    std::size_t at = http::h1::write_chunk_head(space, static_cast<std::uint32_t>(size));
    std::memcpy(space.data() + at, bytes.data() + taken, size);
    at += size;
    std::memcpy(space.data() + at, "\r\n", 2);
    output.commit(at + 2);
    taken += size;
  }
  return taken;
}

std::size_t H1Session::send_data(std::string_view bytes, bool last) {
  if (response_ != Response::kOpen) return 0;
  if (framing_ == Framing::kLength && bytes.size() > response_length_ - body_sent_) {
    reset();  // more than announced: the rest must not be read as a response
    return 0;
  }
  std::size_t taken = bytes.size();
  if (framing_ == Framing::kChunked) {
    taken = put_chunks(bytes);
  } else if (framing_ != Framing::kNone) {
    taken = connection_.output().append(bytes, access_);
  }
  body_sent_ += taken;
  if (pause_ == Pause::kTold) pause_ = Pause::kUntold;
  if (framing_ == Framing::kTunnel && taken > 0) last_activity_ = shard_.loop().now();
  if (taken < bytes.size()) {
    static_cast<void>(blocked());
  } else if (last) {
    if (framing_ == Framing::kChunked &&
        !connection_.output().append_literal(http::h1::kLastChunk)) {
      reset();
      return taken;
    }
    end_response();
  }
  touch();
  return taken;
}

SendResult H1Session::send_trailers(std::span<const ResponseField> fields) {
  if (response_ != Response::kOpen || framing_ == Framing::kTunnel) {
    return SendResult::kClosed;
  }
  if (framing_ != Framing::kChunked || !te_trailers_) {
    static_cast<void>(send_data({}, true));
    return SendResult::kSent;
  }
  std::size_t size = 64;
  for (const ResponseField& field : fields) size += field.name.size() + field.value.size() + 4;
  const std::span<char> space = connection_.output().contiguous(size, access_);
  if (space.empty()) {
    return size > shard_.config().tcp_write_buffer_size ? SendResult::kInvalid : blocked();
  }
  std::span<http::HeaderView> views = shard_.header_storage();
  if (fields.size() > views.size()) return SendResult::kInvalid;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    views[i] = {fields[i].name, fields[i].value, http::field_id(fields[i].name), false};
  }
  const auto written = http::h1::write_last_chunk(space, views.first(fields.size()));
  if (!written) return SendResult::kInvalid;
  connection_.output().commit(*written);
  end_response();
  touch();
  return SendResult::kSent;
}

SendResult H1Session::send_response(const ResponseHead& head, std::string_view body,
                                    BodyLife life) {
  if (response_ != Response::kNone) return SendResult::kClosed;
  if (head.status < 200 || head.status > 599) return SendResult::kInvalid;
  ResponseHead whole = head;
  whole.content_length = body.size();
  const HeadPlan how = plan(whole, true);
  const bool has_body = method_ != http::Method::kHead && how.framing == Framing::kLength;
  const std::string_view payload = has_body ? body : std::string_view{};
  const ServerConfig& config = shard_.config();
  const std::size_t estimate = head_bytes_estimate(head);
  const bool copies = life == BodyLife::kCall || payload.size() <= kCopyMax;
  const std::size_t buffered = estimate + (copies ? payload.size() : 0);
  const std::size_t most = std::size_t{shard_.shared().write_quota} * config.tcp_write_buffer_size;
  const bool fits = estimate <= config.tcp_write_buffer_size && buffered <= most;

  Outbox& output = connection_.output();
  std::span<char> space;
  if (fits && output.reserve(buffered, access_)) space = output.contiguous(estimate, access_);
  if (space.empty()) {
    if (arena() != nullptr) return respond_from_arena(head, how, payload, life);
    return fits ? blocked() : SendResult::kInvalid;
  }
  const Result<std::size_t, SendResult> written = write_head(space, head, how);
  if (!written) return written.error();
  output.commit(*written);
  const bool put =
      copies ? output.append(payload, access_) == payload.size() : output.append_view(payload);
  WEIR_ASSERT(put);  // reserved; with a queued view, contiguous() would have failed
  head_sent(head, how);
  body_sent_ = payload.size();
  end_response();
  touch();
  return SendResult::kSent;
}

/// No write buffer is free, but the stream's arena can hold the response until it is sent.
SendResult H1Session::respond_from_arena(const ResponseHead& head, const HeadPlan& how,
                                         std::string_view body, BodyLife life) {
  Outbox& output = connection_.output();
  if (!output.views_fit(2)) return blocked();
  const std::size_t estimate = head_bytes_estimate(head);
  auto* memory = static_cast<char*>(arena()->allocate(estimate, 1));
  if (memory == nullptr) return blocked();
  if (life == BodyLife::kCall && !body.empty() && !arena()->owns(body.data())) {
    body = arena()->copy(body);
    if (body.data() == nullptr) return blocked();
  }
  const Result<std::size_t, SendResult> written = write_head({memory, estimate}, head, how);
  if (!written) return written.error();
  const bool put =
      output.append_view({memory, *written}) && (body.empty() || output.append_view(body));
  WEIR_ASSERT(put);
  output.forgive();
  head_sent(head, how);
  body_sent_ = body.size();
  end_response();
  touch();
  return SendResult::kSent;
}

void H1Session::send_503() {
  if (response_ != Response::kNone) return;
  shard_.counters().count(RefuseReason::kOverload503);
  say_503();
}

void H1Session::say_503() {
  ResponseHead head;
  head.status = 503;
  HeadPlan how = plan(head, true);
  const std::string_view text =
      how.keep && version_ == http::h1::Version::k11 ? canned_503_keep() : canned_close(503);
  how.keep = how.keep && version_ == http::h1::Version::k11;
  if (access_ == io::Access::kCritical) ++shard_.counters().critical_shed;
  if (!connection_.output().append_literal(text)) return connection_.fail(CloseReason::kReset);
  head_sent(head, how);
  end_response();
  touch();
}

void H1Session::end_response() noexcept {
  if (framing_ == Framing::kLength && body_sent_ < response_length_ &&
      method_ != http::Method::kHead) {
    return reset();  // fewer bytes than announced
  }
  enter(Response::kDone);
  blocked_on_output_ = false;
}

void H1Session::reset() {
  if (response_ == Response::kOver) return;
  if (framing_ == Framing::kUntilClose) connection_.reset_on_close();  // or it looks complete
  connection_.fail(CloseReason::kReset);
}

bool H1Session::on_flushed(TimePoint now) {
  if (response_ == Response::kOver || connection_.finishing()) return false;
  const Outbox& output = connection_.output();
  const bool nearly_out = output.pending() <= shard_.config().tcp_write_buffer_size;
  const bool paused_and_out = pause_ == Pause::kUntold && nearly_out;
  if ((blocked_on_output_ && !output.blocked() && output.may_take()) || paused_and_out) {
    blocked_on_output_ = false;
    if (pause_ == Pause::kUntold) pause_ = Pause::kTold;
    handler_->on_writable(*this);
    return true;
  }
  if (response_ < Response::kDone || !output.empty()) return false;
  if (tunnel() && state_ != State::kTunnelEnded) {
    if (response_ == Response::kShut) return false;
    enter(Response::kShut);
    connection_.transport().shutdown_write();
    return false;
  }
  finish_stream(now);
  return !connection_.input().decrypted().empty();
}

void H1Session::finish_stream(TimePoint now) {
  enter(Response::kOver);
  handler_->on_finished(*this);
  release_stream();
  if (tunnel()) {
    enter(State::kDiscard);
    return connection_.finish({.reason = CloseReason::kTunnelEnd, .linger = false});
  }
  if (!body_open()) return next_request(now);
  if (keep_alive_) {
    enter(State::kDrain);
    body_guard_.start(now, {shard_.config().body_timeout, shard_.config().body_min_rate});
    return;
  }
  enter(State::kDiscard);
  connection_.finish({.reason = CloseReason::kUnreadBody, .linger = true});
}

void H1Session::pause() {
  pause_ = connection_.output().empty() ? Pause::kTold : Pause::kUntold;
}

void H1Session::resume() {
  if (std::exchange(pause_, Pause::kNo) != Pause::kNo) touch();
}

std::size_t H1Session::unsent_bytes() const noexcept {
  return std::min<std::uint64_t>(body_sent_, connection_.output().pending());
}

std::size_t H1Session::writable_bytes() const noexcept {
  if (response_ >= Response::kDone) return 0;
  return connection_.output().room();
}

ArenaAnswer H1Session::acquire_arena(ArenaWait wait) {
  if (response_ == Response::kOver) return {};
  return arena_.acquire(access_, wait);
}

void H1Session::on_arena_ready(std::byte* memory) {
  arena_.on_ready(memory);
  handler_->on_arena(*this, arena());
  touch();
}

const io::Address& H1Session::peer() const noexcept {
  return connection_.peer();
}

std::optional<io::LocalPeer> H1Session::local_peer() const {
  return connection_.local_peer();
}

io::Loop& H1Session::loop() const noexcept {
  return shard_.loop();
}

}  // namespace weir::inline v0::inline server
