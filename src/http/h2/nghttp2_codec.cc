#include "http/h2/nghttp2_codec.h"

#include <algorithm>

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

/// The guard counts these frames, so the library's own limits are set too high to be reached.
constexpr std::size_t kFarOff = 1'000'000;

}  // namespace

Nghttp2Codec::Nghttp2Codec(const Shared& shared, std::span<std::byte> memory, Side side,
                           StreamEvents& events)
    : limits_(&shared.limits),
      stream_events_(&events),
      heap_(behind_table(memory, shared.limits), kHeapFront),
      memory_(memory_over(heap_)),
      guard_(shared.limits, memory.data(), side),
      block_(heap_),
      shared_(shared),
      preface_seen_(side == Side::kClient ? kClientPreface.size() : 0) {}

std::size_t Nghttp2Codec::bytes_min(const H2Limits& limits) noexcept {
  return StreamTable::bytes_for(limits.concurrent_streams_max) + RegionHeap::kRegionBytesMin;
}

nghttp2_option* Nghttp2Codec::make_option(const H2Limits& limits) {
  nghttp2_option* option = nullptr;
  WEIR_ASSERT(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);  // windows are opened as bodies are granted
  nghttp2_option_set_no_recv_client_magic(option, 1);   // the session checks the preface
  nghttp2_option_set_no_http_messaging(option, 1);      // HeaderBlock checks messages
  nghttp2_option_set_no_closed_streams(option, 1);  // ClosedStreams records them, in two bits each
  nghttp2_option_set_max_deflate_dynamic_table_size(option, 4096);
  nghttp2_option_set_max_settings(option, limits.settings_entries_max);
  nghttp2_option_set_max_outbound_ack(option, kFarOff);
  nghttp2_option_set_max_continuations(option, kFarOff);  // the library counts reads, not frames
  nghttp2_option_set_stream_reset_rate_limit(option, kFarOff * kFarOff, kFarOff * kFarOff);
  return option;
}

// ---- Input ------------------------------------------------------------------------------------

ReceiveResult Nghttp2Codec::receive(std::span<const std::byte> in, TimePoint now) {
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
bool Nghttp2Codec::must_send_first() const noexcept {
  if (frame_left_ > 0 || preface_seen_ < kClientPreface.size()) return false;
  return queued_frames() >= limits_->outbound_frames_max / 2;
}

/// Without those that the library may not send now.
std::size_t Nghttp2Codec::queued_frames() const noexcept {
  const std::size_t all = nghttp2_session_get_outbound_queue_size(library_);
  return all - std::min<std::size_t>(all, held_back_);
}

std::size_t Nghttp2Codec::match_preface(std::span<const std::uint8_t> in) noexcept {
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
std::size_t Nghttp2Codec::begin_frame(std::span<const std::uint8_t> in) {
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

std::size_t Nghttp2Codec::stage(std::span<const std::uint8_t> in, std::size_t wanted) noexcept {
  if (staged_bytes_ >= wanted) return 0;
  const std::size_t n = std::min(in.size(), wanted - staged_bytes_);
  std::copy_n(in.begin(), n, staged_.begin() + staged_bytes_);
  staged_bytes_ += static_cast<std::uint32_t>(n);
  return n;
}

/// False if the session has ended.
bool Nghttp2Codec::judge(const FrameHeader& header, std::span<const std::uint8_t> prefix) {
  const Judgement judgement = guard_.judge(header, prefix, now_);
  act_on(header, judgement);
  frame_ = header;
  passing_ = judgement.action == Judgement::Action::kPass;
  return end_ == SessionEnd::kNone;
}

std::size_t Nghttp2Codec::proceed(std::span<const std::uint8_t> in) {
  const std::size_t n = std::min<std::size_t>(in.size(), frame_left_);
  frame_left_ -= static_cast<std::uint32_t>(n);
  if (passing_) feed(in.first(n));
  settle();
  return n;
}

void Nghttp2Codec::act_on(const FrameHeader& header, const Judgement& judgement) {
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

void Nghttp2Codec::feed(std::span<const std::uint8_t> bytes) {
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
void Nghttp2Codec::settle() {
  if (end_ != SessionEnd::kNone) return;
  if (guard_.verdict() == GlitchVerdict::kClose)
    return end_session(SessionEnd::kGlitches, ErrorCode::kEnhanceYourCalm);
  if (guard_.verdict() == GlitchVerdict::kGoaway && !goaway_said_) {
    say_goaway(ErrorCode::kEnhanceYourCalm);
    tell_leaving();
  }
  const std::size_t waiting = queued_frames();
  outbound_peak_ = std::max(outbound_peak_, static_cast<std::uint32_t>(waiting));
  if (waiting > limits_->outbound_frames_max)
    return end_session(SessionEnd::kOutboundQueue, ErrorCode::kEnhanceYourCalm);
  finish_if_done();
}

/// One side has sent GOAWAY, and no stream is left.
void Nghttp2Codec::finish_if_done() noexcept {
  if (end_ == SessionEnd::kNone && (goaway_said_ || peer_goaway_) &&
      nghttp2_session_want_read(library_) == 0) {
    end_ = SessionEnd::kFinished;
  }
}

}  // namespace weir::inline v0::http::h2
