#include "http/h2/nghttp2_session.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::http::h2 {
namespace {

/// The table is at the front of the memory, the heap behind it. The heap starts on a new page, if
/// that costs little, so that the data of an idle connection is on few pages.
constexpr std::size_t kPage = 4096;
std::span<std::byte> behind_table(std::span<std::byte> memory, const H2Limits& limits) noexcept {
  const std::size_t table =
      (StreamTable::bytes_for(limits.concurrent_streams_max) + 15) & ~std::size_t{15};
  const std::size_t over = reinterpret_cast<std::uintptr_t>(memory.data() + table) % kPage;
  const std::size_t skip = over == 0 ? 0 : kPage - over;
  const bool roomy = memory.size() - table >= 16 * kPage;
  return memory.subspan(table + (roomy ? skip : 0));
}

/// Holds the library's data for an idle peer, about 9 KB, and for a small request. The library's
/// output buffer begins in the rest of the third page, and small heads use no more of it than that.
constexpr std::size_t kHeapFront = 3 * kPage - 768;

RegionHeap& heap_of(void* user) noexcept {
  return *static_cast<RegionHeap*>(user);
}

nghttp2_mem memory_over(RegionHeap& heap) noexcept {
  return {.mem_user_data = &heap,
          .malloc = [](std::size_t bytes, void* user) { return heap_of(user).allocate(bytes); },
          .free = [](void* piece, void* user) { heap_of(user).release(piece); },
          .calloc = [](std::size_t count, std::size_t bytes,
                       void* user) { return heap_of(user).allocate_zeroed(count, bytes); },
          .realloc = [](void* piece, std::size_t bytes,
                        void* user) { return heap_of(user).reallocate(piece, bytes); }};
}

}  // namespace

Nghttp2Session::Nghttp2Session(const Shared& shared, std::span<std::byte> memory,
                               SessionEvents& events)
    : limits_(&shared.limits),
      events_(&events),
      heap_(behind_table(memory, shared.limits), kHeapFront),
      memory_(memory_over(heap_)),
      guard_(shared.limits, memory.data()),
      block_(heap_),
      shared_(shared) {}

// The library owns nothing but memory inside the block, which is freed with the block.
// nghttp2_session_del() is not needed, and it frees twice after some failed allocations.
Nghttp2Session::~Nghttp2Session() = default;

bool Nghttp2Session::start(TimePoint now) {
  now_ = now;
  if (nghttp2_session_server_new3(&library_, shared_.callbacks, this, shared_.option, &memory_) !=
      0) {
    library_ = nullptr;
    return false;
  }
  build_settings();
  // Before any input: the library takes NO_RFC7540_PRIORITIES from the first SETTINGS only. Its
  // limit of streams is higher than the one sent to the peer: the guard refuses single streams
  // above the limit, where the library would end the connection.
  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
       limits_->concurrent_streams_max + limits_->outbound_frames_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_->stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_->header_list_bytes_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  if (nghttp2_submit_settings(library_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0)
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
  const std::array<std::pair<std::uint8_t, std::uint32_t>, 4> entries = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_->concurrent_streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_->stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_->header_list_bytes_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  write_frame_header(settings_.data(), {.length = 6 * entries.size(),
                                        .type = static_cast<std::uint8_t>(FrameType::kSettings),
                                        .flags = 0,
                                        .stream = 0});
  std::uint8_t* at = settings_.data() + kFrameHeaderBytes;
  for (const auto& [id, value] : entries) {
    at[1] = id;
    write_u32(at + 2, value);
    at += 6;
  }
}

// ---- Input ------------------------------------------------------------------------------------

ReceiveResult Nghttp2Session::receive(std::span<const std::byte> in, TimePoint now) {
  WEIR_ASSERT(!telling_);
  now_ = now;
  std::span<const std::uint8_t> rest(reinterpret_cast<const std::uint8_t*>(in.data()), in.size());
  yield_ = false;
  while (!rest.empty() && end_ == SessionEnd::kNone) {
    if (yield_ && frame_left_ == 0) return {in.size() - rest.size(), ReceiveStatus::kYielded};
    if (must_send_first()) return {in.size() - rest.size(), ReceiveStatus::kBlocked};
    std::size_t used = 0;
    if (preface_seen_ < kClientPreface.size()) {
      used = match_preface(rest);
    } else if (frame_left_ > 0) {
      used = proceed(rest);
    } else {
      used = begin_frame(rest);
    }
    rest = rest.subspan(used);
  }
  const bool over = end_ != SessionEnd::kNone;
  return {in.size() - rest.size(), over ? ReceiveStatus::kEnded : ReceiveStatus::kOk};
}

/// Only between frames: a frame that was begun is finished.
bool Nghttp2Session::must_send_first() const noexcept {
  if (frame_left_ > 0 || preface_seen_ < kClientPreface.size()) return false;
  return nghttp2_session_get_outbound_queue_size(library_) >= limits_->outbound_frames_max / 2;
}

std::size_t Nghttp2Session::match_preface(std::span<const std::uint8_t> in) noexcept {
  const std::size_t n = std::min(in.size(), kClientPreface.size() - preface_seen_);
  if (!std::equal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n),
                  kClientPreface.begin() + static_cast<std::ptrdiff_t>(preface_seen_))) {
    end_session(SessionEnd::kBadPreface, ErrorCode::kProtocolError);
    return 0;
  }
  preface_seen_ += n;
  return n;
}

