#include "connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/assert.h"

#include "h2/h2_session.h"
#include "http/h2/frame.h"
#include "io/tls_stream.h"
#include "shard.h"
#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
constexpr int kReadsPerTurn = 4;  // of one connection, before other connections are served
constexpr int kRoundsPerTurn = 16;

Connection::Connection(LoopShard& shard, const Arrival& arrival) noexcept
    : shard_(shard),
      plain_(socket_),
      transport_(&plain_),
      h1_(*this, shard),
      proxy_(*this),
      session_(&h1_),
      timer_(io::Timer::Fired::to<&Connection::on_timer>(*this)),
      work_(io::Callback<>::to<&Connection::drive>(*this)),
      peer_(arrival.peer),
      access_(arrival.critical ? io::Access::kCritical : io::Access::kOrdinary),
      tls_(arrival.tls),
      proxied_(arrival.proxied) {}

bool Connection::open(io::Fd fd) {
  if (!socket_.open(shard_.loop(), std::move(fd), *this)) return false;
  opened_at_ = progress_at_ = shard_.loop().now();
  output_.bind(shard_.shared().writes, shard_.index(), shard_.shared().write_quota);
  shard_.on_opened(*this);
  if (proxied_) {
    session_ = &proxy_;
  } else if (tls_) {
    session_ = entry_ = &shard_.shared().tls->acquire(*this, shard_);
  }
  settle(opened_at_);
  return true;
}

void Connection::end_proxy_header(const Sender& sender) {
  peer_ = sender.address;
  client_unknown_ = sender.unknown;
  if (tls_) {
    session_ = entry_ = &shard_.shared().tls->acquire(*this, shard_);
  } else {
    session_ = &h1_;
    leave_stage();
  }
  if (shard_.draining()) session_->on_drain();
}

bool Connection::before_http() const noexcept {
  return session_ == &proxy_ || (entry_ != nullptr && session_ == entry_);
}

void Connection::begin_http(io::TlsProtocol agreed) {
  session_ = &h1_;
  if (agreed == io::TlsProtocol::kHttp2) {
    begin_http2();
  } else {
    begin_http1();
  }
  if (shard_.draining()) session_->on_drain();
}

void Connection::drain() {
  // A request that has arrived and is not read yet is served: closing would reset the connection.
  if (!closed_ && !lingering_ && !finishing() && session_->idle()) on_readable();
  if (!closed_) session_->on_drain();
}

void Connection::fail(CloseReason reason) noexcept {
  if (ending_ == CloseReason::kNone) ending_ = reason;
  schedule();
}

void Connection::finish(CloseMode close_mode) noexcept {
  if (!finishing()) close_mode_ = close_mode;
  schedule();
}

void Connection::schedule() noexcept {
  if (!driving_ && !closed_) shard_.loop().defer(work_);
}

void Connection::drive() {
  if (closed_) {
    if (!socket_.is_open() && gone_) shard_.on_closed(*this);  // destroys this
    return;
  }
  const TimePoint now = shard_.loop().now();
  const bool read_on = transport_->has_pending() && session_->wants_input() && !backlog_;
  if (read_on) static_cast<void>(fill_input(now));
  if (lingering_ && transport_->has_pending()) discard_input();
  rounds(now);
  settle(now);
}

void Connection::resume_output(WriteBuffer* handed) {
  while (handed != nullptr) output_.adopt(*std::exchange(handed, handed->next));
  drive();
}

void Connection::on_readable() {
  const TimePoint now = shard_.loop().now();
  if (lingering_) {
    discard_input();
    return settle(now);
  }
  // Unprocessed input comes first: reading more would only move it around in a full region.
  for (int i = 0; i < kReadsPerTurn && !backlog_; ++i) {
    if (!session_->wants_input() || finishing()) {
      // The session cannot use input now: leave it in the kernel, watch only for a disconnect.
      if (i == 0) socket_.watch({.read = false, .write = socket_.watched().write});
      break;
    }
    const bool more = fill_input(now);
    rounds(now);
    if (!more || failed()) break;
  }
  settle(now);
}

