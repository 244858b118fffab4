#include "h2/h2_session.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weir/policy/pool_share.h"

#include "connection.h"
#include "shard.h"

namespace weir::inline v0::inline server {
namespace {

/// Time between the first GOAWAY, which names no stream, and the one that does: requests that the
/// client sent before it received the first are still served.
constexpr Duration kGoawayNotice = std::chrono::milliseconds(500);

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + 15) & ~std::size_t{15};
}

CloseReason reason_of(http::h2::SessionEnd end) noexcept {
  switch (end) {
    case http::h2::SessionEnd::kSettingsTimeout:
    case http::h2::SessionEnd::kHeaderTimeout:
      return CloseReason::kHeaderTimeout;
    case http::h2::SessionEnd::kFinished:
      return CloseReason::kFinished;
    default:
      return CloseReason::kProtocol;
  }
}

}  // namespace

// ---- Memory ------------------------------------------------------------------------------------

std::size_t H2Session::block_bytes(const http::H2Limits& limits) noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t bytes = aligned(sizeof(H2Session)) + kSpareBytes + limits.session_bytes_max;
  return (bytes + kPage - 1) / kPage * kPage;
}

H2Session* H2Session::make(Connection& connection, LoopShard& shard, TimePoint now) {
  ServerShared& shared = shard.shared();
  std::byte* block = shared.h2_sessions.acquire(shard.index(), connection.access());
  if (block == nullptr) return nullptr;
  auto* session = ::new (static_cast<void*>(block)) H2Session(connection, shard, now);
  std::byte* const codec = block + aligned(sizeof(H2Session));
  session->wire_ =
      shared.h2_kit.make({codec, shared.config.http2.session_bytes_max}, *session, now);
  if (session->wire_ != nullptr) {
    ++shard.counters().h2_sessions;
    return session;
  }
  destroy(session);
  return nullptr;
}

void H2Session::destroy(H2Session* session) noexcept {
  LoopShard& shard = session->shard_;
  session->~H2Session();
  shard.shared().h2_sessions.release(shard.index(), reinterpret_cast<std::byte*>(session));
}

H2Session::H2Session(Connection& connection, LoopShard& shard, TimePoint now) noexcept
    : connection_(connection), shard_(shard), last_activity_(now) {}

std::span<std::byte> H2Session::spare() noexcept {
  std::byte* block = reinterpret_cast<std::byte*>(this);
  return {block + aligned(sizeof(H2Session)) + shard_.config().http2.session_bytes_max,
          kSpareBytes};
}

// ---- Input -------------------------------------------------------------------------------------

bool H2Session::advance(TimePoint now) {
  bool did = receive(now);
  did = do_work() || did;
  did = pump(now) || did;
  did = tell_ends() || did;
  for (H2Stream& stream : closing_) {
    if (stream.end_mark == 0) stream.end_mark = put_;
  }
  count_glitches();
  if (wire_->ended() != http::h2::SessionEnd::kNone) finish_session(now);
  had_output_ = !connection_.output().empty();
  return did;
}

bool H2Session::receive(TimePoint now) {
  ConnReadBuf& input = connection_.input();
  bool did = false;
  budget_ = kRequestsPerRound;
  while (!input.decrypted().empty() && wire_->ended() == http::h2::SessionEnd::kNone) {
    receiving_ = true;
    const http::h2::ReceiveResult got = wire_->receive(input.decrypted(), now);
    receiving_ = false;
    input.consume_decrypted(got.consumed);
    did = did || got.consumed > 0;
    if (got.status == http::h2::ReceiveStatus::kYielded) break;
    if (got.status == http::h2::ReceiveStatus::kBlocked && !put_frames(now)) break;
  }
  if (wire_->ended() != http::h2::SessionEnd::kNone) {
    input.consume_decrypted(input.decrypted().size());  // not used any more
    backlog_ = true;
    return did;
  }
  backlog_ = !input.decrypted().empty();
  return did;
}

