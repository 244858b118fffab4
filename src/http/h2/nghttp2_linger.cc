#include "http/h2/nghttp2_session.h"

namespace weir::inline v0::http::h2 {
/// The rest of a request may arrive for one to two times this long after its response.
constexpr Duration kLinger = std::chrono::milliseconds(250);

/// The response is complete, but the request is not: the rest of it is not needed (RFC 9113 §8.1),
/// and the owner is notified of the end. Most of the rest has usually been sent already, so the
/// stream stays open for a short time and its frames are checked as usual; after an immediate
/// reset, valid and invalid frames alike would count as late. The stream is reset when the rest has
/// used half of the window, or when the time is over.
void Nghttp2Session::linger(Stream& stream) {
  stream.lingers = true;
  stream.discarding = true;
  if (stream.held) add_end(stream);
  if (linger_until_ == TimePoint{}) linger_until_ = now_ + kLinger;
  cut_off_if_large(stream);
}

/// The request is complete: recorded before the library closes the stream.
void Nghttp2Session::end_lingering(StreamId id) noexcept {
  Stream* stream = guard_.streams().find(id);
  if (stream != nullptr && stream->lingers) stream->peer_ended = true;
}

void Nghttp2Session::cut_off_if_large(Stream& stream) {
  if (stream.window < limits_->stream_window_bytes / 2) reset_stream(stream, ErrorCode::kNoError);
}

void Nghttp2Session::cut_off_lingering(TimePoint now) {
  bool any = false;
  guard_.streams().for_each([&](Stream& stream) {
    if (!stream.lingers || !stream.open || stream.reset_by_us) return;
    if (stream.lingers_on) return reset_stream(stream, ErrorCode::kNoError);
    stream.lingers_on = true;
    any = true;
  });
  linger_until_ = any ? now + kLinger : TimePoint{};
}

}  // namespace weir::inline v0::http::h2
