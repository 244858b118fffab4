#include "h2_wire.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weir/base/assert.h"

#include "client_connection.h"
#include "connection_pool.h"
#include "pool_endpoint.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {
namespace {

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + 63) & ~std::size_t{63};
}
constexpr std::size_t kStreamsAt = aligned(sizeof(H2Wire));
constexpr std::size_t kOutAt = kStreamsAt + aligned(H2Wire::kStreams * sizeof(H2Stream));

}  // namespace

// ---- memory

http::H2Limits H2Wire::limits(std::size_t region_bytes) noexcept {
  http::H2Limits limits;
  limits.concurrent_streams_max = kStreams;
  limits.stream_window_bytes = static_cast<std::uint32_t>(region_bytes / 2);
  limits.header_list_bytes_max = static_cast<std::uint32_t>(region_bytes / 2);
  // The trailers of gRPC carry the details of an error.
  limits.trailer_list_bytes_max = limits.header_list_bytes_max;
  limits.trailer_count_max = limits.header_count_max;
  return limits;
}

std::size_t H2Wire::block_bytes(std::size_t region_bytes) noexcept {
  return kOutAt + kOutBytes + limits(region_bytes).session_bytes_max;
}

HeldResponse::Shape H2Wire::held_shape() const noexcept {
  const std::size_t half = connection_.region_bytes() / 2;
  return {.body_bytes = half, .field_bytes = connection_.region_bytes() - half};
}

H2Stream* H2Wire::stream_at(std::uint32_t index) noexcept {
  return std::launder(reinterpret_cast<H2Stream*>(block_ + kStreamsAt) + index);
}

std::byte* H2Wire::out() noexcept {
  return block_ + kOutAt;
}

std::span<std::byte> H2Wire::session_memory() noexcept {
  std::byte* at = block_ + kOutAt + kOutBytes;
  return {at, pool_.http2().limits().session_bytes_max};
}

H2Wire* H2Wire::make(ClientConnection& connection, ConnectionPool& pool) noexcept {
  std::byte* block = pool.memory().sessions.acquire(pool.loop_index(), io::Access::kOrdinary);
  if (block == nullptr) return nullptr;
  auto* wire = ::new (block) H2Wire(connection, pool, block);
  if (wire->start()) return wire;
  wire->dispose();
  return nullptr;
}

H2Wire::H2Wire(ClientConnection& connection, ConnectionPool& pool, std::byte* block) noexcept
    : connection_(connection), pool_(pool), block_(block) {}

H2Wire::~H2Wire() {
  WEIR_ASSERT(region_ == nullptr && used_ == 0);
}

bool H2Wire::start() noexcept {
  session_ = pool_.http2().make(session_memory(), *this, now());
  if (session_ == nullptr) return false;
  pings_.note_heard(now());
  flush_later();
  arm();
  return true;
}

void H2Wire::destroy() noexcept {
  leaving_ = true;
  const bool nested = std::exchange(busy_, true);
  for (std::uint32_t i = 0; i < fresh_; ++i) {
    H2Stream& stream = *stream_at(i);
    if (stream.state() == H2Stream::State::kFree) continue;
    stream.on_lost(stream.id() == 0 ? http::h2::Processed::kNo : session_->processed(stream.id()));
    free(stream);
  }
  busy_ = nested;
  if (busy_) {
    doomed_ = true;
    return;
  }
  dispose();
}

void H2Wire::dispose() noexcept {
  for (std::uint32_t i = 0; i < fresh_; ++i) std::destroy_at(stream_at(i));
  session_.reset();
  if (region_ != nullptr) connection_.release_region(std::exchange(region_, nullptr));
  ConnectionPool& pool = pool_;
  std::byte* const block = block_;
  this->~H2Wire();
  pool.memory().sessions.release(pool.loop_index(), block);
}

// ---- streams

TimePoint H2Wire::now() noexcept {
  return pool_.loop().now();
}

std::string_view H2Wire::scheme() const noexcept {
  return connection_.secure() ? "https" : "http";
}

