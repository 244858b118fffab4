#include "http/h2/frame_guard.h"

#include <algorithm>

namespace weir::inline v0::http::h2 {
namespace {

using Action = Judgement::Action;

constexpr Judgement kPass{};
constexpr Judgement kSkip{.action = Action::kSkip};

constexpr Judgement end(SessionEnd why, ErrorCode code) noexcept {
  return {.action = Action::kEnd, .end = why, .code = code};
}
constexpr Judgement kProtocol = end(SessionEnd::kProtocolError, ErrorCode::kProtocolError);
constexpr Judgement kFrameSize = end(SessionEnd::kFrameSize, ErrorCode::kFrameSizeError);
constexpr Judgement kClosed = end(SessionEnd::kStreamClosed, ErrorCode::kStreamClosed);

constexpr Judgement reset(StreamId id, ErrorCode code, Action action) noexcept {
  return {.action = action, .code = code, .reset = id};
}

/// The codec must decode the block, to keep its tables in sync, before the stream can be reset.
constexpr Judgement reset_at_opening(StreamId id, ErrorCode code) noexcept {
  return {.action = Action::kPass, .code = code, .reset = id, .opens = true};
}

/// A client that cancels a stream must expect what is left of its window, in frames of any size: a
/// server that streams small messages is not at fault. Each such frame is cheap.
constexpr std::uint32_t kLateFrameBytes = 64;
constexpr std::uint32_t kLateFramesMax = 1U << 20U;

}  // namespace

FrameGuard::FrameGuard(const H2Limits& limits, void* table_memory, Side side) noexcept
    : limits_(&limits),
      table_(table_memory, limits.concurrent_streams_max),
      score_(limits),
      priority_(limits.priority_budget),
      settings_(limits.settings_budget),
      ping_(limits.ping_budget),
      window_update_(limits.window_update_budget),
      unknown_(limits.unknown_budget),
      connection_window_(kDefaultWindow),
      side_(side) {
  // A server has our SETTINGS before our first request, so it never uses the protocol's default.
  if (side == Side::kClient) initial_window_ = limits.stream_window_bytes;
}

std::uint32_t FrameGuard::prefix_bytes(const FrameHeader& h) noexcept {
  std::uint32_t bytes = 0;
  if (h.is(FrameType::kData) || h.is(FrameType::kHeaders)) {
    bytes = h.has(flag::kPadded) ? 1 : 0;
    if (h.is(FrameType::kHeaders) && h.has(flag::kPriority)) bytes += 5;
  } else if (h.is(FrameType::kPriority)) {
    bytes = 5;
  } else if (h.is(FrameType::kWindowUpdate)) {
    bytes = 4;
  }
  return std::min(bytes, h.length);
}

void FrameGuard::on_data_sent() noexcept {
  ping_.on_frame_sent();
  window_update_.on_frame_sent();
}

void FrameGuard::on_window_sent(StreamId id, std::uint32_t bytes) noexcept {
  if (id == 0) {
    connection_window_ += bytes;
  } else if (Stream* stream = table_.find(id); stream != nullptr) {
    stream->window += bytes;
  }
}

void FrameGuard::on_settings_acked() noexcept {
  const std::int64_t change = std::int64_t{limits_->stream_window_bytes} - initial_window_;
  initial_window_ += change;
  table_.for_each([&](Stream& stream) { stream.window += change; });
}

void FrameGuard::on_closed(StreamId id, ClosedHow how) noexcept {
  closed_.on_closed(id, how);
  if (how != ClosedHow::kResetByUs) return;
  std::uint32_t more = limits_->late_frames_per_reset;
  if (const Stream* stream = side_ == Side::kClient ? table_.find(id) : nullptr)
    more += static_cast<std::uint32_t>(std::max<std::int64_t>(stream->window, 0)) / kLateFrameBytes;
  late_frames_ = std::min(late_frames_ + more, kLateFramesMax);
}

Stream* FrameGuard::open_own(StreamId id) noexcept {
  Stream* stream = table_.open(id);
  if (stream == nullptr) return nullptr;
  stream->open = true;
  stream->announced = stream->granted = limits_->stream_window_bytes;
  stream->window = initial_window_;
  return stream;
}

void FrameGuard::on_own_sent(StreamId id) noexcept {
  last_stream_ = id;
  closed_.on_opened(id);
  earn_by_stream();
}

void FrameGuard::earn_by_stream() noexcept {
  priority_.on_stream();
  settings_.on_stream();
  window_update_.on_stream();
  unknown_.on_stream();
}

Stream* FrameGuard::find_open(StreamId id) const noexcept {
  Stream* stream = table_.find(id);
  return stream != nullptr && stream->open ? stream : nullptr;
}

/// A frame sent before the peer knew that its stream had ended is not an error; a few are free.
void FrameGuard::late_frame(TimePoint now) noexcept {
  if (late_frames_ > 0) {
    --late_frames_;
  } else {
    glitch(H2Glitch::kClosedStreamFrame, now);
  }
}

Judgement FrameGuard::judge(const FrameHeader& h, Prefix prefix, TimePoint now) noexcept {
  if (h.length > kFramePayloadMax) return kFrameSize;
  if (!got_settings_ && (!h.is(FrameType::kSettings) || h.has(flag::kAck))) return kProtocol;
  const bool continues = h.is(FrameType::kContinuation) && h.stream == block_stream_;
  if (block_stream_ != 0 && !continues) return kProtocol;
  if (h.type >= kKnownFrameTypes) {
    if (!unknown_.take(now)) glitch(H2Glitch::kUnknownFrame, now);
    return kSkip;
  }
  switch (static_cast<FrameType>(h.type)) {
    case FrameType::kData:
      return judge_data(h, prefix, now);
    case FrameType::kHeaders:
      return judge_headers(h, prefix, now);
    case FrameType::kPriority:
      return judge_priority(h, prefix, now);
    case FrameType::kRstStream:
      return judge_rst_stream(h, now);
    case FrameType::kSettings:
      return judge_settings(h, now);
    case FrameType::kPushPromise:
      return kProtocol;  // clients may not push, and ours does not let servers push
    case FrameType::kPing:
      return judge_ping(h, now);
    case FrameType::kGoaway:
      return judge_goaway(h, now);
    case FrameType::kWindowUpdate:
      return judge_window_update(h, prefix, now);
    case FrameType::kContinuation:
      return judge_continuation(h, now);
  }
  return kSkip;
}

/// RFC 9113 §5.1, "closed". A frame for a skipped number, or for a stream that the peer ended, ends
/// the connection. A stream that the peer reset is reset again. For a stream that we reset, the
/// frame is ignored but passed on, because the codec must decode header blocks and count bytes of
/// the connection's window.
Judgement FrameGuard::judge_closed(StreamId id, TimePoint now) noexcept {
  switch (closed_.how(id)) {
    case ClosedHow::kNeverUsed:
      return kProtocol;
    case ClosedHow::kEnded:
      return kClosed;
    case ClosedHow::kResetByPeer:
      glitch(H2Glitch::kClosedStreamFrame, now);
      return reset(id, ErrorCode::kStreamClosed, Action::kPass);
    case ClosedHow::kResetByUs:
      late_frame(now);
      return kPass;
  }
  return kPass;
}

Judgement FrameGuard::judge_data(const FrameHeader& h, Prefix prefix, TimePoint now) noexcept {
  const StreamId was_empty = empty_data_stream_;
  empty_data_stream_ = 0;
  if (h.stream == 0 || is_idle(h.stream)) return kProtocol;
  std::uint32_t content = h.length;
  if (h.has(flag::kPadded)) {
    if (h.length == 0) return kFrameSize;
    const std::uint32_t padding = prefix[0];
    if (padding >= h.length) return kProtocol;
    content -= padding + 1;
  }
  // Counts against the connection's window in any case, even if the stream is closed.
  connection_window_ -= h.length;
  if (connection_window_ < 0) return end(SessionEnd::kFlowControl, ErrorCode::kFlowControlError);
  Stream* stream = find_open(h.stream);
  if (stream == nullptr) return judge_closed(h.stream, now);
  if (stream->peer_ended) return kClosed;
  if (content == 0 && !h.has(flag::kEndStream)) {
    // One may be a client's way to flush; several in a row are an attack.
    if (was_empty == h.stream) glitch(H2Glitch::kEmptyFrame, now);
    empty_data_stream_ = h.stream;
  }
  return judge_body(*stream, h, content, now);
}

/// The whole frame is checked before any of it is passed on, so that events do not depend on reads.
Judgement FrameGuard::judge_body(Stream& stream, const FrameHeader& h, std::uint32_t content,
                                 TimePoint now) noexcept {
  stream.window -= h.length;
  stream.framed += content;
  if (stream.reset_by_us) return kPass;
  const auto refuse = [&](H2Glitch why, ErrorCode code) {
    glitch(why, now);
    return reset(stream.id, code, Action::kPass);
  };
  if (side_ == Side::kClient && !stream.has_head)
    return refuse(H2Glitch::kMalformedMessage, ErrorCode::kProtocolError);
  if (stream.window < 0) return refuse(H2Glitch::kFlowControl, ErrorCode::kFlowControlError);
  const bool last = h.has(flag::kEndStream);
  const bool promised = stream.content_length != Stream::kNoLength;
  if (promised &&
      (stream.framed > stream.content_length || (last && stream.framed != stream.content_length))) {
    return refuse(H2Glitch::kContentLengthMismatch, ErrorCode::kProtocolError);
  }
  if (stream.held && !stream.discarding && stream.framed > stream.granted)
    return refuse(H2Glitch::kUngrantedData, ErrorCode::kRefusedStream);
  return kPass;
}

Judgement FrameGuard::judge_headers(const FrameHeader& h, Prefix prefix, TimePoint now) noexcept {
  if (h.stream == 0 || h.stream % 2 == 0) return kProtocol;
  const bool padded = h.has(flag::kPadded);
  const bool priority = h.has(flag::kPriority);
  const std::uint32_t fixed = (padded ? 1U : 0U) + (priority ? 5U : 0U);
  if (h.length < fixed) return kFrameSize;
  if (padded && prefix[0] > h.length - fixed) return kProtocol;
  bool self_dependent = false;
  if (priority) {
    const std::uint32_t parent = read_u32(prefix.data() + (padded ? 1 : 0)) & kStreamIdMax;
    self_dependent = parent == h.stream;
  }
  block_bytes_ = 0;
  block_fragments_ = 0;
  block_small_ = 0;
  if (const Judgement counted = count_fragment(h, now); counted.action == Action::kEnd)
    return counted;
  block_stream_ = h.has(flag::kEndHeaders) ? 0 : h.stream;

  if (h.stream > last_stream_)
    return side_ == Side::kServer ? open_stream(h, self_dependent, now) : kProtocol;
  const Stream* stream = find_open(h.stream);
  if (stream == nullptr) return judge_closed(h.stream, now);
  if (stream->peer_ended) return kClosed;
  if (self_dependent) {
    glitch(H2Glitch::kSelfDependency, now);
    return reset(h.stream, ErrorCode::kProtocolError, Action::kPass);
  }
  // Trailers must end their stream; a second head without END_STREAM is malformed. Before a
  // response's final head there may be others.
  if (!h.has(flag::kEndStream) && (side_ == Side::kServer || stream->has_head)) {
    glitch(H2Glitch::kMalformedMessage, now);
    return reset(h.stream, ErrorCode::kProtocolError, Action::kPass);
  }
  return kPass;
}

Judgement FrameGuard::open_stream(const FrameHeader& h, bool self_dependent,
                                  TimePoint now) noexcept {
  last_stream_ = h.stream;
  closed_.on_opened(h.stream);
  if (h.stream > goaway_last_) {
    // The peer had not received our GOAWAY yet. The codec decodes and ignores the frame.
    closed_.on_closed(h.stream, ClosedHow::kResetByUs);
    late_frame(now);
    return kPass;
  }
  earn_by_stream();
  Stream* stream = table_.open(h.stream);
  if (stream == nullptr) {
    on_closed(h.stream, ClosedHow::kResetByUs);  // its body may arrive before our reset is sent
    glitch(H2Glitch::kRefusedStream, now);
    return reset_at_opening(h.stream, ErrorCode::kRefusedStream);
  }
  stream->open = true;
  stream->announced = limits_->stream_window_bytes;
  stream->window = initial_window_;
  if (!self_dependent) return kPass;
  glitch(H2Glitch::kSelfDependency, now);
  return reset_at_opening(h.stream, ErrorCode::kProtocolError);
}

/// Counts frames, not reads: a valid frame that arrives byte by byte is one frame.
Judgement FrameGuard::count_fragment(const FrameHeader& h, TimePoint now) noexcept {
  block_bytes_ += h.length;
  ++block_fragments_;
  if (block_bytes_ > limits_->header_block_bytes_max ||
      block_fragments_ > limits_->header_fragments_max) {
    return end(SessionEnd::kHeaderBlock, ErrorCode::kEnhanceYourCalm);
  }
  if (h.has(flag::kEndHeaders)) return kPass;
  if (h.length == 0) {
    glitch(H2Glitch::kEmptyFrame, now);
  } else if (h.length < limits_->small_fragment_bytes &&
             ++block_small_ > limits_->small_fragments_free) {
    glitch(H2Glitch::kSmallFragment, now);
  }
  return kPass;
}

Judgement FrameGuard::judge_continuation(const FrameHeader& h, TimePoint now) noexcept {
  if (block_stream_ == 0) return kProtocol;
  if (h.has(flag::kEndHeaders)) block_stream_ = 0;
  return count_fragment(h, now);
}

/// Checked by the rules of RFC 7540, then ignored: there is no priority tree. A closed stream may
/// be named, so a bad frame for it is answered as for an open stream: it may have been sent while
/// the stream was open.
Judgement FrameGuard::judge_priority(const FrameHeader& h, Prefix prefix, TimePoint now) noexcept {
  if (h.stream == 0) return kProtocol;
  if (!priority_.take(now)) glitch(H2Glitch::kPriorityFlood, now);
  const bool bad_length = h.length != 5;
  const bool itself = !bad_length && (read_u32(prefix.data()) & kStreamIdMax) == h.stream;
  if (!bad_length && !itself) return kSkip;
  if (is_idle(h.stream)) return bad_length ? kFrameSize : kProtocol;  // there is no stream to reset
  glitch(bad_length ? H2Glitch::kBadPriority : H2Glitch::kSelfDependency, now);
  return reset(h.stream, bad_length ? ErrorCode::kFrameSizeError : ErrorCode::kProtocolError,
               Action::kSkip);
}

Judgement FrameGuard::judge_rst_stream(const FrameHeader& h, TimePoint now) noexcept {
  if (h.stream == 0) return kProtocol;
  if (h.length != 4) return kFrameSize;
  if (is_idle(h.stream)) return kProtocol;
  const Stream* stream = find_open(h.stream);
  if (stream == nullptr) {
    // A client that resets after each response may send it after the end: one per stream is free.
    if (closed_.how(h.stream) == ClosedHow::kEnded) {
      closed_.on_closed(h.stream, ClosedHow::kResetByPeer);
    } else {
      late_frame(now);
    }
    return kSkip;
  }
  // A server may refuse what we ask for: one reset per request of ours is no flood.
  if (side_ == Side::kServer && !stream->answering && !stream->reset_by_us)
    glitch(H2Glitch::kEarlyReset, now);
  return kPass;
}

Judgement FrameGuard::judge_settings(const FrameHeader& h, TimePoint now) noexcept {
  if (h.stream != 0) return kProtocol;
  if (h.has(flag::kAck)) return h.length == 0 ? kPass : kFrameSize;
  if (h.length % 6 != 0) return kFrameSize;
  if (h.length / 6 > limits_->settings_entries_max)
    return end(SessionEnd::kSettings, ErrorCode::kEnhanceYourCalm);
  if (!settings_.take(now)) glitch(H2Glitch::kSettingsFlood, now);
  got_settings_ = true;
  return kPass;
}

Judgement FrameGuard::judge_ping(const FrameHeader& h, TimePoint now) noexcept {
  if (h.stream != 0) return kProtocol;
  if (h.length != 8) return kFrameSize;
  if (!ping_.take(now)) glitch(H2Glitch::kPingFlood, now);
  return h.has(flag::kAck) && !expects_pong_ ? kSkip : kPass;
}

Judgement FrameGuard::judge_goaway(const FrameHeader& h, TimePoint now) noexcept {
  if (h.stream != 0) return kProtocol;
  if (h.length < 8) return kFrameSize;
  if (!settings_.take(now)) glitch(H2Glitch::kSettingsFlood, now);
  return kPass;
}

Judgement FrameGuard::judge_window_update(const FrameHeader& h, Prefix prefix,
                                          TimePoint now) noexcept {
  if (h.length != 4) return kFrameSize;
  if (!window_update_.take(now)) glitch(H2Glitch::kWindowUpdateFlood, now);
  const bool nothing = (read_u32(prefix.data()) & kStreamIdMax) == 0;
  if (h.stream == 0) return nothing ? kProtocol : kPass;
  if (is_idle(h.stream)) return kProtocol;
  if (find_open(h.stream) == nullptr) {
    if (closed_.how(h.stream) == ClosedHow::kNeverUsed) return kProtocol;
    return kSkip;  // sent before the peer knew that the stream had ended; the budget counts it
  }
  if (!nothing) return kPass;
  glitch(H2Glitch::kWindowUpdateZero, now);
  return reset(h.stream, ErrorCode::kProtocolError, Action::kSkip);
}

}  // namespace weir::inline v0::http::h2
