#include "http/h2/nghttp2_client_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/assert.h"

#include "h2/nv_list.h"
#include "h2/request_check.h"

namespace weir::inline v0::http::h2 {
namespace {

constexpr std::uint32_t kHeaderTableBytes = 4096;
constexpr std::uint64_t kStreamsPerConnectionWindow = 16;

/// Large enough that one stream whose owner pauses cannot use it up before others.
std::int32_t connection_window(const H2Limits& limits) noexcept {
  const std::uint64_t wanted = std::max<std::uint64_t>(
      limits.connection_window_bytes, kStreamsPerConnectionWindow * limits.stream_window_bytes);
  return static_cast<std::int32_t>(std::min<std::uint64_t>(wanted, kStreamIdMax));
}

bool is_request(const nghttp2_frame& frame) noexcept {
  return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
}

}  // namespace

Nghttp2ClientSession::Nghttp2ClientSession(const Given& given, ClientEvents& events)
    : Nghttp2Facade(given.shared, given.memory, Side::kClient, events),
      events_(&events),
      options_(&given.options) {}

void Nghttp2ClientSession::set_callbacks(nghttp2_session_callbacks* callbacks) noexcept {
  Nghttp2Codec::set_callbacks(callbacks);
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, before_send);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
}

bool Nghttp2ClientSession::start(TimePoint now) {
  now_ = now;
  if (nghttp2_session_client_new3(&library_, shared_.callbacks, static_cast<Nghttp2Codec*>(this),
                                  shared_.option, &memory_) != 0) {
    library_ = nullptr;
    return false;
  }
  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, kHeaderTableBytes},
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_->stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_->header_list_bytes_max},
  }};
  settings_sent_ = now;
  return nghttp2_submit_settings(library_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
             0 &&
         nghttp2_session_set_local_window_size(library_, NGHTTP2_FLAG_NONE, 0,
                                               connection_window(*limits_)) == 0;
}

// ---- Streams ------------------------------------------------------------------------------------

