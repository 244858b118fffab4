#include "h2/nghttp2_callbacks.h"

#include <cstring>

namespace weir::inline v0::http::h2 {

int Nghttp2Codec::Callbacks::on_begin_headers(nghttp2_session* /*library*/,
                                              const nghttp2_frame* frame, void* user) {
  return of(user).begin_block(static_cast<StreamId>(frame->hd.stream_id));
}

int Nghttp2Codec::Callbacks::on_header(nghttp2_session* /*library*/, const nghttp2_frame* /*frame*/,
                                       nghttp2_rcbuf* name, nghttp2_rcbuf* value,
                                       std::uint8_t /*flags*/, void* user) {
  of(user).block_.add(name, value);
  return 0;
}

int Nghttp2Codec::Callbacks::on_data(nghttp2_session* /*library*/, std::uint8_t /*flags*/,
                                     std::int32_t id, const std::uint8_t* data, std::size_t bytes,
                                     void* user) {
  Seen& seen = of(user).seen_;
  seen.stream = static_cast<StreamId>(id);
  seen.data = data;
  seen.data_bytes = bytes;
  return 0;
}

int Nghttp2Codec::Callbacks::on_frame_recv(nghttp2_session* /*library*/, const nghttp2_frame* frame,
                                           void* user) {
  Nghttp2Codec& self = of(user);
  Seen& seen = self.seen_;
  const auto id = static_cast<StreamId>(frame->hd.stream_id);
  const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      seen.stream = id;
      seen.block = true;
      seen.block_end = end;
      break;
    case NGHTTP2_DATA:
      seen.stream = id;
      seen.body_end = end;
      break;
    case NGHTTP2_SETTINGS:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
        seen.windows = true;
      } else if (!self.settings_acked_) {
        self.settings_acked_ = true;
        self.guard_.on_settings_acked();
      }
      break;
    case NGHTTP2_WINDOW_UPDATE:
      seen.windows = true;
      break;
    case NGHTTP2_GOAWAY:
      self.peer_goaway_ = true;
      break;
    case NGHTTP2_RST_STREAM:
      if (Stream* stream = self.guard_.streams().find(id); stream != nullptr) {
        stream->reset_by_peer = true;
        stream->end_code = frame->rst_stream.error_code;
      }
      break;
    default:
      break;
  }
  self.on_received(*frame);
  return 0;
}

int Nghttp2Codec::Callbacks::on_invalid_frame(nghttp2_session* /*library*/,
                                              const nghttp2_frame* frame, int error, void* user) {
  Nghttp2Codec& self = of(user);
  const bool window = frame->hd.type == NGHTTP2_WINDOW_UPDATE && frame->hd.stream_id != 0;
  if (window) {
    self.guard_.glitch(H2Glitch::kWindowOverflow, self.now_);  // the library resets the stream
    return 0;
  }
  switch (error) {
    case NGHTTP2_ERR_FLOW_CONTROL:
      self.on_library_error(ErrorCode::kFlowControlError);
      break;
    case NGHTTP2_ERR_FRAME_SIZE_ERROR:
      self.on_library_error(ErrorCode::kFrameSizeError);
      break;
    case NGHTTP2_ERR_STREAM_CLOSED:
      self.on_library_error(ErrorCode::kStreamClosed);
      break;
    case NGHTTP2_ERR_HEADER_COMP:
      self.on_library_error(ErrorCode::kCompressionError);
      break;
    default:
      self.on_library_error(ErrorCode::kProtocolError);
      break;
  }
  return 0;
}

int Nghttp2Codec::Callbacks::on_frame_send(nghttp2_session* /*library*/, const nghttp2_frame* frame,
                                           void* user) {
  Nghttp2Codec& self = of(user);
  const auto id = static_cast<StreamId>(frame->hd.stream_id);
  if (frame->hd.type == NGHTTP2_WINDOW_UPDATE) {
    self.guard_.on_window_sent(
        id, static_cast<std::uint32_t>(frame->window_update.window_size_increment));
    return 0;
  }
  if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR &&
      !self.goaway_said_) {
    self.on_library_error(static_cast<ErrorCode>(frame->goaway.error_code));
    self.last_words_left_ = {};  // the library's GOAWAY replaces ours
  }
  if (frame->hd.type == NGHTTP2_DATA) self.guard_.on_data_sent();
  Stream* stream = self.guard_.streams().find(id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_RST_STREAM) {
    if (!stream->reset_by_us) stream->end_code = frame->rst_stream.error_code;
    stream->reset_by_us = true;
    return 0;
  }
  const bool carries_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
  if (carries_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) stream->we_ended = true;
  self.on_sent(*frame, *stream);
  return 0;
}

int Nghttp2Codec::Callbacks::on_stream_close(nghttp2_session* /*library*/, std::int32_t id,
                                             std::uint32_t code, void* user) {
  Nghttp2Codec& self = of(user);
  const auto stream_id = static_cast<StreamId>(id);
  Stream* stream = self.guard_.streams().find(stream_id);
  // Refused or withdrawn: its end is already recorded.
  if (stream == nullptr || !stream->open) return 0;
  self.on_closing(*stream, static_cast<ErrorCode>(code));
  ClosedHow how = ClosedHow::kResetByUs;
  if (stream->reset_by_peer && !stream->excluded) {
    how = ClosedHow::kResetByPeer;
  } else if (stream->peer_ended) {
    how = ClosedHow::kEnded;
  }
  stream->open = false;
  if (!stream->unsent) self.guard_.on_closed(stream_id, how);
  if (!stream->held) {
    self.guard_.streams().close(*stream);
  } else if (!stream->lingers) {  // otherwise the owner was notified when our side had ended
    self.add_end(*stream);
  }
  return 0;
}

/// The payload stays in the owner's buffer; the library gets only its size.
ssize_t Nghttp2Codec::read_body(nghttp2_session* /*library*/, std::int32_t id,
                                std::uint8_t* /*into*/, std::size_t bytes_max, std::uint32_t* flags,
                                nghttp2_data_source* /*source*/, void* user) {
  Nghttp2Codec& self = Callbacks::of(user);
  const auto stream_id = static_cast<StreamId>(id);
  if (self.writing_ != nullptr && self.writing_->id == stream_id && !self.written_ &&
      self.writing_frame_->payload_bytes <= bytes_max) {
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (self.writing_frame_->end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return self.writing_frame_->payload_bytes;
  }
  if (Stream* stream = self.guard_.streams().find(stream_id); stream != nullptr)
    stream->deferred = true;
  return NGHTTP2_ERR_DEFERRED;
}

int Nghttp2Codec::Callbacks::on_send_data(nghttp2_session* /*library*/, nghttp2_frame* /*frame*/,
                                          const std::uint8_t* header, std::size_t /*bytes*/,
                                          nghttp2_data_source* /*source*/, void* user) {
  Nghttp2Codec& self = of(user);
  std::memcpy(self.writing_frame_->header.data(), header, kFrameHeaderBytes);
  self.written_ = true;
  return NGHTTP2_ERR_PAUSE;  // sent; nothing else in this call
}

void Nghttp2Codec::set_callbacks(nghttp2_session_callbacks* c) noexcept {
  nghttp2_session_callbacks_set_on_begin_headers_callback(c, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback2(c, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(c, Callbacks::on_frame_recv);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, Callbacks::on_invalid_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(c, Callbacks::on_frame_send);
  nghttp2_session_callbacks_set_on_stream_close_callback(c, Callbacks::on_stream_close);
  nghttp2_session_callbacks_set_send_data_callback(c, Callbacks::on_send_data);
}

}  // namespace weir::inline v0::http::h2