void* H2Session::on_request(http::h2::StreamId id, const http::h2::RequestHead& head) {
  if (--budget_ == 0) wire_->yield();
  ++requests_;
  io::Access access = io::Access::kOrdinary;
  Result<H2Stream*, RefuseReason> opened = open_stream(id, !head.end_stream, access);
  const bool critical_peer = connection_.access() == io::Access::kCritical;
  if (!opened && shard_.handler().is_critical(request_of(head), critical_peer)) {
    access = io::Access::kCritical;
    opened = open_stream(id, !head.end_stream, access);
  }
  if (!opened) {
    shard_.counters().count(opened.error());
    if (access == io::Access::kCritical) ++shard_.counters().critical_shed;
    return nullptr;
  }
  H2Stream* const stream = *opened;
  streams_.push_back(*stream);
  if (critical_peer) note_critical(true);
  if (access == io::Access::kCritical) stream->set_critical(true);
  stream->begin(head, now());
  const std::uint64_t requests_max = shard_.config().requests_per_connection_max;
  if (requests_max != 0 && requests_ >= requests_max) wire_->shut_down();
  return stream;
}

/// A stream with a place and, if it has a body, a lease.
Result<H2Stream*, RefuseReason> H2Session::open_stream(http::h2::StreamId id, bool has_body,
                                                       io::Access access) {
  H2StreamPool& pool = shard_.shared().h2_streams;
  H2Stream* stream = pool.acquire(*this, id, access);
  if (stream == nullptr && shard_.make_room(connection_)) stream = pool.acquire(*this, id, access);
  if (stream == nullptr) return unexpected(RefuseReason::kStreams);
  if (!has_body || take_lease(*stream, access)) return stream;
  pool.release(*stream);
  return unexpected(RefuseReason::kBodyLease);
}

ServerRequest H2Session::request_of(const http::h2::RequestHead& head) const {
  ServerRequest request;
  request.meta = head.meta;
  request.headers = &head.headers;
  request.peer = connection_.peer();
  request.client_unknown = connection_.client_unknown();
  request.received_at = now();
  request.body_length = head.body_length;
  request.method = head.method;
  request.version = HttpVersion::k2;
  request.expect_continue = head.expect_continue && !head.end_stream;
  request.upgrade = !head.meta.protocol.empty() && !head.end_stream;
  request.te_trailers = head.te_trailers;
  request.secure = connection_.transport().secure();
  request.peer_certificate = connection_.transport().peer_certificate();
  return request;
}

void H2Session::on_stream_end(http::h2::StreamId, void* user, http::h2::StreamEnd end,
                              http::h2::ErrorCode) {
  H2Stream& stream = *static_cast<H2Stream*>(user);
  stream.enter(H2Stream::Wire::kOver);
  stop_waiting(stream);
  stream.drop_tail();
  switch (end) {
    case http::h2::StreamEnd::kDone:
      if (stream.response_ == H2Stream::Response::kDone) add_finished(stream);
      return;  // otherwise the handler continues, without effect
    case http::h2::StreamEnd::kPeerReset:
      add_abort(stream, CloseReason::kClientAbort);
      break;
    case http::h2::StreamEnd::kReset:
      add_abort(stream, CloseReason::kProtocol);
      break;
  }
  // The next frame may open a stream that needs this one's place.
  if (receiving_) static_cast<void>(tell_ends());
}

/// Windows are opened only as far as there is memory.
bool H2Session::take_lease(H2Stream& stream, io::Access access) {
  io::SharedBlocks& pool = shard_.shared().body_leases;
  const PoolFill fill{.capacity = pool.capacity(), .free = pool.free_count()};
  if (access != io::Access::kCritical && leases_ >= body_lease_share(fill)) return false;
  std::byte* block = pool.acquire(shard_.index(), access);
  if (block == nullptr) return false;
  const BodyLease::Shape shape = shard_.shared().lease_shape;
  stream.lease_.attach(block, shape);
  stream.window_.begin(now());
  ++leases_;
  wire_->grant(stream.wire_id(), shape.body_bytes);
  return true;
}

void H2Session::give_back_lease(H2Stream& stream) noexcept {
  if (!stream.lease_.attached()) return;
  --leases_;
  while (std::byte* block = stream.lease_.detach()) {
    shard_.shared().body_leases.release(shard_.index(), block);
  }
}

void H2Session::return_window(H2Stream& stream, std::size_t bytes) {
  wire_->grant(stream.wire_id(), stream.window_.take(bytes));
  if (!stream.lease_.attached() || !stream.lease_.empty() || stream.window_.shrinking()) return;
  for (std::uint32_t leaving = stream.window_.take_leaving(); leaving > 0; --leaving) {
    shard_.shared().body_leases.release(shard_.index(), stream.lease_.take_away());
  }
  fit_window(stream);
}