/// Checks the next frame as soon as its header and prefix have arrived, in however many reads.
std::size_t Nghttp2Session::begin_frame(std::span<const std::uint8_t> in) {
  const bool fresh = staged_bytes_ == 0;
  if (fresh && in.size() >= kFrameHeaderBytes) {
    const FrameHeader header = read_frame_header(in.data());
    const std::uint32_t prefix = FrameGuard::prefix_bytes(header);
    if (in.size() >= kFrameHeaderBytes + prefix) {
      // The usual case: the frame is checked and passed on without a copy.
      if (!judge(header, in.subspan(kFrameHeaderBytes, prefix))) return 0;
      const std::size_t n = std::min(in.size(), kFrameHeaderBytes + header.length);
      frame_left_ = static_cast<std::uint32_t>(kFrameHeaderBytes + header.length - n);
      if (passing_) feed(in.first(n));
      settle();
      return n;
    }
  }
  std::size_t used = stage(in, kFrameHeaderBytes);
  if (staged_bytes_ < kFrameHeaderBytes) return used;
  const FrameHeader header = read_frame_header(staged_.data());
  const std::uint32_t prefix = FrameGuard::prefix_bytes(header);
  used += stage(in.subspan(used), kFrameHeaderBytes + prefix);
  if (staged_bytes_ < kFrameHeaderBytes + prefix) return used;
  staged_bytes_ = 0;
  if (!judge(header, std::span(staged_).subspan(kFrameHeaderBytes, prefix))) return used;
  frame_left_ = header.length - prefix;
  if (passing_) feed(std::span(staged_).first(kFrameHeaderBytes + prefix));
  settle();
  return used;
}

std::size_t Nghttp2Session::stage(std::span<const std::uint8_t> in, std::size_t wanted) noexcept {
  if (staged_bytes_ >= wanted) return 0;
  const std::size_t n = std::min(in.size(), wanted - staged_bytes_);
  std::copy_n(in.begin(), n, staged_.begin() + staged_bytes_);
  staged_bytes_ += static_cast<std::uint32_t>(n);
  return n;
}

/// False if the session has ended.
bool Nghttp2Session::judge(const FrameHeader& header, std::span<const std::uint8_t> prefix) {
  const Judgement judgement = guard_.judge(header, prefix, now_);
  act_on(header, judgement);
  frame_ = header;
  passing_ = judgement.action == Judgement::Action::kPass;
  return end_ == SessionEnd::kNone;
}

std::size_t Nghttp2Session::proceed(std::span<const std::uint8_t> in) {
  const std::size_t n = std::min<std::size_t>(in.size(), frame_left_);
  frame_left_ -= static_cast<std::uint32_t>(n);
  if (passing_) feed(in.first(n));
  settle();
  return n;
}

void Nghttp2Session::act_on(const FrameHeader& header, const Judgement& judgement) {
  if (judgement.action == Judgement::Action::kEnd)
    return end_session(judgement.end, judgement.code);
  doomed_ = 0;
  if (header.is(FrameType::kHeaders)) block_began_ = now_;
  if (judgement.reset == 0) return;
  if (judgement.opens) {
    doomed_ = judgement.reset;
    doomed_code_ = judgement.code;
    return;
  }
  Stream* stream = guard_.streams().find(judgement.reset);
  if (stream != nullptr && stream->open) {
    reset_stream(*stream, judgement.code);
  } else {
    check_library(nghttp2_submit_rst_stream(library_, NGHTTP2_FLAG_NONE,
                                            static_cast<std::int32_t>(judgement.reset),
                                            static_cast<std::uint32_t>(judgement.code)));
  }
}

