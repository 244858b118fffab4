#include "http/h2/nghttp2_session.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "h2/nv_list.h"

namespace weir::inline v0::http::h2 {

Nghttp2Session::Nghttp2Session(const Shared& shared, std::span<std::byte> memory,
                               SessionEvents& events)
    : Nghttp2Facade(shared, memory, Side::kServer, events), events_(&events) {}

bool Nghttp2Session::start(TimePoint now) {
  now_ = now;
  if (nghttp2_session_server_new3(&library_, shared_.callbacks, static_cast<Nghttp2Codec*>(this),
                                  shared_.option, &memory_) != 0) {
    library_ = nullptr;
    return false;
  }
  build_settings();
  // Before any input: the library takes NO_RFC7540_PRIORITIES from the first SETTINGS only. Its
  // limit of streams is higher than the one sent to the peer: the guard refuses single streams
  // above the limit, where the library would end the connection.
  const std::array<nghttp2_settings_entry, kSettingsMax> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
       limits_->concurrent_streams_max + limits_->outbound_frames_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_->stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_->header_list_bytes_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
  }};
  const std::size_t count = limits_->extended_connect ? kSettingsMax : kSettingsMax - 1;
  if (nghttp2_submit_settings(library_, NGHTTP2_FLAG_NONE, settings.data(), count) != 0)
    return false;
  if (limits_->connection_window_bytes > kDefaultWindow &&
      nghttp2_session_set_local_window_size(
          library_, NGHTTP2_FLAG_NONE, 0,
          static_cast<std::int32_t>(limits_->connection_window_bytes)) != 0) {
    return false;
  }
  settings_sent_ = now;
  return true;
}

/// The SETTINGS that are sent instead of the library's first frame.
void Nghttp2Session::build_settings() noexcept {
  const std::array<std::pair<std::uint8_t, std::uint32_t>, kSettingsMax> all = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_->concurrent_streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_->stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_->header_list_bytes_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
  }};
  const std::span entries(all.data(), limits_->extended_connect ? kSettingsMax : kSettingsMax - 1);
  write_frame_header(settings_.data(), {.length = static_cast<std::uint32_t>(6 * entries.size()),
                                        .type = static_cast<std::uint8_t>(FrameType::kSettings),
                                        .flags = 0,
                                        .stream = 0});
  std::uint8_t* at = settings_.data() + kFrameHeaderBytes;
  for (const auto& [id, value] : entries) {
    at[1] = id;
    write_u32(at + 2, value);
    at += 6;
  }
  first_frame_ = std::span(settings_).first(kFrameHeaderBytes + 6 * entries.size());
}

// ---- Input ------------------------------------------------------------------------------------

int Nghttp2Session::begin_block(StreamId id) {
  Stream* stream = guard_.streams().find(id);
  using Kind = HeaderBlock::Kind;
  if (doomed_ == id) {
    block_.begin(Kind::kIgnored, *limits_);
    if (stream != nullptr) {
      stream->has_head = true;
      reset_stream(*stream, doomed_code_);
      return 0;
    }
    return nghttp2_submit_rst_stream(library_, NGHTTP2_FLAG_NONE, static_cast<std::int32_t>(id),
                                     static_cast<std::uint32_t>(doomed_code_));
  }
  if (stream == nullptr || stream->reset_by_us) {
    block_.begin(Kind::kIgnored, *limits_);
  } else if (!stream->has_head) {
    stream->has_head = true;
    block_.begin(Kind::kRequest, *limits_);
  } else {
    block_.begin(Kind::kTrailers, *limits_);
  }
  return 0;
}

