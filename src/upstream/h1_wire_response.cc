#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/assert.h"

#include "client_connection.h"
#include "h1_wire.h"

// The response: heads, body, trailers, and the end of the stream.

namespace weir::inline v0::upstream {

H1Wire::H1Wire(ClientConnection& connection, const http::HttpLimits& limits) noexcept
    : connection_(connection), limits_(&limits), parser_(limits) {}

H1Wire::~H1Wire() {
  WEIR_ASSERT(events_ == nullptr && region_ == nullptr);
}

void H1Wire::drop_region() noexcept {
  if (region_ == nullptr) return;
  connection_.release_region(region_);
  region_ = nullptr;
  begin_ = end_ = 0;
}

void H1Wire::on_readable() noexcept {
  if (state_ == State::kIdle) return connection_.close_idle();  // stray bytes, or the end
  if (paused_) return;  // paused again before the turn that resume() asked for
  // Bytes may be left in the region when a stream was cancelled.
  const bool continues = state_ != State::kDiscarding || process();
  if (continues) read();
  if (region_ != nullptr && begin_ == end_ && held_.empty()) drop_region();
}

void H1Wire::read() noexcept {
  for (int turn = 0; turn < 16; ++turn) {
    if (region_ == nullptr) region_ = connection_.acquire_region();
    if (region_ == nullptr) return fail(UpstreamFailure::kNoBuffer);
    const auto size = static_cast<std::uint32_t>(connection_.region_bytes());
    if (begin_ > 0 && held_.empty()) {
      std::memmove(region_, region_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == size) return fail(UpstreamFailure::kBadResponse);  // the head exceeds a region
    const std::span<char> room(region_ + end_, size - end_);
    const io::IoResult got = connection_.transport().read(std::as_writable_bytes(room));
    if (!got) {
      if (got.error() != io::IoError::kAgain) on_end(got.error() != io::IoError::kEof);
      return;
    }
    heard_some_ = true;
    progress_at_ = connection_.now();
    connection_.heard();
    const bool filled = *got == room.size();
    end_ += static_cast<std::uint32_t>(*got);
    if (!process()) return;
    if (!filled && !connection_.transport().has_pending()) return;
  }
  connection_.read_again();  // other connections have their turn first
}

// Processes the bytes that were read. False: stop reading (paused, or the stream has ended).
bool H1Wire::process() noexcept {
  const std::uint32_t generation = generation_;
  while (state_ != State::kIdle && !paused_) {
    const bool more = state_ == State::kHead ? process_head() : process_body();
    if (!more) break;
  }
  return generation == generation_ && state_ != State::kIdle && !paused_ && !connection_.closing();
}

bool H1Wire::process_head() noexcept {
  if (begin_ == end_) return false;
  http::h1::ResponseHead head;
  const http::h1::ResponseParser before = parser_;  // a head that is not accepted is parsed again
  const http::h1::HeadResult result =
      parser_.parse_head(unread(), connection_.field_storage(), head);
  if (result.status == http::h1::ParseStatus::kNeedMore) return false;
  if (result.status == http::h1::ParseStatus::kError) {
    fail(UpstreamFailure::kBadResponse);
    return false;
  }
  const std::uint32_t generation = generation_;
  const bool tunnel = head.tunnel;
  if (!head.informational) {
    begin_body(head);
    state_ = State::kBody;
    head_bytes_ = static_cast<std::uint32_t>(result.consumed);
  }
  const bool taken = deliver_head({.headers = head.headers,
                                   .body = head.body,
                                   .status = head.status,
                                   .http10 = head.version == http::h1::Version::k10,
                                   .informational = head.informational,
                                   .tunnel = tunnel,
                                   .protocol = WireProtocol::kHttp1});
  if (generation_ != generation || state_ == State::kIdle) return false;  // cancelled meanwhile
  if (!taken) {
    parser_ = before;
    state_ = State::kHead;
    hold();
    return false;
  }
  head_bytes_ = 0;
  begin_ += static_cast<std::uint32_t>(result.consumed);
  if (head.informational) return true;
  if (head.body.kind == http::h1::BodyKind::kNone && !tunnel) {
    finish();
    return false;
  }
  return true;
}

void H1Wire::begin_body(const http::h1::ResponseHead& head) noexcept {
  keep_alive_ = head.keep_alive;
  tunnel_ = head.tunnel;
  rest_known_ =
      head.body.kind == http::h1::BodyKind::kLength || head.body.kind == http::h1::BodyKind::kNone;
  const http::h1::BodyFraming framing =
      head.tunnel ? http::h1::BodyFraming{.kind = http::h1::BodyKind::kUntilClose} : head.body;
  decoder_ = http::h1::BodyDecoder(framing, *limits_);
}

bool H1Wire::deliver_head(const ResponseHead& head) noexcept {
  return events_ == nullptr || events_->on_stream_head(head);
}

bool H1Wire::process_body() noexcept {
  const http::h1::BodyDecoder before = decoder_;  // trailers that are not accepted are parsed again
  const http::h1::BodyStep step = decoder_.next(unread(), connection_.field_storage());
  const std::uint32_t generation = generation_;
  switch (step.event) {
    case http::h1::BodyEvent::kNeedMore:
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return false;
    case http::h1::BodyEvent::kError:
      fail(UpstreamFailure::kBadResponse);
      return false;
    case http::h1::BodyEvent::kTrailers: {
      const bool taken = events_ == nullptr || events_->on_stream_trailers(decoder_.trailers());
      if (generation_ != generation || state_ == State::kIdle) return false;
      if (!taken && !events_->keep_trailers(decoder_.trailers())) {
        decoder_ = before;
        hold();
        return false;
      }
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return true;
    }
    case http::h1::BodyEvent::kData:
      begin_ += static_cast<std::uint32_t>(step.consumed);
      return deliver(step.chunk.text(), step.chunk.last());
  }
  return false;
}

// Passes a piece on. The part that is not accepted stays in the region until resume().
bool H1Wire::deliver(std::string_view bytes, bool last) noexcept {
  if (events_ == nullptr) connection_.note_discarded(bytes.size());
  if (!bytes.empty() && events_ != nullptr) {
    const std::uint32_t generation = generation_;
    std::size_t taken = events_->on_stream_body(bytes);
    if (generation_ != generation || state_ == State::kIdle) return false;
    if (events_ != nullptr && taken < bytes.size()) {
      taken += events_->keep_body(bytes.substr(taken));
    }
    if (events_ != nullptr && taken < bytes.size()) {
      held_ = bytes.substr(taken);
      held_last_ = last;
      hold();
      return false;
    }
  }
  if (!last) return true;
  finish();
  return false;
}

void H1Wire::hold() noexcept {
  paused_ = true;
  connection_.update_watch();
}

void H1Wire::resume() noexcept {
  if (!paused_) return;
  paused_ = false;
  progress_at_ = connection_.now();
  const std::string_view held = std::exchange(held_, {});
  if (!held.empty() && !deliver(held, std::exchange(held_last_, false))) return;
  if (!process()) return;
  if (begin_ == end_) drop_region();
  connection_.read_again();
}

// The response is complete. The connection is free before the last event, so that the owner may
// start its next request on it.
void H1Wire::finish() noexcept {
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  const bool reusable =
      keep_alive_ && request_sent() && begin_ == end_ && !tunnel_ && !write_broken_;
  state_ = State::kIdle;
  head_ = nullptr;
  ++generation_;
  drop_region();
  connection_.on_stream_over(reusable);
  if (events != nullptr) events->on_stream_complete();
}

void H1Wire::fail(UpstreamFailure failure) noexcept {
  const StreamFailure told{.failure = failure,
                           .processed = heard_some_   ? policy::Processed::kYes
                                        : wrote_some_ ? policy::Processed::kMaybe
                                                      : policy::Processed::kNo,
                           .written = wrote_some_,
                           .reused = requests_ > 1};
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  state_ = State::kIdle;
  head_ = nullptr;
  ++generation_;
  drop_region();
  connection_.on_stream_over(false);
  if (events != nullptr) events->on_stream_failed(told);
}

// The endpoint ended its side, or the connection failed.
void H1Wire::on_end(bool reset) noexcept {
  if (state_ == State::kHead) {
    return fail(heard_some_ ? UpstreamFailure::kTruncated : UpstreamFailure::kClosedEarly);
  }
  const http::h1::BodyStep step = decoder_.finish();
  if (step.event != http::h1::BodyEvent::kData || (reset && !tunnel_)) {
    return fail(UpstreamFailure::kTruncated);
  }
  keep_alive_ = false;
  finish();
}

/// Of the response; nullopt: not known, or too late to keep the connection.
std::optional<std::uint64_t> H1Wire::bytes_left() const noexcept {
  const bool has_head = state_ == State::kBody || (state_ == State::kHead && head_bytes_ > 0);
  if (!has_head || !rest_known_ || !request_sent() || !keep_alive_ || tunnel_) return std::nullopt;
  return decoder_.remaining();
}

void H1Wire::cancel() noexcept {
  const std::optional<std::uint64_t> left = bytes_left();
  stop(left && *left <= kDiscardMax);
}

policy::LoserEnd H1Wire::lose() noexcept {
  constexpr policy::CancelPaceRules kRules;
  policy::CancelPace unused;
  const policy::LoserEnd end = policy::end_of_loser(
      {.multiplexed = false, .bytes_left = bytes_left()}, unused, kRules, connection_.now());
  stop(end == policy::LoserEnd::kDrain);
  return end;
}

void H1Wire::stop(bool drain) noexcept {
  if (events_ == nullptr) return;
  events_ = nullptr;
  ++generation_;
  const std::uint32_t head_bytes = std::exchange(head_bytes_, 0);
  if (drain) {
    begin_ += head_bytes;
    held_ = {};
    paused_ = false;
    if (decoder_.remaining() == 0) return finish();  // all of it is here
    state_ = State::kDiscarding;
    head_ = nullptr;
    connection_.discard_rest();
    return;
  }
  state_ = State::kIdle;
  head_ = nullptr;
  drop_region();
  connection_.abandon();
}

}  // namespace weir::inline v0::upstream