/// One read. True if the socket may hold more.
bool Connection::fill_input(TimePoint now) {
  if (!input_.attached()) attach_region();
  std::span<std::byte> space = input_.decrypted_ptr();
  if (space.empty()) {
    shard_.counters().bytes_moved += input_.compact();
    space = input_.decrypted_ptr();
    if (space.empty()) return false;
  }
  const io::IoResult got = transport_->read(space);
  if (got) {
    input_.commit_decrypted(*got);
    shard_.counters().bytes_received += *got;
    progress_at_ = now;
    return *got == space.size();
  }
  switch (got.error()) {
    case io::IoError::kAgain:
      break;
    case io::IoError::kEof:
      half_closed_ = true;
      session_->on_end_of_input(now);
      break;
    case io::IoError::kReset:
    case io::IoError::kTimedOut:
      fail(session_->idle() ? CloseReason::kClient : CloseReason::kClientAbort);
      break;
    case io::IoError::kTls:
    case io::IoError::kNoMemory:
      if (entry_ != nullptr && entry_->transport().stream().too_many_key_updates()) {
        ++shard_.counters().key_updates_exceeded;
      }
      fail(CloseReason::kTls);
      break;
    default:
      fail(CloseReason::kReadError);
      break;
  }
  return false;
}

void Connection::discard_input() {
  std::array<std::byte, 16 * 1024> waste;
  const io::IoResult got = transport_->read(waste);
  if (!got && got.error() != io::IoError::kAgain) fail(close_mode_.reason);
}

void Connection::on_writable() {
  blocked_ = false;
  transport_->on_writable();
  drive();
}

void Connection::on_disconnected() {
  const TimePoint now = shard_.loop().now();
  driving_ = true;
  session_->on_disconnected(now);
  driving_ = false;
  settle(now);
}

bool Connection::decide_protocol() {
  if (before_http()) return true;
  if (!shard_.config().http2_enabled) protocol_ = Protocol::kHttp1;
  if (protocol_ != Protocol::kUndecided) return true;
  const std::span<const std::byte> bytes = input_.decrypted();
  const std::size_t size = std::min(bytes.size(), http::h2::kClientPreface.size());
  const std::string_view begun(reinterpret_cast<const char*>(bytes.data()), size);
  if (begun != http::h2::kClientPreface.substr(0, size)) {
    protocol_ = Protocol::kHttp1;
  } else if (size == http::h2::kClientPreface.size()) {
    begin_http2();
    if (shard_.draining()) session_->on_drain();
  }
  return protocol_ != Protocol::kUndecided;
}

void Connection::begin_http2() {
  protocol_ = Protocol::kHttp2;
  h2_ = H2Session::make(*this, shard_, shard_.loop().now());
  if (h2_ != nullptr) {
    session_ = h2_;
    return schedule();  // our SETTINGS are sent before any further input
  }
  // No memory for a session: the client gets GOAWAY and may retry elsewhere.
  static constexpr auto kRefusal = http::h2::refusal_frames();
  shard_.counters().count(RefuseReason::kSessions);
  if (access_ == io::Access::kCritical) ++shard_.counters().critical_shed;
  shard_.on_exhausted();
  const std::string_view words(reinterpret_cast<const char*>(kRefusal.data()), kRefusal.size());
  if (!output_.append_view(words)) return fail(CloseReason::kProtocol);
  input_.consume_decrypted(input_.decrypted().size());
  finish({.reason = CloseReason::kProtocol, .linger = true});
}

void Connection::rounds(TimePoint now) {
  driving_ = true;
  bool again = true;
  for (int i = 0; i < kRoundsPerTurn && again && !failed(); ++i) {
    again = decide_protocol();
    if (!again) break;
    output_.set_fair(shard_.writers().any_waiting());
    again = session_->advance(now);
    if (failed()) break;
    flush(now);
    if (failed()) break;
    again = session_->on_flushed(now) || again;
  }
  driving_ = false;
  backlog_ = again && !failed();
  if (backlog_) schedule();
}

