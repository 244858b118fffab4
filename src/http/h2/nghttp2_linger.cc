#include "http/h2/nghttp2_session.h"

namespace weir::inline v0::http::h2 {
namespace {

/// How long the rest of a request may come after its answer: once to twice that.
constexpr Duration kLinger = std::chrono::milliseconds(250);

}  // namespace

/// All was said, but the request is not whole: what still comes is of no use (RFC 9113 §8.1), and
/// its owner is done with it. Mostly it is under way already, so the stream stays open for a moment
/// and its frames are judged like any others; a reset at once would make all of them late, the good
/// and the bad. A large rest is cut off when it has used up half of its window, one that does not
/// come when its time is up.
void Nghttp2Session::linger(Stream& stream) {
  stream.lingers = true;
  stream.discarding = true;
  if (stream.held) add_end(stream);
  if (linger_until_ == TimePoint{}) linger_until_ = now_ + kLinger;
  cut_off_if_large(stream);
}

/// The rest has come: noted before the library closes the stream.
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