/// More leases for a window that its client uses up quickly; fewer for a slow one, or if they are
/// short. A further lease is never a reserved one.
void H2Session::fit_window(H2Stream& stream) {
  io::SharedBlocks& pool = shard_.shared().body_leases;
  BodyLease& lease = stream.lease_;
  const PoolFill fill{.capacity = pool.capacity(), .free = pool.free_count()};
  const bool used_up = stream.window_.used_up(lease.capacity());
  const bool may_be_short = lease.blocks() > 1 && 2 * fill.free <= fill.capacity;
  if (!used_up && !may_be_short) return;
  const std::uint32_t wanted =
      policy::window_leases(stream.window_.use(lease.blocks(), now()), fill);
  if (used_up) stream.window_.begin_round(now());
  const std::uint32_t lease_bytes = shard_.shared().lease_shape.body_bytes;
  if (wanted < lease.blocks()) {
    return stream.window_.shrink(lease.blocks() - wanted, lease_bytes);
  }
  std::uint64_t more = 0;
  while (lease.blocks() < wanted) {
    std::byte* block = pool.acquire(shard_.index(), io::Access::kOrdinary);
    if (block == nullptr) break;
    lease.add(block);
    more += lease_bytes;
  }
  if (more > 0) wire_->grant(stream.wire_id(), more);
}

bool H2Session::do_work() {
  bool did = false;
  for (std::size_t left = work_.size(); left > 0; --left) {
    H2Stream* stream = work_.front();
    if (stream == nullptr) break;
    work_.remove(*stream);
    did = stream->proceed() || did;
  }
  return did;
}

// ---- Ends --------------------------------------------------------------------------------------

void H2Session::add_abort(H2Stream& stream, CloseReason reason) {
  if (stream.end_reason != CloseReason::kNone && stream.end_hook.linked()) return;
  if (stream.end_hook.linked()) closing_.remove(stream);
  if (stream.end_reason == CloseReason::kNone) stream.end_reason = reason;
  over_.push_back(stream);
  touch();
}

void H2Session::add_finished(H2Stream& stream) {
  if (stream.end_hook.linked()) return;
  stream.end_mark = 0;  // set when its last byte is in the output
  closing_.push_back(stream);
  touch();
}

bool H2Session::tell_ends() {
  bool did = false;
  while (H2Stream* stream = over_.front()) {
    over_.remove(*stream);
    stream->abandon(stream->end_reason);
    forget(*stream);
    did = true;
  }
  return did;
}

void H2Session::forget(H2Stream& stream) {
  stop_waiting(stream);
  if (stream.work_hook.linked()) work_.remove(stream);
  if (stream.drain_hook.linked()) drains_.remove(stream);
  give_back_lease(stream);
  if (stream.tail_pending()) retry_blocked();
  stream.drop_tail();
  streams_.remove(stream);
  if (stream.access_ == io::Access::kCritical) note_critical(false);
  wire_->release(stream.wire_id());
  shard_.shared().h2_streams.release(stream);
  if (streams_.empty()) last_activity_ = now();
}

void H2Session::finish_session(TimePoint now) {
  if (leaving_) return;
  const http::h2::SessionEnd end = wire_->ended();
  CloseReason reason = reason_of(end);
  if (end == http::h2::SessionEnd::kFinished) {
    if (!streams_.empty()) return;  // their output is not sent yet
    if (wire_->peer_is_leaving()) reason = CloseReason::kClient;
    if (shard_.draining()) reason = CloseReason::kShutdown;
    if (idled_) reason = CloseReason::kIdle;
  } else {
    for (H2Stream& stream : streams_) add_abort(stream, reason);
    static_cast<void>(tell_ends());
  }
  if (!put_frames(now)) return;  // no room yet for the last frames
  leaving_ = true;
  ++shard_.counters().h2_ended[static_cast<std::size_t>(end)];
  connection_.finish({.reason = reason, .linger = true});
}

void H2Session::on_end_of_input(TimePoint) {
  connection_.fail(idle() ? CloseReason::kClient : CloseReason::kClientAbort);
}

void H2Session::end_streams(CloseReason reason) {
  for (H2Stream& stream : streams_) add_abort(stream, reason);
  static_cast<void>(tell_ends());
  count_glitches();
  const http::h2::SessionEnd end = wire_->ended();
  if (end == http::h2::SessionEnd::kNone) say_goodbye(now());
  if (!leaving_) ++shard_.counters().h2_ended[static_cast<std::size_t>(end)];
}