void Nghttp2Session::feed(std::span<const std::uint8_t> bytes) {
  seen_ = {};
  check_library(nghttp2_session_mem_recv(library_, bytes.data(), bytes.size()));
  if (block_.under_way() && !seen_.block && frame_left_ == 0 && !guard_.in_header_block()) {
    // The block is complete, but the library did not report it: its stream was reset meanwhile, or
    // the block does not decode.
    const Stream* stream = guard_.streams().find(frame_.stream);
    if (stream == nullptr || stream->reset_by_us) {
      block_.clear();
    } else {
      end_session(SessionEnd::kCompression, ErrorCode::kCompressionError);
    }
  }
  if (end_ == SessionEnd::kNone) tell();
}

/// After each frame, or part of one: ends the session if the peer has exceeded a bound.
void Nghttp2Session::settle() {
  if (end_ != SessionEnd::kNone) return;
  if (guard_.verdict() == GlitchVerdict::kClose)
    return end_session(SessionEnd::kGlitches, ErrorCode::kEnhanceYourCalm);
  if (guard_.verdict() == GlitchVerdict::kGoaway) say_goaway(ErrorCode::kEnhanceYourCalm);
  const std::size_t waiting = nghttp2_session_get_outbound_queue_size(library_);
  outbound_peak_ = std::max(outbound_peak_, static_cast<std::uint32_t>(waiting));
  if (waiting > limits_->outbound_frames_max)
    return end_session(SessionEnd::kOutboundQueue, ErrorCode::kEnhanceYourCalm);
  finish_if_done();
}

/// One side has sent GOAWAY, and no stream is left.
void Nghttp2Session::finish_if_done() noexcept {
  if (end_ == SessionEnd::kNone && (goaway_said_ || peer_goaway_) &&
      nghttp2_session_want_read(library_) == 0) {
    end_ = SessionEnd::kFinished;
  }
}

// ---- Events for the owner -----------------------------------------------------------------------

