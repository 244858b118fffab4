#include <algorithm>
#include <utility>

#include "http/h2/nghttp2_codec.h"

/// What the codec tells its owner after the library has returned, and how a session ends.

namespace weir::inline v0::http::h2 {

void Nghttp2Codec::tell() {
  telling_ = true;
  if (seen_.stream != 0) {
    if (Stream* stream = guard_.streams().find(seen_.stream); stream != nullptr) {
      if (seen_.block) {
        tell_block(*stream);
      } else if (seen_.data_bytes > 0 || seen_.body_end) {
        tell_body(*stream);
      }
    }
    if (seen_.block) block_.clear();
  }
  if (seen_.windows) stream_events_->on_windows_opened();
  tell_connection();
  telling_ = false;
  tell_ends();
}

void Nghttp2Codec::tell_trailers(Stream& stream) {
  HeaderList trailers;
  stream.peer_ended = true;
  const BlockFault fault = block_.finish_trailers(trailers);
  if (fault != BlockFault::kNone) return refuse_block(stream, fault);
  if (stream.content_length != Stream::kNoLength && stream.received != stream.content_length)
    return blame(stream, H2Glitch::kContentLengthMismatch, ErrorCode::kProtocolError);
  if (!listens(stream)) return;
  const StreamId id = stream.id;
  stream.delivered = true;
  stream_events_->on_trailers(id, stream.user, trailers);
  if (Stream* still = guard_.streams().find(id); still != nullptr && !still->reset_by_us) {
    stream_events_->on_body(id, still->user,
                            {.data = nullptr, .len = 0, .status = BodyStatus::kComplete});
  }
}

bool Nghttp2Codec::take_body(Stream& stream) {
  // The bytes leave the session here, even if they are discarded: return the connection's window.
  if (seen_.data_bytes > 0)
    check_library(nghttp2_session_consume_connection(library_, seen_.data_bytes));
  stream.received += seen_.data_bytes;
  if (seen_.body_end) stream.peer_ended = true;
  return end_ == SessionEnd::kNone;
}

void Nghttp2Codec::deliver_body(Stream& stream) {
  if (!listens(stream)) return;
  if (seen_.body_end) stream.delivered = true;
  stream_events_->on_body(
      stream.id, stream.user,
      {.data = seen_.data,
       .len = seen_.data_bytes,
       .status = seen_.body_end ? BodyStatus::kComplete : BodyStatus::kContinue});
}

void Nghttp2Codec::tell_ends() {
  if (std::exchange(telling_, true)) return;  // the running call reports all
  owes_ends_ = false;
  while (ends_ != StreamTable::kNone) {
    Stream& stream = guard_.streams().at(ends_);
    ends_ = std::exchange(stream.next_told, StreamTable::kNone);
    const StreamId id = stream.id;
    stream.told = true;
    if (stream.user != nullptr) tell_end(id, stream);
    Stream* still = guard_.streams().find(id);
    if (still != nullptr && !still->held && !still->open) guard_.streams().close(*still);
  }
  telling_ = false;
}

void Nghttp2Codec::add_end(Stream& stream) noexcept {
  stream.next_told = ends_;
  ends_ = guard_.streams().index_of(stream);
}

// ---- The end -----------------------------------------------------------------------------------

void Nghttp2Codec::end_session(SessionEnd end, ErrorCode code) {
  if (end_ != SessionEnd::kNone) return;
  end_ = end;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(library_);
  last_words_ = goaway_frame(static_cast<StreamId>(std::max(last, 0)), code);
  last_words_left_ = last_words_;
}

void Nghttp2Codec::check_library(long result) {
  if (end_ != SessionEnd::kNone) return;
  if (result == NGHTTP2_ERR_NOMEM)
    return end_session(SessionEnd::kMemory, ErrorCode::kEnhanceYourCalm);
  if (result < 0 && nghttp2_is_fatal(static_cast<int>(result)) != 0)
    return end_session(SessionEnd::kInternal, ErrorCode::kInternalError);
}

/// The library itself detected a connection error.
void Nghttp2Codec::on_library_error(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFlowControlError:
      return end_session(SessionEnd::kFlowControl, code);
    case ErrorCode::kFrameSizeError:
      return end_session(SessionEnd::kFrameSize, code);
    case ErrorCode::kStreamClosed:
      return end_session(SessionEnd::kStreamClosed, code);
    case ErrorCode::kCompressionError:
      return end_session(SessionEnd::kCompression, code);
    case ErrorCode::kInternalError:
      return end_session(SessionEnd::kInternal, code);
    default:
      return end_session(SessionEnd::kProtocolError, ErrorCode::kProtocolError);
  }
}

void Nghttp2Codec::say_goaway(ErrorCode code) {
  if (std::exchange(goaway_said_, true)) return;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(library_);
  guard_.on_goaway_sent(static_cast<StreamId>(std::max(last, 0)));
  check_library(nghttp2_submit_goaway(library_, NGHTTP2_FLAG_NONE, last,
                                      static_cast<std::uint32_t>(code), nullptr, 0));
}

void Nghttp2Codec::shut_down() {
  if (end_ == SessionEnd::kNone) say_goaway(ErrorCode::kNoError);
}

bool Nghttp2Codec::finished() const noexcept {
  return end_ != SessionEnd::kNone && !has_output();
}

TimePoint Nghttp2Codec::next_expiry() const noexcept {
  if (end_ != SessionEnd::kNone) return {};
  TimePoint next{};
  if (!settings_acked_) next = settings_sent_ + limits_->settings_ack_timeout;
  if (guard_.in_header_block() || block_.under_way()) {
    const TimePoint block = block_began_ + limits_->header_block_timeout;
    next = next == TimePoint{} ? block : std::min(next, block);
  }
  return next;
}

void Nghttp2Codec::expire(TimePoint now) {
  now_ = now;
  if (end_ != SessionEnd::kNone) return;
  if (!settings_acked_ && now >= settings_sent_ + limits_->settings_ack_timeout)
    return end_session(SessionEnd::kSettingsTimeout, ErrorCode::kSettingsTimeout);
  const bool in_block = guard_.in_header_block() || block_.under_way();
  if (in_block && now >= block_began_ + limits_->header_block_timeout)
    end_session(SessionEnd::kHeaderTimeout, ErrorCode::kEnhanceYourCalm);
}

SessionStats Nghttp2Codec::stats(TimePoint now) const noexcept {
  return {.memory_used = heap_.used_bytes(),
          .memory_peak = heap_.peak_bytes(),
          .memory_touched = heap_.touched_bytes(),
          .outbound_frames = queued_frames(),
          .outbound_frames_peak = outbound_peak_,
          .streams = guard_.streams().size(),
          .glitch_score = guard_.score().score(now)};
}

}  // namespace weir::inline v0::http::h2