void Connection::flush(TimePoint now) {
  while (!output_.empty() && !blocked_) {
    std::array<io::ConstBuffer, io::Socket::kGatherMax> pieces;
    const std::size_t count = output_.gather(pieces);
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += pieces[i].size;
    const io::IoResult put = transport_->write(std::span(pieces.data(), count));
    if (!put) {
      if (put.error() == io::IoError::kAgain) break;
      const bool gone = put.error() == io::IoError::kReset || put.error() == io::IoError::kTimedOut;
      const bool tls = put.error() == io::IoError::kTls || put.error() == io::IoError::kNoMemory;
      return fail(gone  ? CloseReason::kClientAbort
                  : tls ? CloseReason::kTls
                        : CloseReason::kWriteError);
    }
    output_.sent(*put);
    moved_ += *put;
    progress_at_ = now;
    shard_.counters().bytes_sent += *put;
    write_guard_.add(*put, now, write_rule(shard_.config()));
    if (*put < offered) break;  // the socket is full: no need to try again
  }
  blocked_ = !output_.empty();
  if (!blocked_) {
    write_guard_.stop();
  } else if (!write_guard_.running()) {
    write_guard_.start(now, write_rule(shard_.config()));
  }
}

void Connection::settle(TimePoint now) {
  if (closed_) return;
  if (failed()) return end(ending_);
  if (half_closed_ && session_->idle() && input_.empty()) return end(CloseReason::kClient);
  if (finishing() && output_.empty() && !lingering_) {
    if (!close_mode_.linger || half_closed_) return end(close_mode_.reason);
    start_linger(now);
  }
  output_.drop_unused();
  if (input_.attached() && (input_.empty() || lingering_)) release_region();
  io::Socket::Interest wanted = socket_.watched();
  const bool reads = lingering_ || (session_->wants_input() && !finishing());
  if (reads) wanted.read = true;  // otherwise unchanged until unusable bytes arrive
  if (half_closed_ && !lingering_) wanted.read = false;
  wanted.write = blocked_;
  socket_.watch(transport_->interest(wanted));
  if (reads && transport_->has_pending()) schedule();
  settle_lists(now);
  settle_deadline();
}

TimePoint Connection::incomplete_since() const noexcept {
  if (finishing() || !output_.empty()) return TimePoint::max();
  if (!session_->idle()) return session_->head_since();
  return session_->unused() && !input_.empty() ? opened_at_ : TimePoint::max();
}

Duration Connection::blocked_time(TimePoint now) const noexcept {
  if (closed_ || driving_ || session_->critical()) return {};
  const Duration output = write_guard_.lag(now);
  return session_->blocked_time(now) + output * session_->requests_open();
}

std::uint32_t Connection::end_blocked(std::uint32_t count, TimePoint now) {
  const bool reads = write_guard_.lag(now) == Duration(0);
  const std::uint32_t ended = reads ? session_->end_blocked(count, now) : 0;
  if (ended > 0) {
    schedule();
    return ended;
  }
  const std::uint32_t open = session_->requests_open();
  close_now(CloseReason::kBackpressure);
  return open;
}

void Connection::settle_lists(TimePoint now) {
  const bool moved = std::exchange(moved_, 0) > 0;
  const bool rests = session_->idle() && output_.empty() && input_.empty() && !finishing();
  // A connection whose head takes this long counts as idle, because it uses its place as little as
  // an idle one.
  const TimePoint begun = incomplete_since();
  const bool incomplete = begun != TimePoint::max();
  const bool late = incomplete && now - begun >= shard_.config().stall_grace;
  const bool idle = rests || late;
  if (rests && (moved || !idle_hook.linked())) idle_since_ = now;
  if (late) idle_since_ = begun;
  shard_.set_idle(*this, idle, moved);
  shard_.set_incomplete(*this, incomplete && !late);
  const bool blocked_on_output = session_->wants_room() && output_.blocked();
  shard_.writers().set_waiting(*this, blocked_on_output);
  const bool blocked = blocked_on_output || blocked_;
  if (blocked && (moved || !blocked_hook.linked())) blocked_since_ = now;
  shard_.set_blocked(*this, blocked, moved);
}

