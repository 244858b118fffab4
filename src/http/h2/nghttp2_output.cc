#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "h2/nghttp2_callbacks.h"

namespace weir::inline v0::http::h2 {
namespace {

constexpr std::size_t kFieldsMax = 160;

bool may_be_sent(const Field& field) noexcept {
  if (!is_valid_field_name(field.name) || !is_valid_field_value(field.value)) return false;
  switch (field_id(field.name)) {
    case FieldId::kConnection:
    case FieldId::kKeepAlive:
    case FieldId::kProxyConnection:
    case FieldId::kTransferEncoding:
    case FieldId::kUpgrade:
      return false;
    default:
      return true;
  }
}

/// Values that an attacker could guess from the size of a compressed block: kept out of the table.
bool is_secret(std::string_view name) noexcept {
  const FieldId id = field_id(name);
  return id == FieldId::kSetCookie || id == FieldId::kAuthorization ||
         id == FieldId::kProxyAuthorization;
}

nghttp2_nv to_nv(std::string_view name, std::string_view value) noexcept {
  // The library's type is non-const, but it copies names (in lower case) and values.
  return {.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = static_cast<std::uint8_t>(is_secret(name) ? NGHTTP2_NV_FLAG_NO_INDEX
                                                             : NGHTTP2_NV_FLAG_NONE)};
}

/// Appends the fields; false if one may not be sent, or if there are too many.
bool append(std::array<nghttp2_nv, kFieldsMax>& to, std::size_t& size,
            std::span<const Field> fields) noexcept {
  for (const Field& field : fields) {
    if (size == to.size() || !may_be_sent(field)) return false;
    to[size++] = to_nv(field.name, field.value);
  }
  return true;
}

}  // namespace

bool Nghttp2Session::has_output() const noexcept {
  if (!pulled_.empty() || !last_words_left_.empty()) return true;
  return library_speaks() && nghttp2_session_get_outbound_queue_size(library_) > 0;
}

/// Gets the library's next frame. May process write_data()'s frame instead.
bool Nghttp2Session::pull() {
  if (!pulled_.empty()) return true;
  const std::uint8_t* bytes = nullptr;
  const ssize_t n = nghttp2_session_mem_send(library_, &bytes);
  if (n <= 0) {
    if (n < 0) check_library(n);
    return false;
  }
  pulled_ = {bytes, static_cast<std::size_t>(n)};
  if (!std::exchange(settings_said_, true)) pulled_ = settings_;
  return true;
}

std::size_t Nghttp2Session::produce(std::span<std::byte> out, TimePoint now) {
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

std::uint32_t Nghttp2Session::sendable(StreamId id) const noexcept {
  if (end_ != SessionEnd::kNone || has_output()) return 0;
  const Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || !stream->final_head || stream->we_ended ||
      stream->reset_by_us || stream->trailers) {
    return 0;
  }
  return std::min(window(id), kFramePayloadMax);
}

std::uint32_t Nghttp2Session::window(StreamId id) const noexcept {
  const std::int32_t window =
      std::min(stream_window(id), nghttp2_session_get_remote_window_size(library_));
  return window <= 0 ? 0 : static_cast<std::uint32_t>(window);
}

std::int32_t Nghttp2Session::stream_window(StreamId id) const noexcept {
  return nghttp2_session_get_stream_remote_window_size(library_, static_cast<std::int32_t>(id));
}

bool Nghttp2Session::write_data(StreamId id, const DataFrame& frame, TimePoint now) {
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

SubmitStatus Nghttp2Session::submit(Stream& stream, std::uint16_t status,
                                    std::span<const Field> fields, bool end) {
  std::array<nghttp2_nv, kFieldsMax> nv;
  std::array<char, 3> digits{};
  if (status < 100 || status > 999) return SubmitStatus::kBadField;
  std::to_chars(digits.data(), digits.data() + digits.size(), status);
  nv[0] = to_nv(":status", {digits.data(), digits.size()});
  std::size_t size = 1;
  if (!append(nv, size, fields)) return SubmitStatus::kBadField;
  const auto id = static_cast<std::int32_t>(stream.id);
  const bool informational = status < 200;
  if (informational && end) return SubmitStatus::kBadField;
  long result = 0;
  if (informational) {
    result =
        nghttp2_submit_headers(library_, NGHTTP2_FLAG_NONE, id, nullptr, nv.data(), size, nullptr);
  } else {
    nghttp2_data_provider provider{};
    provider.read_callback = Callbacks::on_read;
    result = nghttp2_submit_response(library_, id, nv.data(), size, end ? nullptr : &provider);
  }
  check_library(result);
  if (end_ != SessionEnd::kNone) return SubmitStatus::kNoMemory;
  if (result != 0) return SubmitStatus::kClosed;
  stream.answering = true;
  stream.final_head = stream.final_head || !informational;
  return SubmitStatus::kOk;
}

/// The queue is full, or the fields would take memory that input may need: send frames first.
bool Nghttp2Session::must_wait(std::span<const Field> fields) const noexcept {
  if (!has_output()) return false;
  if (nghttp2_session_get_outbound_queue_size(library_) >= limits_->outbound_frames_max)
    return true;
  std::size_t bytes = 1024;
  for (const Field& field : fields) bytes += field.name.size() + field.value.size() + 64;
  return heap_.capacity_bytes() - heap_.used_bytes() < bytes + heap_.capacity_bytes() / 4;
}

SubmitStatus Nghttp2Session::submit_head(StreamId id, const ResponseStart& start) {
  if (end_ != SessionEnd::kNone) return SubmitStatus::kClosed;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || stream->final_head || stream->reset_by_us)
    return SubmitStatus::kClosed;
  if (must_wait(start.fields)) return SubmitStatus::kBlocked;
  return submit(*stream, start.status, start.fields, start.end);
}

SubmitStatus Nghttp2Session::submit_trailers(StreamId id, std::span<const Field> fields) {
  if (end_ != SessionEnd::kNone) return SubmitStatus::kClosed;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || !stream->final_head || stream->we_ended ||
      stream->trailers || stream->reset_by_us) {
    return SubmitStatus::kClosed;
  }
  if (must_wait(fields)) return SubmitStatus::kBlocked;
  std::array<nghttp2_nv, kFieldsMax> nv;
  std::size_t size = 0;
  if (!append(nv, size, fields)) return SubmitStatus::kBadField;
  const int result =
      nghttp2_submit_trailer(library_, static_cast<std::int32_t>(id), nv.data(), size);
  check_library(result);
  if (end_ != SessionEnd::kNone) return SubmitStatus::kNoMemory;
  if (result != 0) return SubmitStatus::kClosed;
  stream->trailers = true;
  return SubmitStatus::kOk;
}