void Nghttp2Session::tell() {
  telling_ = true;
  const bool windows = seen_.windows;
  if (seen_.stream != 0) {
    if (Stream* stream = guard_.streams().find(seen_.stream); stream != nullptr) {
      if (seen_.block && block_.kind() == HeaderBlock::Kind::kRequest) {
        tell_request(*stream);
      } else if (seen_.block && block_.kind() == HeaderBlock::Kind::kTrailers) {
        tell_trailers(*stream);
      } else if (seen_.data_bytes > 0 || seen_.body_end) {
        tell_body(*stream);
      }
    }
    if (seen_.block) block_.clear();
  }
  if (windows) events_->on_windows_opened();
  telling_ = false;
  tell_ends();
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

/// The stream's head or trailers are invalid; HPACK is in sync, so other streams are not affected.
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

void Nghttp2Session::tell_trailers(Stream& stream) {
  HeaderList trailers;
  stream.peer_ended = true;
  const BlockFault fault = block_.finish_trailers(trailers);
  if (fault != BlockFault::kNone) return refuse_block(stream, fault);
  if (stream.content_length != Stream::kNoLength && stream.received != stream.content_length)
    return blame(stream, H2Glitch::kContentLengthMismatch, ErrorCode::kProtocolError);
  if (stream.reset_by_us || stream.discarding || !stream.held) return;
  const StreamId id = stream.id;
  events_->on_trailers(id, stream.user, trailers);
  if (Stream* still = guard_.streams().find(id); still != nullptr && !still->reset_by_us) {
    events_->on_body(id, still->user, {.data = nullptr, .len = 0, .status = BodyStatus::kComplete});
  }
}

void Nghttp2Session::tell_body(Stream& stream) {
  // The bytes leave the session here, even if they are discarded: return the connection's window.
  if (seen_.data_bytes > 0)
    check_library(nghttp2_session_consume_connection(library_, seen_.data_bytes));
  stream.received += seen_.data_bytes;
  if (seen_.body_end) stream.peer_ended = true;
  if (end_ != SessionEnd::kNone || !stream.open) return;
  if (stream.lingers) return cut_off_if_large(stream);
  if (stream.reset_by_us || stream.discarding || !stream.held) return;
  events_->on_body(stream.id, stream.user,
                   {.data = seen_.data,
                    .len = seen_.data_bytes,
                    .status = seen_.body_end ? BodyStatus::kComplete : BodyStatus::kContinue});
}

void Nghttp2Session::tell_ends() {
  if (std::exchange(telling_, true)) return;  // the running call reports all
  while (ends_ != StreamTable::kNone) {
    Stream& stream = guard_.streams().at(ends_);
    ends_ = std::exchange(stream.next_told, StreamTable::kNone);
    const StreamId id = stream.id;
    StreamEnd how = StreamEnd::kDone;
    if (stream.reset_by_peer) {
      how = StreamEnd::kPeerReset;
    } else if (stream.reset_by_us && !stream.we_ended) {
      how = StreamEnd::kReset;
    }
    stream.told = true;
    if (stream.user != nullptr)
      events_->on_stream_end(id, stream.user, how, static_cast<ErrorCode>(stream.end_code));
    Stream* still = guard_.streams().find(id);
    if (still != nullptr && !still->held && !still->open) guard_.streams().close(*still);
  }
  telling_ = false;
}

void Nghttp2Session::add_end(Stream& stream) noexcept {
  stream.next_told = ends_;
  ends_ = guard_.streams().index_of(stream);
}

// ---- The end -----------------------------------------------------------------------------------

void Nghttp2Session::end_session(SessionEnd end, ErrorCode code) {
  if (end_ != SessionEnd::kNone) return;
  end_ = end;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(library_);
  last_words_ = goaway_frame(static_cast<StreamId>(std::max(last, 0)), code);
  last_words_left_ = last_words_;
}

void Nghttp2Session::check_library(long result) {
  if (end_ != SessionEnd::kNone) return;
  if (result == NGHTTP2_ERR_NOMEM)
    return end_session(SessionEnd::kMemory, ErrorCode::kEnhanceYourCalm);
  if (result < 0 && nghttp2_is_fatal(static_cast<int>(result)) != 0)
    return end_session(SessionEnd::kInternal, ErrorCode::kInternalError);
}

/// The library itself detected a connection error.
void Nghttp2Session::on_library_error(ErrorCode code) {
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

void Nghttp2Session::say_goaway(ErrorCode code) {
  if (std::exchange(goaway_said_, true)) return;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(library_);
  guard_.on_goaway_sent(static_cast<StreamId>(std::max(last, 0)));
  check_library(nghttp2_submit_goaway(library_, NGHTTP2_FLAG_NONE, last,
                                      static_cast<std::uint32_t>(code), nullptr, 0));
}

void Nghttp2Session::announce_shutdown() {
  if (end_ != SessionEnd::kNone || goaway_said_) return;
  check_library(nghttp2_submit_shutdown_notice(library_));
}

void Nghttp2Session::shut_down() {
  if (end_ == SessionEnd::kNone) say_goaway(ErrorCode::kNoError);
}

bool Nghttp2Session::finished() const noexcept {
  return end_ != SessionEnd::kNone && !has_output();
}

TimePoint Nghttp2Session::next_expiry() const noexcept {
  if (end_ != SessionEnd::kNone) return {};
  TimePoint next{};
  if (!settings_acked_) next = settings_sent_ + limits_->settings_ack_timeout;
  if (guard_.in_header_block() || block_.under_way()) {
    const TimePoint block = block_began_ + limits_->header_block_timeout;
    next = next == TimePoint{} ? block : std::min(next, block);
  }
  if (linger_until_ != TimePoint{})
    next = next == TimePoint{} ? linger_until_ : std::min(next, linger_until_);
  return next;
}

void Nghttp2Session::expire(TimePoint now) {
  now_ = now;
  if (end_ != SessionEnd::kNone) return;
  if (!settings_acked_ && now >= settings_sent_ + limits_->settings_ack_timeout)
    return end_session(SessionEnd::kSettingsTimeout, ErrorCode::kSettingsTimeout);
  if (linger_until_ != TimePoint{} && now >= linger_until_) cut_off_lingering(now);
  const bool in_block = guard_.in_header_block() || block_.under_way();
  if (in_block && now >= block_began_ + limits_->header_block_timeout)
    end_session(SessionEnd::kHeaderTimeout, ErrorCode::kEnhanceYourCalm);
}

SessionStats Nghttp2Session::stats(TimePoint now) const noexcept {
  return {.memory_used = heap_.used_bytes(),
          .memory_peak = heap_.peak_bytes(),
          .memory_touched = heap_.touched_bytes(),
          .outbound_frames = nghttp2_session_get_outbound_queue_size(library_),
          .outbound_frames_peak = outbound_peak_,
          .streams = guard_.streams().size(),
          .glitch_score = guard_.score().score(now)};
}

}  // namespace weir::inline v0::http::h2