std::uint32_t Nghttp2ClientSession::streams_allowed() const noexcept {
  return nghttp2_session_get_remote_settings(library_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

std::uint32_t Nghttp2ClientSession::peer_streams_max() const noexcept {
  return streams_allowed();
}

bool Nghttp2ClientSession::peer_allows_extended_connect() const noexcept {
  return nghttp2_session_get_remote_settings(library_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) ==
         1;
}

std::uint32_t Nghttp2ClientSession::capacity() const noexcept {
  if (end_ != SessionEnd::kNone || goaway_said_ || peer_is_leaving()) return 0;
  const std::uint32_t next = nghttp2_session_get_next_stream_id(library_);
  const std::uint32_t ids = next > kStreamIdMax ? 0 : (kStreamIdMax - next) / 2 + 1;
  const StreamTable& streams = guard_.streams();
  const std::uint32_t allowed = streams_allowed();
  const std::uint32_t open = outgoing_ + queued_;
  return std::min({ids, streams.capacity() - streams.size(), allowed - std::min(allowed, open)});
}

Result<StreamId, SubmitStatus> Nghttp2ClientSession::open(const RequestStart& start, void* user) {
  WEIR_ASSERT(user != nullptr);
  if (capacity() == 0) return unexpected(SubmitStatus::kClosed);
  if (!may_be_requested(start)) return unexpected(SubmitStatus::kBadField);
  NvList list;
  list.add(":method", start.method);
  list.add(":scheme", start.scheme);
  if (!start.authority.empty()) list.add(":authority", start.authority);
  list.add(":path", start.path);
  if (!list.append(start.fields) || list.bytes() > heap_.capacity_bytes() / 4)
    return unexpected(SubmitStatus::kBadField);
  if (must_wait(list.bytes())) return unexpected(SubmitStatus::kBlocked);
  nghttp2_data_provider provider{};
  provider.read_callback = read_body;
  const std::int32_t result = nghttp2_submit_request(library_, nullptr, list.data(), list.size(),
                                                     start.end ? nullptr : &provider, nullptr);
  check_library(result);
  if (result < 0) return unexpected(SubmitStatus::kNoMemory);
  Stream* stream = guard_.open_own(static_cast<StreamId>(result));
  WEIR_ASSERT(stream != nullptr);
  stream->user = user;
  stream->held = true;
  stream->unsent = true;
  stream->final_head = true;
  stream->head_only = start.method == "HEAD";
  ++in_queue_;
  ++queued_;
  count_held_back();
  return stream->id;
}

SubmitStatus Nghttp2ClientSession::submit_trailers(StreamId id, std::span<const Field> fields) {
  // The library would try to send them before the head.
  const Stream* stream = guard_.streams().find(id);
  if (stream != nullptr && stream->open && stream->unsent) return SubmitStatus::kBlocked;
  return Nghttp2Codec::submit_trailers(id, fields);
}

void Nghttp2ClientSession::reset(StreamId id, ErrorCode code) {
  Stream* stream = guard_.streams().find(id);
  if (end_ != SessionEnd::kNone || stream == nullptr) return;
  if (!can_withdraw(*stream)) return reset_stream(*stream, code);
  stream->end_code = static_cast<std::uint32_t>(code);
  withdraw(*stream);
  owes_ends_ = true;
}

/// The request's head will not be sent. The library has not opened the stream, so it cannot close
/// it: the end is recorded here.
void Nghttp2ClientSession::withdraw(Stream& stream) {
  check_library(nghttp2_submit_rst_stream(library_, NGHTTP2_FLAG_NONE,
                                          static_cast<std::int32_t>(stream.id), NGHTTP2_CANCEL));
  --queued_;
  stream.open = false;
  stream.discarding = true;
  if (stream.held) {
    add_end(stream);
  } else {
    guard_.streams().close(stream);
  }
}

Stream* Nghttp2ClientSession::newest_unsent() const noexcept {
  Stream* newest = nullptr;
  guard_.streams().for_each([&](Stream& stream) {
    if (can_withdraw(stream) && (newest == nullptr || stream.id > newest->id)) newest = &stream;
  });
  return newest;
}

/// After SETTINGS or GOAWAY: requests that would now wait for an unknown time, or for ever.
void Nghttp2ClientSession::withdraw_unsendable() {
  const std::uint32_t allowed = peer_is_leaving() ? 0 : streams_allowed();
  while (queued_ > 0 && outgoing_ + queued_ > allowed) {
    Stream* stream = newest_unsent();
    if (stream == nullptr) return;
    if (peer_is_leaving()) {
      stream->excluded = stream->reset_by_peer = true;
      stream->end_code = static_cast<std::uint32_t>(*peer_goaway_code_);
    } else {
      stream->end_code = static_cast<std::uint32_t>(ErrorCode::kRefusedStream);
    }
    withdraw(*stream);
  }
}

Processed Nghttp2ClientSession::processed(const Stream& stream) noexcept {
  if (stream.answering) return Processed::kYes;
  const bool refused =
      stream.reset_by_peer && static_cast<ErrorCode>(stream.end_code) == ErrorCode::kRefusedStream;
  return stream.unsent || stream.excluded || refused ? Processed::kNo : Processed::kMaybe;
}

Processed Nghttp2ClientSession::processed(StreamId id) const noexcept {
  const Stream* stream = guard_.streams().find(id);
  return stream == nullptr ? Processed::kNo : processed(*stream);
}

bool Nghttp2ClientSession::ping(TimePoint now) {
  if (end_ != SessionEnd::kNone || ping_sent_ != TimePoint{}) return false;
  std::array<std::uint8_t, 8> payload{};
  write_u32(payload.data(), ++pings_);
  check_library(nghttp2_submit_ping(library_, NGHTTP2_FLAG_NONE, payload.data()));
  if (end_ != SessionEnd::kNone) return false;
  guard_.on_ping_sent();
  ping_sent_ = now;
  return true;
}

// ---- What the library reports -------------------------------------------------------------------

/// The library would not send these now, so they are no output that anyone could wait for.
void Nghttp2ClientSession::count_held_back() noexcept {
  held_back_ = outgoing_ >= streams_allowed() ? in_queue_ : 0;
}

int Nghttp2ClientSession::before_send(nghttp2_session* /*library*/, const nghttp2_frame* frame,
                                      void* user) {
  if (!is_request(*frame)) return 0;
  auto& self = static_cast<Nghttp2ClientSession&>(*static_cast<Nghttp2Codec*>(user));
  self.sending_ = static_cast<StreamId>(frame->hd.stream_id);
  --self.in_queue_;
  --self.queued_;
  ++self.outgoing_;
  self.count_held_back();
  return 0;
}

int Nghttp2ClientSession::on_not_sent(nghttp2_session* /*library*/, const nghttp2_frame* frame,
                                      int /*error*/, void* user) {
  if (!is_request(*frame)) return 0;
  auto& self = static_cast<Nghttp2ClientSession&>(*static_cast<Nghttp2Codec*>(user));
  --self.in_queue_;
  self.count_held_back();
  return 0;
}

int Nghttp2ClientSession::begin_block(StreamId id) {
  const Stream* stream = guard_.streams().find(id);
  using Kind = HeaderBlock::Kind;
  Kind kind = Kind::kIgnored;
  if (stream != nullptr && stream->open && !stream->reset_by_us)
    kind = stream->has_head ? Kind::kTrailers : Kind::kResponse;
  block_.begin(kind, *limits_);
  return 0;
}

void Nghttp2ClientSession::on_received(const nghttp2_frame& frame) {
  const bool ack = (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      // Recorded before the library closes the stream.
      if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
      if (Stream* stream = guard_.streams().find(static_cast<StreamId>(frame.hd.stream_id)))
        stream->peer_ended = true;
      return;
    case NGHTTP2_SETTINGS:
      if (ack) return;
      has_settings_ = true;
      capacity_changed_ = true;
      return count_held_back();
    case NGHTTP2_GOAWAY:
      return on_goaway(frame.goaway);
    case NGHTTP2_PING:
      if (ack) on_ping(frame.ping);
      return;
    default:
      return;
  }
}

/// The library closes the streams above `last` as refused; the server's own code says more.
void Nghttp2ClientSession::on_goaway(const nghttp2_goaway& frame) {
  peer_goaway_code_ = static_cast<ErrorCode>(frame.error_code);
  capacity_changed_ = true;
  const auto last = static_cast<StreamId>(frame.last_stream_id);
  guard_.streams().for_each([&](Stream& stream) {
    if (stream.id <= last || !stream.open || stream.reset_by_us) return;
    stream.excluded = stream.reset_by_peer = true;
    stream.end_code = frame.error_code;
  });
}

void Nghttp2ClientSession::on_ping(const nghttp2_ping& frame) {
  std::array<std::uint8_t, 8> expected{};
  write_u32(expected.data(), pings_);
  if (std::memcmp(expected.data(), frame.opaque_data, expected.size()) != 0) return;
  guard_.on_pong();
  pong_ = true;
}

void Nghttp2ClientSession::on_sent(const nghttp2_frame& frame, Stream& stream) {
  if (!is_request(frame) || !stream.unsent) return;
  stream.unsent = false;
  sending_ = 0;
  guard_.on_own_sent(stream.id);
  Nghttp2Codec::grant(stream.id, 0);  // what was granted meanwhile
}

void Nghttp2ClientSession::on_closing(Stream& stream, ErrorCode code) {
  if (stream.id == sending_) {
    guard_.on_own_sent(stream.id);  // a part of its head is on its way
    sending_ = 0;
    stream.unsent = false;
  }
  if (stream.unsent) {
    --queued_;
  } else {
    --outgoing_;
  }
  count_held_back();
  if (!stream.reset_by_peer && !stream.reset_by_us && !stream.peer_ended)
    stream.end_code = static_cast<std::uint32_t>(code);
}

// ---- Events for the owner -----------------------------------------------------------------------

void Nghttp2ClientSession::tell_block(Stream& stream) {
  if (block_.kind() == HeaderBlock::Kind::kResponse) {
    tell_response(stream);
  } else if (block_.kind() == HeaderBlock::Kind::kTrailers) {
    tell_trailers(stream);
  }
}

void Nghttp2ClientSession::tell_response(Stream& stream) {
  stream.answering = true;
  ResponseHead head;
  const BlockFault fault = block_.finish_response(seen_.block_end, stream.head_only, head);
  if (fault != BlockFault::kNone) return refuse_block(stream, fault);
  if (head.informational) {
    if (stream.informational >= options_->informational_max)
      return blame(stream, H2Glitch::kHeadersTooLarge, ErrorCode::kEnhanceYourCalm);
    ++stream.informational;
  } else {
    stream.has_head = true;
    if (head.body_length) stream.content_length = *head.body_length;
  }
  if (!listens(stream)) return;
  if (head.end) stream.delivered = true;
  events_->on_response(stream.id, stream.user, head);
}

void Nghttp2ClientSession::refuse_block(Stream& stream, BlockFault fault) {
  switch (fault) {
    case BlockFault::kNone:
      return;
    case BlockFault::kNoMemory:
      return end_session(SessionEnd::kMemory, ErrorCode::kEnhanceYourCalm);
    case BlockFault::kMalformed:
      return blame(stream, H2Glitch::kMalformedMessage, ErrorCode::kProtocolError);
    case BlockFault::kTooLarge:
    case BlockFault::kUriTooLong:
      return blame(stream, H2Glitch::kHeadersTooLarge, ErrorCode::kEnhanceYourCalm);
  }
}

void Nghttp2ClientSession::tell_body(Stream& stream) {
  if (!take_body(stream)) return;
  const StreamId id = stream.id;
  deliver_body(stream);
  Nghttp2Codec::grant(id, 0);  // the owner may have granted all of it long ago
}

void Nghttp2ClientSession::tell_connection() {
  if (std::exchange(pong_, false)) events_->on_pong(std::exchange(ping_sent_, {}));
  if (!std::exchange(capacity_changed_, false)) return;
  withdraw_unsendable();
  events_->on_capacity_changed();
}

void Nghttp2ClientSession::tell_end(StreamId id, const Stream& stream) {
  StreamEnd how = StreamEnd::kReset;
  if (stream.delivered) {
    how = StreamEnd::kDone;
  } else if (stream.reset_by_peer) {
    how = StreamEnd::kPeerReset;
  }
  events_->on_stream_end(id, stream.user, how, static_cast<ErrorCode>(stream.end_code),
                         processed(stream));
}

}  // namespace weir::inline v0::http::h2