/// The connection is closed at once: the peer receives only what fits into the socket now.
void H2Session::say_goodbye(TimePoint now) noexcept {
  wire_->shut_down();
  if (!connection_.output().empty()) return;
  std::array<std::byte, 256> words;
  const std::size_t size = wire_->produce(words, now);
  if (size == 0) return;
  const std::array<io::ConstBuffer, 1> piece = {{{words.data(), size}}};
  static_cast<void>(connection_.transport().write(piece));
}

void H2Session::count_glitches() noexcept {
  LoopCounters& counters = shard_.counters();
  if (const std::uint64_t total = wire_->glitches(); total != glitches_counted_) {
    glitches_counted_ = total;
    for (std::size_t i = 0; i < http::kH2GlitchCount; ++i) {
      const auto count =
          static_cast<std::uint32_t>(wire_->glitches(static_cast<http::H2Glitch>(i)));
      counters.h2_glitches[i] += count - std::exchange(glitches_told_[i], count);
    }
  }
  if (wire_->is_leaving() && !std::exchange(goaway_counted_, true)) ++counters.h2_goaways;
  if (const std::uint64_t peak = wire_->outbound_frames_peak();
      peak > counters.h2_outbound_frames_peak.get()) {
    counters.h2_outbound_frames_peak.set(peak);
  }
}

bool H2Session::awaits_peer() const noexcept {
  return !streams_.empty() &&
         std::all_of(streams_.begin(), streams_.end(),
                     [](const H2Stream& stream) { return stream.awaits_peer(); });
}

Duration H2Session::blocked_time(TimePoint now) const noexcept {
  Duration sum{};
  for (const H2Stream& stream : streams_) sum += stream.blocked_for(now);
  return sum;
}

std::uint32_t H2Session::end_blocked(std::uint32_t count, TimePoint now) {
  std::uint32_t ended = 0;
  for (; ended < count; ++ended) {
    H2Stream* worst = nullptr;
    Duration longest{};
    for (H2Stream& stream : streams_) {
      if (const Duration time = stream.blocked_for(now); time > longest) {
        longest = time;
        worst = &stream;
      }
    }
    if (worst == nullptr) break;
    wire_->reset(worst->wire_id(), http::h2::ErrorCode::kEnhanceYourCalm);
    add_abort(*worst, CloseReason::kBackpressure);
    static_cast<void>(tell_ends());
  }
  return ended;
}

bool H2Session::critical() const noexcept {
  if (!streams_.empty()) return critical_streams_ > 0;
  return connection_.access() == io::Access::kCritical;
}

// ---- Time --------------------------------------------------------------------------------------

TimePoint H2Session::now() const noexcept {
  return shard_.loop().now();
}

void H2Session::touch() noexcept {
  connection_.schedule();
}

TimePoint H2Session::idle_deadline() const noexcept {
  return streams_.empty() ? last_activity_ + shard_.config().idle_timeout : TimePoint::max();
}

TimePoint H2Session::deadline() const noexcept {
  if (leaving_) return TimePoint::max();
  TimePoint next = std::min({next_check_, final_goaway_, idle_deadline()});
  if (const TimePoint expiry = wire_->next_expiry(); expiry != TimePoint{}) {
    next = std::min(next, expiry);
  }
  return next;
}

void H2Session::on_deadline(TimePoint now) {
  wire_->expire(now);
  if (now >= final_goaway_) {
    final_goaway_ = TimePoint::max();
    wire_->shut_down();
  }
  if (now >= next_check_) check_streams(now);
  if (now >= idle_deadline()) {
    idled_ = true;
    last_activity_ = now;  // so that this happens only once
    wire_->shut_down();
  }
  static_cast<void>(advance(now));
}

void H2Session::check_streams(TimePoint now) {
  next_check_ = TimePoint::max();
  for (H2Stream& stream : streams_) {
    stream.on_deadline(now);
    watch_deadline(stream.deadline());
  }
}

void H2Session::on_drain() {
  if (final_goaway_ != TimePoint::max() || leaving_) return;
  wire_->announce_shutdown();
  final_goaway_ = now() + kGoawayNotice;
  touch();
}

}  // namespace weir::inline v0::inline server
