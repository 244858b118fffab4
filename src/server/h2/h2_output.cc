#include <algorithm>
#include <cstring>
#include <utility>

#include "connection.h"
#include "h2/h2_session.h"
#include "shard.h"

// What an HTTP/2 session appends to its connection's output, and in which order.

namespace weir::inline v0::inline server {
constexpr std::size_t kFrameRoom = 64;         // with less room, a new buffer is taken
constexpr std::size_t kPayloadWorthIt = 1024;  // with less room, a new buffer is taken
constexpr std::size_t kDataRoom = http::h2::kFrameHeaderBytes + kPayloadWorthIt;

bool H2Session::put_frames(TimePoint now) {
  Outbox& output = connection_.output();
  blocked_on_output_ = false;
  while (wire_->has_output()) {
    const std::span<char> space = output.contiguous(kFrameRoom, access());
    if (space.empty()) {
      if (put_frames_into_spare(now)) continue;
      blocked_on_output_ = true;
      if (output.blocked()) shard_.on_exhausted();
      return false;
    }
    const std::size_t size = wire_->produce(std::as_writable_bytes(space), now);
    output.commit(size);
    put_ += size;
  }
  return true;
}

/// Without a write buffer, acknowledgements and short answers are sent from spare memory.
bool H2Session::put_frames_into_spare(TimePoint now) {
  Outbox& output = connection_.output();
  if (spare_used_ || !output.views_fit(1)) return false;
  const std::span<std::byte> space = spare();
  const std::size_t size = wire_->produce(space, now);
  if (size == 0) return false;
  spare_used_ = true;
  put_ += size;
  return output.append_view({reinterpret_cast<const char*>(space.data()), size});
}

H2Session::Put H2Session::put_data(const H2Stream& stream, std::string_view bytes, bool end,
                                   TimePoint now) {
  Outbox& output = connection_.output();
  Put put;
  do {
    put.stop = PutStop::kRoom;
    if (!put_frames(now)) return put;
    const std::size_t left = bytes.size() - put.bytes;
    const std::uint32_t window = wire_->sendable(stream.wire_id());
    put.stop = PutStop::kWindow;
    if (window == 0) return put;
    const std::size_t wish = http::h2::kFrameHeaderBytes + std::min(left, kPayloadWorthIt);
    const std::span<char> space = output.contiguous(wish, stream.access_);
    put.stop = PutStop::kRoom;
    if (space.empty()) {
      if (output.blocked()) shard_.on_exhausted();
      return put;
    }
    const std::size_t size =
        std::min({left, std::size_t{window}, space.size() - http::h2::kFrameHeaderBytes});
    // The header is directly in front of its payload: both are one piece of output.
    if (size > 0) {
      std::memcpy(space.data() + http::h2::kFrameHeaderBytes, bytes.data() + put.bytes, size);
    }
    const std::span<std::byte> header =
        std::as_writable_bytes(space).first(http::h2::kFrameHeaderBytes);
    const http::h2::DataFrame frame = {.header = header.first<http::h2::kFrameHeaderBytes>(),
                                       .payload_bytes = static_cast<std::uint32_t>(size),
                                       .end = end && size == left};
    put.stop = PutStop::kWindow;
    if (!wire_->write_data(stream.wire_id(), frame, now)) return put;  // the session has ended
    output.commit(http::h2::kFrameHeaderBytes + size);
    put_ += http::h2::kFrameHeaderBytes + size;
    put.bytes += size;
  } while (put.bytes < bytes.size());
  put.stop = PutStop::kAll;
  return put;
}

bool H2Session::reserve(const H2Stream& stream, std::size_t head_bytes, std::size_t body_bytes) {
  if (wire_->window(stream.wire_id()) < body_bytes || !put_frames(now())) return false;
  const std::size_t buffer = shard_.config().tcp_write_buffer_size;
  const std::size_t frames = body_bytes / http::h2::kFramePayloadMax + body_bytes / buffer + 3;
  const std::size_t lost = (body_bytes / buffer + 2) * kDataRoom;  // unused ends of buffers
  return connection_.output().reserve(
      head_bytes + body_bytes + frames * http::h2::kFrameHeaderBytes + lost, stream.access_);
}

bool H2Session::at_quota() const noexcept {
  return held_ + connection_.output().buffers() >= shard_.shared().write_quota;
}

WriteBuffer* H2Session::hold(io::Access access) {
  WriteBuffer* buffer = connection_.output().take_unused();  // it may have been blocked on these
  if (buffer == nullptr && at_quota()) return nullptr;
  if (buffer == nullptr) buffer = shard_.shared().writes.acquire(shard_.index(), access);
  if (buffer == nullptr) {
    shard_.on_exhausted();
  } else {
    ++held_;
  }
  return buffer;
}

void H2Session::unpark(WriteBuffer* buffer) noexcept {
  --held_;
  shard_.shared().writes.release(shard_.index(), buffer);
}

// ---- Turns -------------------------------------------------------------------------------------

void H2Session::wait_for_turn(H2Stream& stream) {
  if (stream.ring_ == H2Stream::Ring::kReady) return;
  leave_ring(stream);
  stream.ring_ = H2Stream::Ring::kReady;
  ready_.push_back(stream);
}

void H2Session::wait_for_window(H2Stream& stream) {
  if (stream.ring_ == H2Stream::Ring::kBlocked) return;
  leave_ring(stream);
  stream.ring_ = H2Stream::Ring::kBlocked;
  blocked_on_window_.push_back(stream);
  stream.watch_writing();
}

void H2Session::stop_waiting(H2Stream& stream) noexcept {
  stream.write_guard_.stop();
  leave_ring(stream);
}

void H2Session::leave_ring(H2Stream& stream) noexcept {
  const H2Stream::Ring ring = std::exchange(stream.ring_, H2Stream::Ring::kNone);
  if (ring != H2Stream::Ring::kNone) {
    (ring == H2Stream::Ring::kReady ? ready_ : blocked_on_window_).remove(stream);
  }
}

void H2Session::add_work(H2Stream& stream) {
  if (!stream.work_hook.linked()) work_.push_back(stream);
  touch();
}

/// Critical streams first: an ordinary one may be blocked on a buffer that they may take.
H2Stream* H2Session::next_ready() noexcept {
  if (critical_streams_ > 0) {
    for (H2Stream& stream : ready_) {
      if (stream.access_ == io::Access::kCritical) return &stream;
    }
  }
  return ready_.front();
}

/// One turn for each stream that is ready, as long as there is room.
bool H2Session::pump(TimePoint now) {
  if (!put_frames(now)) return false;
  if (std::exchange(windows_opened_, false)) {
    while (H2Stream* stream = blocked_on_window_.front()) wait_for_turn(*stream);
  }
  bool did = false;
  for (std::size_t left = ready_.size(); left > 0; --left) {
    H2Stream* stream = next_ready();
    if (stream == nullptr) break;
    const bool ordinary = stream->access_ != io::Access::kCritical;
    if (ordinary && connection_.output().blocked()) break;
    if (connection_.output().contiguous(kDataRoom, stream->access_).empty()) {
      if (connection_.output().blocked()) shard_.on_exhausted();
      break;
    }
    leave_ring(*stream);
    turn_ = stream;
    const H2Stream::Turn turn = stream->take_turn(now);
    turn_ = nullptr;
    did = did || turn != H2Stream::Turn::kBlocked;
    if (turn == H2Stream::Turn::kBlocked) {
      wait_for_window(*stream);
    } else if (turn != H2Stream::Turn::kOver) {
      wait_for_turn(*stream);
    }
    if (turn == H2Stream::Turn::kNoRoom) break;
    if (!stream->wants_turn()) stream->write_guard_.stop();
  }
  static_cast<void>(put_frames(now));
  return did;
}

bool H2Session::on_flushed(TimePoint now) {
  Outbox& output = connection_.output();
  const std::uint64_t before = put_;
  const std::uint64_t out = put_ - output.pending();
  while (H2Stream* stream = closing_.front()) {
    if (stream->end_mark == 0 || stream->end_mark > out) break;
    closing_.remove(*stream);
    stream->finish();
    forget(*stream);
  }
  if (output.empty()) {
    spare_used_ = false;
    if (std::exchange(had_output_, false) && !blocked_on_window_.empty()) windows_opened_ = true;
  }
  if (!drains_.empty() && output.pending() <= shard_.config().tcp_write_buffer_size) {
    for (std::size_t left = drains_.size(); left > 0; --left) {
      H2Stream* stream = drains_.front();
      if (stream == nullptr) break;
      drains_.remove(*stream);
      stream->tell_drained();
    }
  }
  if (put_ != before || (wire_->has_output() && !blocked_on_output_)) return true;
  if (wire_->ended() != http::h2::SessionEnd::kNone) {
    finish_session(now);
    return put_ != before;
  }
  const bool waiting = blocked_on_output_ || backlog_ || !ready_.empty() ||
                       (windows_opened_ && !blocked_on_window_.empty()) || !work_.empty() ||
                       !over_.empty();
  return waiting && !output.blocked() && !output.contiguous(kDataRoom, access()).empty();
}

}  // namespace weir::inline v0::inline server