bool H2Wire::has_stream() const noexcept {
  return !leaving_ && session_->ended() == http::h2::SessionEnd::kNone &&
         session_->capacity() > 0 && (free_count_ > 0 || fresh_ < kStreams);
}

ClientStream* H2Wire::take_stream() noexcept {
  if (!has_stream()) return nullptr;
  std::uint32_t index = fresh_;
  if (free_count_ > 0) {
    index = free_[--free_count_];
  } else {
    ::new (block_ + kStreamsAt + index * sizeof(H2Stream)) H2Stream(*this);
    ++fresh_;
  }
  ++used_;
  ++requests_;
  H2Stream& stream = *stream_at(index);
  stream.take();
  if (used_ == 1) arm();
  return &stream;
}

void H2Wire::free(H2Stream& stream) noexcept {
  stream.freed();
  free_[free_count_++] = static_cast<std::uint8_t>(&stream - stream_at(0));
  --used_;
  capacity_changed_ = true;
  flush_later();
}

Result<http::h2::StreamId, UpstreamFailure> H2Wire::open(const http::h2::RequestStart& start,
                                                         H2Stream& stream) noexcept {
  Result<http::h2::StreamId, http::h2::SubmitStatus> opened = session_->open(start, &stream);
  if (!opened && opened.error() == http::h2::SubmitStatus::kBlocked && !ending_) {
    collect();
    opened = session_->open(start, &stream);
  }
  if (opened) return *opened;
  return unexpected(opened.error() == http::h2::SubmitStatus::kBadField
                        ? UpstreamFailure::kHttp11Required
                        : UpstreamFailure::kRefusedStream);
}

void H2Wire::wait_for_progress(H2Stream& stream) noexcept {
  if (!stream.waiting_hook.linked()) waiting_.push_back(stream);
}

void H2Wire::stop_waiting(H2Stream& stream) noexcept {
  waiting_.remove(stream);
}

void H2Wire::fail_later(H2Stream& stream) noexcept {
  failed_.push_back(stream);
  flush_later();
}

void H2Wire::stop_failing(H2Stream& stream) noexcept {
  failed_.remove(stream);
}

void H2Wire::grant(http::h2::StreamId id, std::size_t bytes) noexcept {
  if (id == 0 || bytes == 0) return;
  session_->grant(id, bytes);
  flush_later();
}

void H2Wire::reset(http::h2::StreamId id, http::h2::ErrorCode code) noexcept {
  session_->reset(id, code);
  flush_later();
}

policy::LoserEnd H2Wire::end_of_loser() noexcept {
  pace_.streams = requests_;
  return policy::end_of_loser({.multiplexed = true, .bytes_left = {}}, pace_,
                              pool_.upstream().cancel_pace(), now());
}

// ---- output

void H2Wire::flush_later() noexcept {
  connection_.flush_later();
}

/// Moves the codec's frames into the output.
void H2Wire::collect() noexcept {
  if (out_begin_ > 0 && out_begin_ == out_end_) out_begin_ = out_end_ = 0;
  if (out_begin_ > kOutBytes / 2) {
    std::memmove(out(), out() + out_begin_, out_end_ - out_begin_);
    out_end_ -= out_begin_;
    out_begin_ = 0;
  }
  while (session_->has_output() && out_end_ < kOutBytes) {
    const std::size_t n = session_->produce({out() + out_end_, kOutBytes - out_end_}, now());
    if (n == 0) break;
    out_end_ += n;
    put_ += n;
  }
}

std::size_t H2Wire::put_data(http::h2::StreamId id, std::string_view bytes, bool last) noexcept {
  if (ending_) return kNoRoom;
  collect();
  if (session_->has_output() || kOutBytes - out_end_ <= http::h2::kFrameHeaderBytes) return kNoRoom;
  const std::size_t room = kOutBytes - out_end_ - http::h2::kFrameHeaderBytes;
  const std::size_t n = std::min({bytes.size(), room, std::size_t{session_->sendable(id)}});
  if (n == 0 && !bytes.empty()) return kNoRoom;
  std::byte* at = out() + out_end_;
  const bool end = last && n == bytes.size();
  if (n == 0 && !end) return 0;
  const http::h2::DataFrame frame{
      .header = std::span<std::byte, http::h2::kFrameHeaderBytes>(at, http::h2::kFrameHeaderBytes),
      .payload_bytes = static_cast<std::uint32_t>(n),
      .end = end};
  if (!session_->write_data(id, frame, now())) return kNoRoom;
  if (n > 0) std::memcpy(at + http::h2::kFrameHeaderBytes, bytes.data(), n);
  out_end_ += http::h2::kFrameHeaderBytes + n;
  put_ += http::h2::kFrameHeaderBytes + n;
  return n;
}

