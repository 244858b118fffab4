#include <algorithm>
#include <array>
#include <utility>

#include "h2/nghttp2_callbacks.h"
#include "h2/nv_list.h"

namespace weir::inline v0::http::h2 {

bool Nghttp2Codec::has_output() const noexcept {
  if (!pulled_.empty() || !last_words_left_.empty() || owes_ends_) return true;
  return library_speaks() && queued_frames() > 0;
}

/// Gets the library's next frame. May process write_data()'s frame instead.
bool Nghttp2Codec::pull() {
  if (!pulled_.empty()) return true;
  const std::uint8_t* bytes = nullptr;
  const ssize_t n = nghttp2_session_mem_send(library_, &bytes);
  if (n <= 0) {
    if (n < 0) check_library(n);
    return false;
  }
  pulled_ = {bytes, static_cast<std::size_t>(n)};
  if (!first_frame_.empty()) pulled_ = std::exchange(first_frame_, {});
  return true;
}

std::size_t Nghttp2Codec::produce(std::span<std::byte> out, TimePoint now) {
  now_ = now;
  std::size_t filled = 0;
  const auto move = [&](std::span<const std::uint8_t>& from) {
    const std::size_t n = std::min(from.size(), out.size() - filled);
    std::copy_n(reinterpret_cast<const std::byte*>(from.data()), n, out.data() + filled);
    from = from.subspan(n);
    filled += n;
  };
  for (;;) {
    // The library records that a frame was sent only when it is asked for the next one: always ask.
    if (pulled_.empty() && library_speaks() && !pull() && library_speaks()) break;
    if (filled == out.size()) break;
    if (!pulled_.empty()) {
      move(pulled_);  // a frame that was begun is finished, even after the session has ended
    } else if (!last_words_left_.empty()) {
      move(last_words_left_);
    } else {
      break;
    }
  }
  finish_if_done();
  tell_ends();
  return filled;
}

std::uint32_t Nghttp2Codec::sendable(StreamId id) const noexcept {
  if (end_ != SessionEnd::kNone || has_output()) return 0;
  const Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || !stream->final_head || stream->we_ended ||
      stream->reset_by_us || stream->trailers) {
    return 0;
  }
  return std::min(window(id), kFramePayloadMax);
}

std::uint32_t Nghttp2Codec::window(StreamId id) const noexcept {
  const std::int32_t window =
      std::min(stream_window(id), nghttp2_session_get_remote_window_size(library_));
  return window <= 0 ? 0 : static_cast<std::uint32_t>(window);
}

std::int32_t Nghttp2Codec::stream_window(StreamId id) const noexcept {
  return nghttp2_session_get_stream_remote_window_size(library_, static_cast<std::int32_t>(id));
}

bool Nghttp2Codec::write_data(StreamId id, const DataFrame& frame, TimePoint now) {
  now_ = now;
  // An empty frame is useful only if it ends the stream; the library delays even that one while a
  // window is closed.
  const std::uint32_t room = sendable(id);
  if (room == 0 || frame.payload_bytes > room || (frame.payload_bytes == 0 && !frame.end))
    return false;
  Stream& stream = *guard_.streams().find(id);
  writing_ = &stream;
  writing_frame_ = &frame;
  written_ = false;
  if (stream.deferred) {
    stream.deferred = false;
    check_library(nghttp2_session_resume_data(library_, static_cast<std::int32_t>(id)));
  }
  if (end_ == SessionEnd::kNone) static_cast<void>(pull());
  writing_ = nullptr;
  writing_frame_ = nullptr;
  finish_if_done();
  tell_ends();
  return written_;
}

/// The queue is full, or the fields would take memory that input may need: send frames first.
bool Nghttp2Codec::must_wait(std::size_t bytes) const noexcept {
  if (!has_output()) return false;
  if (queued_frames() >= limits_->outbound_frames_max) return true;
  return heap_.capacity_bytes() - heap_.used_bytes() < 1024 + bytes + heap_.capacity_bytes() / 4;
}

SubmitStatus Nghttp2Codec::submit_trailers(StreamId id, std::span<const Field> fields) {
  if (end_ != SessionEnd::kNone) return SubmitStatus::kClosed;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || !stream->final_head || stream->we_ended ||
      stream->trailers || stream->reset_by_us) {
    return SubmitStatus::kClosed;
  }
  NvList list;
  const bool valid = list.append(fields);
  if (must_wait(list.bytes())) return SubmitStatus::kBlocked;
  if (!valid) return SubmitStatus::kBadField;
  const int result =
      nghttp2_submit_trailer(library_, static_cast<std::int32_t>(id), list.data(), list.size());
  check_library(result);
  if (end_ != SessionEnd::kNone) return SubmitStatus::kNoMemory;
  if (result != 0) return SubmitStatus::kClosed;
  stream->trailers = true;
  return SubmitStatus::kOk;
}

void Nghttp2Codec::blame(Stream& stream, H2Glitch glitch, ErrorCode code) {
  guard_.glitch(glitch, now_);
  if (stream.open) return reset_stream(stream, code);
  // The invalid frame itself has closed the stream; its end is not reported yet.
  stream.reset_by_us = true;
  stream.discarding = true;
  stream.end_code = static_cast<std::uint32_t>(code);
}

void Nghttp2Codec::reset_stream(Stream& stream, ErrorCode code) {
  if (!stream.open || stream.reset_by_us) return;
  stream.reset_by_us = true;
  stream.discarding = true;
  stream.end_code = static_cast<std::uint32_t>(code);
  check_library(nghttp2_submit_rst_stream(library_, NGHTTP2_FLAG_NONE,
                                          static_cast<std::int32_t>(stream.id),
                                          static_cast<std::uint32_t>(code)));
}

void Nghttp2Codec::reset(StreamId id, ErrorCode code) {
  if (end_ != SessionEnd::kNone) return;
  if (Stream* stream = guard_.streams().find(id); stream != nullptr) reset_stream(*stream, code);
}

void Nghttp2Codec::release(StreamId id) {
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr) return;
  stream->held = false;
  stream->user = nullptr;
  stream->discarding = true;
  // Open: freed when it closes. Closed but end not reported: freed by tell_ends().
  if (!stream->open && stream->told) guard_.streams().close(*stream);
}

void Nghttp2Codec::grant(StreamId id, std::uint64_t bytes) {
  if (end_ != SessionEnd::kNone) return;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr) return;
  stream->granted += bytes;
  if (!stream->open || stream->unsent || stream->peer_ended || stream->discarding) return;
  if (stream->granted <= stream->announced) return;
  if (stream->content_length != Stream::kNoLength && stream->announced >= stream->content_length)
    return;  // the whole body is already announced
  // Not for every few bytes: only when the peer has used half of what it may have. A body of
  // unknown length may be short: the window that it begins with may do.
  const std::uint64_t left = stream->announced - std::min(stream->announced, stream->received);
  const bool may_do = stream->received == 0 && stream->content_length == Stream::kNoLength;
  const std::uint64_t whole = may_do
                                  ? limits_->stream_window_bytes
                                  : stream->granted - std::min(stream->granted, stream->received);
  if (left > whole / 2) return;
  const auto more = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stream->granted - stream->announced, kStreamIdMax));
  stream->announced += more;
  check_library(nghttp2_submit_window_update(
      library_, NGHTTP2_FLAG_NONE, static_cast<std::int32_t>(id), static_cast<std::int32_t>(more)));
}

}  // namespace weir::inline v0::http::h2