/// Answers a request that is not passed to the owner.
void Nghttp2Session::answer(Stream& stream, std::uint16_t status) {
  const std::array<Field, 1> fields = {{{"content-length", "0"}}};
  static_cast<void>(submit(stream, status, fields, true));
}

void Nghttp2Session::blame(Stream& stream, H2Glitch glitch, ErrorCode code) {
  guard_.glitch(glitch, now_);
  reset_stream(stream, code);
}

void Nghttp2Session::reset_stream(Stream& stream, ErrorCode code) {
  if (!stream.open || stream.reset_by_us) return;
  stream.reset_by_us = true;
  stream.discarding = true;
  stream.end_code = static_cast<std::uint32_t>(code);
  check_library(nghttp2_submit_rst_stream(library_, NGHTTP2_FLAG_NONE,
                                          static_cast<std::int32_t>(stream.id),
                                          static_cast<std::uint32_t>(code)));
}

void Nghttp2Session::reset(StreamId id, ErrorCode code) {
  if (end_ != SessionEnd::kNone) return;
  if (Stream* stream = guard_.streams().find(id); stream != nullptr) reset_stream(*stream, code);
}

void Nghttp2Session::release(StreamId id) {
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr) return;
  stream->held = false;
  stream->user = nullptr;
  stream->discarding = true;
  // Open: freed when it closes. Closed but end not reported: freed by tell_ends().
  if (!stream->open && stream->told) guard_.streams().close(*stream);
}

void Nghttp2Session::grant(StreamId id, std::uint64_t bytes) {
  if (end_ != SessionEnd::kNone) return;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr) return;
  stream->granted += bytes;
  if (!stream->open || stream->peer_ended || stream->discarding) return;
  if (stream->granted <= stream->announced) return;
  if (stream->content_length != Stream::kNoLength && stream->announced >= stream->content_length)
    return;  // the whole body is already announced
  // Not for every few bytes: only when the peer has used half of the announced window.
  const std::uint64_t left = stream->announced - std::min(stream->announced, stream->received);
  if (left > limits_->stream_window_bytes / 2) return;
  const auto more = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stream->granted - stream->announced, kStreamIdMax));
  stream->announced += more;
  check_library(nghttp2_submit_window_update(
      library_, NGHTTP2_FLAG_NONE, static_cast<std::int32_t>(id), static_cast<std::int32_t>(more)));
}

}  // namespace weir::inline v0::http::h2