bool H2Wire::put_trailers(http::h2::StreamId id, const FieldList& list) noexcept {
  if (ending_) return false;
  http::h2::SubmitStatus status = session_->submit_trailers(id, list.fields());
  if (status == http::h2::SubmitStatus::kBlocked) {
    collect();
    status = session_->submit_trailers(id, list.fields());
  }
  return status != http::h2::SubmitStatus::kBlocked;
}

bool H2Wire::flush() noexcept {
  for (;;) {
    collect();
    if (out_begin_ == out_end_) return true;
    const io::ConstBuffer piece{out() + out_begin_, out_end_ - out_begin_};
    const io::IoResult written = connection_.transport().write({&piece, 1});
    if (!written) return written.error() == io::IoError::kAgain;
    out_begin_ += *written;
    progress_ = true;
  }
}

void H2Wire::on_flush() noexcept {
  busy_ = true;
  while (H2Stream* stream = failed_.pop_front()) stream->on_not_started();
  after_session();
}

void H2Wire::on_writable() noexcept {
  busy_ = true;
  after_session();
}

/// After everything that may have changed the session: writes, tells the streams, watches. Ends
/// the busy part.
void H2Wire::after_session() noexcept {
  bool broken = lost_ || !flush();
  tell_progress();
  if (!doomed_ && !broken) broken = !flush();
  busy_ = false;
  if (doomed_) return dispose();
  if (broken || (session_->ended() != http::h2::SessionEnd::kNone && out_begin_ == out_end_)) {
    return lose();
  }
  connection_.update_watch();
  if (input_blocked_ && !session_->has_output()) {
    input_blocked_ = false;
    connection_.read_again();
  }
  if (!std::exchange(capacity_changed_, false)) return;
  if (session_->peer_is_leaving()) {
    heed_complaint();
    connection_.set_retiring();
  }
  arm();
  connection_.on_streams_free();  // may close this connection
}

void H2Wire::tell_progress() noexcept {
  if (!std::exchange(progress_, false)) return;
  for (std::size_t n = waiting_.size(); n > 0 && !doomed_; --n) {
    H2Stream* stream = waiting_.pop_front();
    if (stream == nullptr) return;
    stream->on_progress();
  }
}

// ---- input

void H2Wire::on_readable() noexcept {
  busy_ = true;
  read();
  after_session();
}

void H2Wire::read() noexcept {
  for (int turn = 0; turn < 16 && !doomed_; ++turn) {
    if (region_ == nullptr) region_ = connection_.acquire_region();
    if (region_ == nullptr) return connection_.read_again();
    if (in_begin_ == in_end_) {
      in_begin_ = in_end_ = 0;
      const std::span<char> room(region_, connection_.region_bytes());
      const io::IoResult got = connection_.transport().read(std::as_writable_bytes(room));
      if (!got) {
        if (got.error() != io::IoError::kAgain) leaving_ = lost_ = true;
        break;
      }
      in_end_ = *got;
      pings_.note_heard(now());
      connection_.heard();
    }
    const http::h2::ReceiveResult result = session_->receive(
        std::as_bytes(std::span(region_ + in_begin_, in_end_ - in_begin_)), now());
    in_begin_ += result.consumed;
    if (doomed_) return;
    if (result.status == http::h2::ReceiveStatus::kEnded) {
      in_begin_ = in_end_;
      break;
    }
    if (result.status == http::h2::ReceiveStatus::kBlocked) {
      if (!flush() || session_->has_output()) {
        input_blocked_ = true;
        return;
      }
    }
  }
  if (region_ == nullptr || in_begin_ != in_end_) return;
  connection_.release_region(std::exchange(region_, nullptr));
}