void Connection::settle_deadline() {
  TimePoint next = std::min(session_->deadline(), write_guard_.deadline());
  if (lingering_) next = linger_until_;
  // A timer that fires too early finds nothing due and is armed again. This is cheaper than moving
  // it each time, because most deadlines are postponed many times.
  if (next == TimePoint::max() || (timer_.armed() && timer_.deadline() <= next)) return;
  shard_.loop().arm(timer_, next);
}

void Connection::on_timer(TimePoint now) {
  if (lingering_) {
    if (now >= linger_until_) fail(close_mode_.reason);
    return settle(now);
  }
  driving_ = true;
  if (write_guard_.too_slow(now, write_rule(shard_.config()))) {
    fail(CloseReason::kWriteTimeout);
  } else if (now >= session_->deadline()) {
    session_->on_deadline(now);
    if (!failed()) flush(now);
  }
  driving_ = false;
  settle(now);
}

void Connection::start_linger(TimePoint now) {
  lingering_ = true;
  linger_until_ = now + shard_.config().linger_timeout;
  transport_->shutdown_write();
}

void Connection::close_now(CloseReason reason) {
  if (closed_ || driving_) return fail(reason);
  end(reason);
}

void Connection::attach_region() {
  staged_ = before_http();
  region_ = staged_ ? shard_.lease_stage() : shard_.lease_region();
  input_.attach({}, region_.memory);  // OpenSSL's record buffer is the encrypted part
}

void Connection::release_region() {
  input_.discard();
  if (staged_) {
    shard_.release_stage(region_);
  } else {
    shard_.release_region(region_);
  }
}

/// Bytes after a PROXY header may be many times as much as a stage holds.
void Connection::leave_stage() {
  if (input_.empty()) return release_region();
  const ReadRegion stage = std::exchange(region_, shard_.lease_region());
  const std::span<const std::byte> rest = input_.decrypted();
  std::copy(rest.begin(), rest.end(), region_.memory.begin());
  shard_.counters().bytes_moved += rest.size();
  input_.attach({}, region_.memory);
  input_.commit_decrypted(rest.size());
  shard_.release_stage(stage);
  staged_ = false;
}

void Connection::end(CloseReason reason) {
  WEIR_ASSERT(!closed_);
  closed_ = true;
  driving_ = true;  // further calls of the handler have no effect
  const bool orderly = session_->idle() || (finishing() && output_.empty());
  session_->end_streams(reason);
  if (h2_ != nullptr) {
    session_ = &h1_;
    H2Session::destroy(std::exchange(h2_, nullptr));
  }
  driving_ = false;
  transport_->close(orderly);
  if (entry_ != nullptr) {
    use_cleartext();
    session_ = &h1_;
    shard_.shared().tls->release(*std::exchange(entry_, nullptr));
  }
  if (input_.attached()) release_region();
  output_.clear();
  shard_.loop().cancel(timer_);
  shard_.set_idle(*this, false, false);
  shard_.set_incomplete(*this, false);
  shard_.writers().set_waiting(*this, false);
  shard_.set_blocked(*this, false, false);
  shard_.counters().count(reason);
  socket_.close(io::Callback<>::to<&Connection::on_gone>(*this));
}

void Connection::on_gone() {
  gone_ = true;
  if (!work_.queued()) shard_.on_closed(*this);  // destroys this; else drive() does
}

}  // namespace weir::inline v0::inline server