void Nghttp2Session::on_received(const nghttp2_frame& frame) {
  const bool carries = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (carries && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
    end_lingering(static_cast<StreamId>(frame.hd.stream_id));
}

void Nghttp2Session::on_sent(const nghttp2_frame& /*frame*/, Stream& stream) {
  if (stream.we_ended && !stream.lingers && !stream.peer_ended && !stream.reset_by_us)
    linger(stream);
}

// ---- Events for the owner -----------------------------------------------------------------------

void Nghttp2Session::tell_block(Stream& stream) {
  if (block_.kind() == HeaderBlock::Kind::kRequest) {
    tell_request(stream);
  } else if (block_.kind() == HeaderBlock::Kind::kTrailers) {
    tell_trailers(stream);
  }
}

void Nghttp2Session::tell_request(Stream& stream) {
  RequestHead head;
  stream.peer_ended = seen_.block_end;
  const BlockFault fault = block_.finish_request(seen_.block_end, head);
  if (fault != BlockFault::kNone) return refuse_block(stream, fault);
  if (head.body_length) stream.content_length = *head.body_length;
  const StreamId id = stream.id;
  stream.held = true;
  void* user = events_->on_request(id, head);
  if (user == nullptr) {
    stream.held = false;
    stream.discarding = true;
    return reset_stream(stream, ErrorCode::kRefusedStream);
  }
  stream.user = user;
}

void Nghttp2Session::refuse_block(Stream& stream, BlockFault fault) {
  const bool request = block_.kind() == HeaderBlock::Kind::kRequest;
  switch (fault) {
    case BlockFault::kNone:
      return;
    case BlockFault::kNoMemory:
      return end_session(SessionEnd::kMemory, ErrorCode::kEnhanceYourCalm);
    case BlockFault::kMalformed:
      return blame(stream, H2Glitch::kMalformedMessage, ErrorCode::kProtocolError);
    case BlockFault::kTooLarge:
    case BlockFault::kUriTooLong:
      break;
  }
  if (!request) return blame(stream, H2Glitch::kHeadersTooLarge, ErrorCode::kEnhanceYourCalm);
  guard_.glitch(H2Glitch::kHeadersTooLarge, now_);
  stream.discarding = true;
  answer(stream, fault == BlockFault::kTooLarge ? 431 : 414);
}

void Nghttp2Session::tell_body(Stream& stream) {
  if (!take_body(stream)) return;
  if (stream.lingers) return cut_off_if_large(stream);
  deliver_body(stream);
}

void Nghttp2Session::tell_end(StreamId id, const Stream& stream) {
  StreamEnd how = StreamEnd::kDone;
  if (stream.reset_by_peer) {
    how = StreamEnd::kPeerReset;
  } else if (stream.reset_by_us && !stream.we_ended) {
    how = StreamEnd::kReset;
  }
  events_->on_stream_end(id, stream.user, how, static_cast<ErrorCode>(stream.end_code));
}

// ---- Output -------------------------------------------------------------------------------------

SubmitStatus Nghttp2Session::submit(Stream& stream, const ResponseStart& start) {
  const std::uint16_t status = start.status;
  std::array<char, 3> digits{};
  if (status < 100 || status > 999) return SubmitStatus::kBadField;
  std::to_chars(digits.data(), digits.data() + digits.size(), status);
  NvList list;
  list.add(":status", {digits.data(), digits.size()});
  if (!list.append(start.fields)) return SubmitStatus::kBadField;
  const auto id = static_cast<std::int32_t>(stream.id);
  const bool informational = status < 200;
  if (informational && start.end) return SubmitStatus::kBadField;
  long result = 0;
  if (informational) {
    result = nghttp2_submit_headers(library_, NGHTTP2_FLAG_NONE, id, nullptr, list.data(),
                                    list.size(), nullptr);
  } else {
    nghttp2_data_provider provider{};
    provider.read_callback = read_body;
    result = nghttp2_submit_response(library_, id, list.data(), list.size(),
                                     start.end ? nullptr : &provider);
  }
  check_library(result);
  if (end_ != SessionEnd::kNone) return SubmitStatus::kNoMemory;
  if (result != 0) return SubmitStatus::kClosed;
  stream.answering = true;
  stream.final_head = stream.final_head || !informational;
  return SubmitStatus::kOk;
}

SubmitStatus Nghttp2Session::submit_head(StreamId id, const ResponseStart& start) {
  if (end_ != SessionEnd::kNone) return SubmitStatus::kClosed;
  Stream* stream = guard_.streams().find(id);
  if (stream == nullptr || !stream->open || stream->final_head || stream->reset_by_us)
    return SubmitStatus::kClosed;
  std::size_t bytes = 0;
  for (const Field& field : start.fields) bytes += field.name.size() + field.value.size() + 64;
  if (must_wait(bytes)) return SubmitStatus::kBlocked;
  return submit(*stream, start);
}

/// Answers a request that is not passed to the owner.
void Nghttp2Session::answer(Stream& stream, std::uint16_t status) {
  const std::array<Field, 1> fields = {{{"content-length", "0"}}};
  static_cast<void>(submit(stream, {status, fields, true}));
}

void Nghttp2Session::announce_shutdown() {
  if (end_ != SessionEnd::kNone || goaway_said_) return;
  check_library(nghttp2_submit_shutdown_notice(library_));
}

// ---- Time ---------------------------------------------------------------------------------------

TimePoint Nghttp2Session::next_expiry() const noexcept {
  const TimePoint next = Nghttp2Codec::next_expiry();
  if (ended() != SessionEnd::kNone || linger_until_ == TimePoint{}) return next;
  return next == TimePoint{} ? linger_until_ : std::min(next, linger_until_);
}

void Nghttp2Session::expire(TimePoint now) {
  Nghttp2Codec::expire(now);
  if (end_ == SessionEnd::kNone && linger_until_ != TimePoint{} && now >= linger_until_)
    cut_off_lingering(now);
}

}  // namespace weir::inline v0::http::h2