void H2Wire::lose() noexcept {
  connection_.close();
}

void H2Wire::on_response(http::h2::StreamId, void* user, const http::h2::ResponseHead& head) {
  pings_.note_answer();
  static_cast<H2Stream*>(user)->on_head(head);
}

void H2Wire::on_body(http::h2::StreamId, void* user, const http::BodyChunk& chunk) {
  pings_.note_answer();
  static_cast<H2Stream*>(user)->on_body(chunk);
}

void H2Wire::on_trailers(http::h2::StreamId, void* user, const http::HeaderList& trailers) {
  pings_.note_answer();
  static_cast<H2Stream*>(user)->on_trailers(trailers);
}

void H2Wire::on_stream_end(http::h2::StreamId id, void* user, http::h2::StreamEnd end,
                           http::h2::ErrorCode code, http::h2::Processed processed) {
  const bool nested = std::exchange(ending_, true);
  session_->release(id);
  static_cast<H2Stream*>(user)->on_end(end, code, processed);
  ending_ = nested;
}

// ---- time

void H2Wire::shut_down() noexcept {
  leaving_ = true;
  session_->shut_down();
  static_cast<void>(flush());
  connection_.close();
}

void H2Wire::ping() noexcept {
  if (now() < pings_.allowed_at(connection_.endpoint().pings) || !session_->ping(now())) return;
  pings_.note_ping(now());
  flush_later();
}

/// ENHANCE_YOUR_CALM of a gRPC server that was pinged may be its "too_many_pings".
void H2Wire::heed_complaint() noexcept {
  if (!pings_.grpc() || session_->peer_goaway_code() != http::h2::ErrorCode::kEnhanceYourCalm ||
      std::exchange(complained_, true)) {
    return;
  }
  Duration& apart = connection_.endpoint().pings.apart;
  apart = policy::longer_ping_pause(apart);
}

void H2Wire::arm() noexcept {
  if (used_ == 0) return connection_.arm(now() + pool_.draw_idle());
  const TimePoint ping = session_->ping_sent();
  TimePoint at =
      ping != TimePoint{} ? ping + kPongWithin : pings_.due_at(connection_.endpoint().pings);
  if (const TimePoint expiry = session_->next_expiry(); expiry != TimePoint{}) {
    at = std::min(at, expiry);
  }
  connection_.arm(std::max(std::min(at, drains_due_), now()));
}

void H2Wire::note_drain() noexcept {
  if (drains_due_ != TimePoint::max()) return;
  drains_due_ = now() + pool_.upstream().cancel_pace().drain_max;
  arm();
}

/// Within the pace of resets: those that are left have their turn later.
void H2Wire::end_old_drains(TimePoint at) noexcept {
  if (at < drains_due_) return;
  const Duration most = pool_.upstream().cancel_pace().drain_max;
  drains_due_ = TimePoint::max();
  for (std::uint32_t i = 0; i < fresh_; ++i) {
    H2Stream& stream = *stream_at(i);
    const TimePoint since = stream.draining_since();
    if (since == TimePoint{}) continue;
    if (at - since >= most && end_of_loser() == policy::LoserEnd::kReset) {
      stream.stop_draining();
    } else {
      drains_due_ = at + most;
    }
  }
}

void H2Wire::on_timer(TimePoint at) noexcept {
  busy_ = true;
  const TimePoint expiry = session_->next_expiry();
  if (expiry != TimePoint{} && expiry <= at) session_->expire(at);
  const TimePoint ping_sent = session_->ping_sent();
  if (used_ > 0 && ping_sent != TimePoint{} && at - ping_sent >= kPongWithin) lost_ = true;
  if (used_ > 0 && at >= pings_.due_at(connection_.endpoint().pings)) ping();
  end_old_drains(at);
  if (used_ == 0) {
    busy_ = false;
    return shut_down();
  }
  if (!lost_) arm();
  after_session();
}

}  // namespace weir::inline v0::upstream
