#include "upstream/connection.h"

#include <algorithm>
#include <cstring>

#include "weir/base/assert.h"

#include "upstream/pool.h"

namespace weir::inline v0::upstream {

UpstreamConnection::UpstreamConnection(UpstreamPool& pool, std::uint32_t endpoint_index) noexcept
    : pool_(pool), parser_(pool.limits_), endpoint_index_(endpoint_index) {
  timer_.on_fire(io::Timer::Fired::to<&UpstreamConnection::on_timer>(*this));
}

UpstreamConnection::~UpstreamConnection() {
  WEIR_ASSERT(exchange_ == nullptr && region_ == nullptr);
}

Result<void, io::IoError> UpstreamConnection::open(io::Fd fd) {
  Result<void, io::IoError> opened = socket_.open(pool_.loop_, std::move(fd), *this);
  if (opened) socket_.watch({.read = false, .write = true});
  return opened;
}

// ---- starting and ending exchanges

void UpstreamConnection::carry(Exchange& exchange) noexcept {
  WEIR_ASSERT(exchange_ == nullptr);
  exchange_ = &exchange;
  exchange.connection_ = this;
  ++exchanges_;
  parser_.begin({.method = exchange.plan_.method, .upgrade_sent = exchange.plan_.upgrade});
  head_done_ = keep_alive_ = paused_ = held_last_ = false;
  write_broken_ = wrote_some_ = said_end_ = false;
  held_ = {};
  progress_at_ = pool_.loop_.now();
  if (state_ == State::kConnecting) {
    rearm();
    return;
  }
  state_ = State::kActive;
  static_cast<void>(flush());
  rearm();
}

void UpstreamConnection::abandon() noexcept {
  Exchange& exchange = *exchange_;
  exchange_ = nullptr;
  exchange.endpoint_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  pool_.detach(exchange);
  // A normal close would keep the bytes that the upstream has not read yet in the kernel.
  socket_.reset_on_close();
  close();
}

void UpstreamConnection::close() noexcept {
  if (state_ == State::kClosing) return;
  if (state_ == State::kIdle) pool_.take_from_idle(*this);
  if (state_ == State::kConnecting) {
    pool_.upstream_.at(endpoint_index_).connecting.fetch_sub(1, std::memory_order_relaxed);
  }
  state_ = State::kClosing;
  pool_.loop_.cancel(timer_);
  drop_region();
  socket_.close(io::Callback<>::to<&UpstreamConnection::on_closed>(*this));
}

bool UpstreamConnection::still_quiet() noexcept {
  std::byte unexpected_byte{};
  const io::IoResult got = socket_.read({&unexpected_byte, 1});
  return !got && got.error() == io::IoError::kAgain;
}

void UpstreamConnection::on_closed() {
  pool_.gone(*this);
}

void UpstreamConnection::fail(UpstreamFailure failure) noexcept {
  Exchange& exchange = *exchange_;
  exchange_ = nullptr;
  pool_.end(exchange, failure);
  close();
  exchange.events_.on_upstream_failed(failure);
}

void UpstreamConnection::connect_failed(UpstreamFailure failure) noexcept {
  Exchange& exchange = *exchange_;
  exchange_ = nullptr;
  pool_.upstream_.at(endpoint_index_).note_connect_failed(pool_.loop_.now());
  close();
  pool_.retry(exchange, failure);
}

bool UpstreamConnection::may_retry() const noexcept {
  if (!reused() || exchange_->response_started_ || exchange_->begin_ > exchange_->head_bytes_) {
    return false;
  }
  const bool unseen = !wrote_some_;
  const bool harmless = is_safe(exchange_->plan_.method) && !exchange_->plan_.upgrade;
  return !exchange_->body_given_ && (unseen || harmless);
}

// The response is complete. The connection is free before the owner's callback, so that the owner
// may start the next exchange in it.
void UpstreamConnection::finish_exchange() noexcept {
  Exchange& exchange = *exchange_;
  const bool sent = exchange.request_complete_ && exchange.begin_ == exchange.end_;
  const bool reusable = keep_alive_ && sent && begin_ == end_ && !exchange.tunnel_ &&
                        !write_broken_ && !pool_.stopping_;
  exchange_ = nullptr;
  pool_.end(exchange, UpstreamFailure::kNone);
  if (reusable) {
    drop_region();
    state_ = State::kIdle;
    update_watch();
    pool_.loop_.arm(timer_, pool_.loop_.now() + pool_.upstream_.timeouts().idle);
    pool_.keep_idle(*this);
  } else {
    close();
  }
  exchange.events_.on_upstream_complete();
}

// ---- writing

bool UpstreamConnection::flush() noexcept {
  if (exchange_ == nullptr || state_ != State::kActive || write_broken_) return false;
  Exchange& exchange = *exchange_;
  if (!wrote_some_) exchange.write_time_left(pool_.loop_.now());
  while (exchange.begin_ < exchange.end_) {
    const std::span<const char> rest(exchange.buffer_ + exchange.begin_,
                                     exchange.end_ - exchange.begin_);
    const io::IoResult written = socket_.write(std::as_bytes(rest));
    if (!written) {
      want_write_ = written.error() == io::IoError::kAgain;
      write_broken_ = !want_write_;  // reading shows the cause, or an early response
      update_watch();
      return false;
    }
    wrote_some_ = true;
    exchange.begin_ += static_cast<std::uint32_t>(*written);
  }
  want_write_ = false;
  update_watch();
  end_tunnel_output();
  return true;
}

void UpstreamConnection::request_ended() noexcept {
  progress_at_ = pool_.loop_.now();
  rearm();
  end_tunnel_output();
}

// The client ended its side of a tunnel: shuts down writing after its last byte is sent.
void UpstreamConnection::end_tunnel_output() noexcept {
  if (exchange_ == nullptr || !exchange_->tunnel_ || !exchange_->request_complete_) return;
  if (exchange_->begin_ != exchange_->end_ || std::exchange(said_end_, true)) return;
  socket_.shutdown_write();
}

std::size_t UpstreamConnection::write_through(std::span<const io::ConstBuffer> pieces) noexcept {
  if (state_ != State::kActive || write_broken_) return 0;
  const io::IoResult written = socket_.write(pieces);
  std::size_t wanted = 0;
  for (const io::ConstBuffer& piece : pieces) wanted += piece.size;
  const std::size_t done = written ? *written : 0;
  if (!written && written.error() != io::IoError::kAgain) write_broken_ = true;
  if (done > 0) {
    wrote_some_ = true;
    progress_at_ = pool_.loop_.now();
  }
  want_write_ = done < wanted && !write_broken_;
  update_watch();
  return done;
}

void UpstreamConnection::on_writable() {
  if (state_ == State::kConnecting) {
    const Result<void, io::IoError> connected = socket_.connected();
    if (!connected) {
      connect_failed(connected.error() == io::IoError::kRefused ? UpstreamFailure::kConnectRefused
                     : connected.error() == io::IoError::kTimedOut
                         ? UpstreamFailure::kConnectTimeout
                         : UpstreamFailure::kConnectFailed);
      return;
    }
    pool_.upstream_.at(endpoint_index_).connecting.fetch_sub(1, std::memory_order_relaxed);
    state_ = State::kActive;
    progress_at_ = pool_.loop_.now();
    rearm();
  }
  if (exchange_ == nullptr) return update_watch();
  progress_at_ = pool_.loop_.now();
  if (!flush()) return;
  rearm();
  if (std::exchange(exchange_->owes_writable_, false)) exchange_->events_.on_upstream_writable();
}

// ---- reading

void UpstreamConnection::update_watch() noexcept {
  if (state_ == State::kClosing) return;
  socket_.watch({.read = !paused_, .write = want_write_ || state_ == State::kConnecting});
}

void UpstreamConnection::drop_region() noexcept {
  if (region_ == nullptr) return;
  pool_.memory_.regions.release(pool_.loop_index_, reinterpret_cast<std::byte*>(region_));
  region_ = nullptr;
  begin_ = end_ = 0;
}

void UpstreamConnection::on_readable() {
  if (exchange_ == nullptr) return close();  // unexpected bytes, or the end of an idle connection
  const auto size = static_cast<std::uint32_t>(pool_.memory_.regions.block_bytes());
  for (int turn = 0; turn < 16; ++turn) {
    if (region_ == nullptr) {
      region_ = reinterpret_cast<char*>(
          pool_.memory_.regions.acquire(pool_.loop_index_, exchange_->access_));
      if (region_ == nullptr) return fail(UpstreamFailure::kNoBuffer);
    }
    if (begin_ > 0 && held_.empty()) {
      std::memmove(region_, region_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == size) return fail(UpstreamFailure::kBadResponse);  // the head exceeds a region
    const std::span<char> room(region_ + end_, size - end_);
    const io::IoResult got = socket_.read(std::as_writable_bytes(room));
    if (!got) {
      if (got.error() == io::IoError::kAgain) break;
      return on_end(got.error() != io::IoError::kEof);
    }
    progress_at_ = pool_.loop_.now();
    const bool filled = *got == room.size();
    end_ += static_cast<std::uint32_t>(*got);
    if (!process() || !filled) break;
  }
  if (region_ != nullptr && begin_ == end_ && held_.empty() && state_ != State::kClosing) {
    drop_region();
  }
}

// Processes the bytes that were read. False: stop reading (paused, or the exchange has ended).
bool UpstreamConnection::process() noexcept {
  while (exchange_ != nullptr && !paused_) {
    const bool more = head_done_ ? process_body() : process_head();
    if (!more) break;
  }
  return exchange_ != nullptr && !paused_;
}

bool UpstreamConnection::process_head() noexcept {
  if (begin_ == end_) return false;
  http::h1::ResponseHead head;
  const http::h1::HeadResult result = parser_.parse_head(unread(), pool_.fields_, head);
  if (result.status == http::h1::ParseStatus::kNeedMore) return false;
  if (result.status == http::h1::ParseStatus::kError) {
    fail(UpstreamFailure::kBadResponse);
    return false;
  }
  Exchange& exchange = *exchange_;
  if (head.informational) {
    begin_ += static_cast<std::uint32_t>(result.consumed);
    return true;
  }
  exchange.response_started_ = true;
  keep_alive_ = head.keep_alive;
  const http::h1::BodyFraming framing =
      head.tunnel ? http::h1::BodyFraming{.kind = http::h1::BodyKind::kUntilClose} : head.body;
  decoder_ = http::h1::BodyDecoder(framing, pool_.limits_);
  if (head.tunnel) {
    exchange.tunnel_ = true;
    exchange.plan_.deadline = TimePoint::max();
    exchange.plan_.patient = true;
  }
  const bool taken = exchange.events_.on_upstream_head(head);
  if (exchange_ != &exchange) return false;  // cancelled in the callback
  if (!taken) {
    hold();
    return false;
  }
  head_done_ = true;
  begin_ += static_cast<std::uint32_t>(result.consumed);
  exchange.release_sent_buffer();
  if (framing.kind == http::h1::BodyKind::kNone) {
    finish_exchange();
    return false;
  }
  rearm();
  return true;
}

bool UpstreamConnection::process_body() noexcept {
  const http::h1::BodyDecoder before = decoder_;  // trailers that are not accepted are parsed again
  const http::h1::BodyStep step = decoder_.next(unread(), pool_.fields_);
  Exchange& exchange = *exchange_;
  switch (step.event) {
    case http::h1::BodyEvent::kNeedMore:
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return false;
    case http::h1::BodyEvent::kError:
      fail(UpstreamFailure::kBadResponse);
      return false;
    case http::h1::BodyEvent::kTrailers:
      if (!exchange.events_.on_upstream_trailers(decoder_.trailers())) {
        if (exchange_ != &exchange) return false;
        decoder_ = before;
        hold();
        return false;
      }
      if (exchange_ != &exchange) return false;
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return true;
    case http::h1::BodyEvent::kData:
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return deliver(step.chunk.text(), step.chunk.last());
  }
  return false;
}

// Passes a piece to the owner. The part it does not accept stays in the region until resume().
bool UpstreamConnection::deliver(std::string_view bytes, bool last) noexcept {
  Exchange& exchange = *exchange_;
  if (!bytes.empty()) {
    const std::size_t taken = exchange.events_.on_upstream_body(bytes);
    if (exchange_ != &exchange) return false;
    if (taken < bytes.size()) {
      held_ = bytes.substr(taken);
      held_last_ = last;
      hold();
      return false;
    }
  }
  if (!last) return true;
  finish_exchange();
  return false;
}

void UpstreamConnection::hold() noexcept {
  paused_ = true;
  update_watch();
}

void UpstreamConnection::resume() noexcept {
  if (!paused_ || exchange_ == nullptr) return;
  paused_ = false;
  progress_at_ = pool_.loop_.now();
  const std::string_view held = std::exchange(held_, {});
  if (!held.empty() && !deliver(held, std::exchange(held_last_, false))) return;
  if (!process()) return;
  if (begin_ == end_) drop_region();
  update_watch();  // level-triggered: bytes that arrived meanwhile are reported in the next turn
}

void UpstreamConnection::on_disconnected() {
  // Reading is off because the client is slow; the bytes that the upstream sent before it
  // disconnected are still in the kernel and are read after resume().
}

// The upstream ended its side, or the connection failed.
void UpstreamConnection::on_end(bool reset) noexcept {
  Exchange& exchange = *exchange_;
  if (!head_done_) {
    const bool silent = begin_ == end_ && !parser_.started();
    if (silent && may_retry()) {
      exchange_ = nullptr;
      close();
      pool_.retry(exchange, UpstreamFailure::kClosedEarly);
      return;
    }
    return fail(silent ? UpstreamFailure::kClosedEarly : UpstreamFailure::kTruncated);
  }
  const http::h1::BodyStep step = decoder_.finish();
  if (step.event != http::h1::BodyEvent::kData || (reset && !exchange.tunnel_)) {
    return fail(UpstreamFailure::kTruncated);
  }
  keep_alive_ = false;
  finish_exchange();
}

// ---- deadlines

Duration UpstreamConnection::silence_allowed() const noexcept {
  const UpstreamTimeouts limits = pool_.upstream_.timeouts();
  if (state_ == State::kConnecting) return limits.connect;
  return answer_due() ? limits.first_byte : limits.inactivity;
}

bool UpstreamConnection::answer_due() const noexcept {
  return !head_done_ && exchange_->request_complete_ && exchange_->held_bytes() == 0;
}

void UpstreamConnection::rearm() noexcept {
  if (exchange_ == nullptr || state_ == State::kClosing) return;
  TimePoint at = exchange_->plan_.deadline;
  if (!exchange_->plan_.patient) at = std::min(at, progress_at_ + silence_allowed());
  if (at == TimePoint::max()) {
    pool_.loop_.cancel(timer_);
  } else {
    pool_.loop_.arm(timer_, at);
  }
}

void UpstreamConnection::on_timer(TimePoint now) {
  if (exchange_ == nullptr) return close();
  const Exchange::Plan& plan = exchange_->plan_;
  const bool request_due = !exchange_->request_complete_ && exchange_->held_bytes() == 0;
  const bool waits_for_owner = paused_ || (!head_done_ && request_due);
  if (plan.deadline <= now) {
    exchange_->waited_for_owner_ = waits_for_owner;
    return fail(plan.deadline == plan.caller_deadline ? UpstreamFailure::kDeadline
                                                      : UpstreamFailure::kOverallTimeout);
  }
  if (state_ == State::kConnecting) return connect_failed(UpstreamFailure::kConnectTimeout);
  // Progress moves the deadline without rearming the timer. A slow client does not count against
  // the upstream; the server's own timeouts cover it.
  if (waits_for_owner || plan.patient) progress_at_ = now;
  if (progress_at_ + silence_allowed() > now) return rearm();
  fail(answer_due() ? UpstreamFailure::kFirstByteTimeout : UpstreamFailure::kStalled);
}

}  // namespace weir::inline v0::upstream
