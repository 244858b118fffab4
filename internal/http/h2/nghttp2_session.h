#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <nghttp2/nghttp2.h>

#include "http/h2/frame_guard.h"
#include "http/h2/header_block.h"
#include "http/h2/region_heap.h"
#include "http/h2/session.h"

namespace weir::inline v0::http::h2 {

/// A Session that uses libnghttp2 for HPACK, windows and frame writing, behind our FrameGuard.
///
/// Frames are passed to the library one at a time. Its callbacks only record what happened; the
/// owner's callbacks run after the library has returned, so that they may call the session. Every
/// connection error, found by the library or the guard, sends our own GOAWAY without allocating.
class Nghttp2Session final : public Session {
 public:
  struct Shared {
    const H2Limits& limits;
    const nghttp2_session_callbacks* callbacks;
    const nghttp2_option* option;
  };

  Nghttp2Session(const Shared& shared, std::span<std::byte> memory, SessionEvents& events);
  Nghttp2Session(const Nghttp2Session&) = delete;
  Nghttp2Session& operator=(const Nghttp2Session&) = delete;
  ~Nghttp2Session() override;

  /// Call it first; false if the memory is too small.
  [[nodiscard]] bool start(TimePoint now);
  static void set_callbacks(nghttp2_session_callbacks* callbacks) noexcept;

  [[nodiscard]] ReceiveResult receive(std::span<const std::byte> in, TimePoint now) override;
  void yield() noexcept override { yield_ = true; }
  [[nodiscard]] std::size_t produce(std::span<std::byte> out, TimePoint now) override;
  [[nodiscard]] bool has_output() const noexcept override;
  [[nodiscard]] SubmitStatus submit_head(StreamId id, const ResponseStart& start) override;
  [[nodiscard]] std::uint32_t sendable(StreamId id) const noexcept override;
  [[nodiscard]] std::uint32_t window(StreamId id) const noexcept override;
  [[nodiscard]] std::int32_t stream_window(StreamId id) const noexcept override;
  [[nodiscard]] bool write_data(StreamId id, const DataFrame& frame, TimePoint now) override;
  [[nodiscard]] SubmitStatus submit_trailers(StreamId id, std::span<const Field> fields) override;
  void grant(StreamId id, std::uint64_t bytes) override;
  void reset(StreamId id, ErrorCode code) override;
  void release(StreamId id) override;
  void announce_shutdown() override;
  void shut_down() override;
  [[nodiscard]] TimePoint next_expiry() const noexcept override;
  void expire(TimePoint now) override;
  [[nodiscard]] SessionEnd ended() const noexcept override { return end_; }
  [[nodiscard]] bool finished() const noexcept override;
  [[nodiscard]] bool peer_is_leaving() const noexcept override { return peer_goaway_; }
  [[nodiscard]] bool is_leaving() const noexcept override {
    return goaway_said_ || (end_ != SessionEnd::kNone && end_ != SessionEnd::kFinished);
  }
  [[nodiscard]] std::uint64_t glitches(H2Glitch glitch) const noexcept override {
    return guard_.score().count(glitch);
  }
  [[nodiscard]] std::uint64_t glitches() const noexcept override { return guard_.score().count(); }
  [[nodiscard]] std::uint32_t outbound_frames_peak() const noexcept override {
    return outbound_peak_;
  }
  [[nodiscard]] SessionStats stats(TimePoint now) const noexcept override;

  /// For tests: the heap that the library allocates from.
  [[nodiscard]] RegionHeap& heap() noexcept { return heap_; }

 private:
  struct Callbacks;  // the library's callbacks
  friend struct Callbacks;

  /// The events of one call into the library, reported to the owner after it.
  struct Seen {
    StreamId stream = 0;
    const std::uint8_t* data = nullptr;
    std::size_t data_bytes = 0;
    bool body_end = false;
    bool block = false;  // block_ is complete
    bool block_end = false;
    bool windows = false;
  };

  // Input.
  [[nodiscard]] std::size_t match_preface(std::span<const std::uint8_t> in) noexcept;
  [[nodiscard]] std::size_t begin_frame(std::span<const std::uint8_t> in);
  [[nodiscard]] std::size_t stage(std::span<const std::uint8_t> in, std::size_t wanted) noexcept;
  [[nodiscard]] bool judge(const FrameHeader& header, std::span<const std::uint8_t> prefix);
  [[nodiscard]] std::size_t proceed(std::span<const std::uint8_t> in);
  void feed(std::span<const std::uint8_t> bytes);
  void act_on(const FrameHeader& header, const Judgement& judgement);
  void settle();
  void finish_if_done() noexcept;
  [[nodiscard]] bool must_send_first() const noexcept;

  // Events for the owner.
  void tell();
  void tell_request(Stream& stream);
  void tell_body(Stream& stream);
  void tell_trailers(Stream& stream);
  void tell_ends();
  void refuse_block(Stream& stream, BlockFault fault);

  // Streams whose response was sent before the request was complete: see linger().
  void linger(Stream& stream);
  void end_lingering(StreamId id) noexcept;
  void cut_off_if_large(Stream& stream);
  void cut_off_lingering(TimePoint now);
  void add_end(Stream& stream) noexcept;

  // Output.
  /// Whether the library may still send: the session has not ended, or ended without an error.
  [[nodiscard]] bool library_speaks() const noexcept {
    return end_ == SessionEnd::kNone || end_ == SessionEnd::kFinished;
  }
  [[nodiscard]] bool pull();
  [[nodiscard]] SubmitStatus submit(Stream& stream, std::uint16_t status,
                                    std::span<const Field> fields, bool end);
  [[nodiscard]] bool must_wait(std::span<const Field> fields) const noexcept;
  void answer(Stream& stream, std::uint16_t status);
  void blame(Stream& stream, H2Glitch glitch, ErrorCode code);
  void reset_stream(Stream& stream, ErrorCode code);
  void end_session(SessionEnd end, ErrorCode code);
  void check_library(long result);
  void on_library_error(ErrorCode code);
  void build_settings() noexcept;
  void say_goaway(ErrorCode code);

  const H2Limits* limits_;
  SessionEvents* events_;
  RegionHeap heap_;
  nghttp2_mem memory_;
  FrameGuard guard_;
  HeaderBlock block_;
  nghttp2_session* library_ = nullptr;
  Shared shared_;
  TimePoint now_{};

  // Input state: the part of the current frame that has not arrived yet.
  std::size_t preface_seen_ = 0;
  std::array<std::uint8_t, kFrameHeaderBytes + 6> staged_{};
  std::uint32_t staged_bytes_ = 0;
  std::uint32_t frame_left_ = 0;
  FrameHeader frame_{};
  bool passing_ = false;
  StreamId doomed_ = 0;  // the current HEADERS frame opens it; it is then reset with …
  ErrorCode doomed_code_ = ErrorCode::kNoError;
  Seen seen_;
  std::uint16_t ends_ = StreamTable::kNone;  // streams whose end is not reported yet, newest first
  int invalid_ = 0;                          // the library's error for an invalid frame

  // Output state.
  std::span<const std::uint8_t> pulled_;  // the unsent part of a frame in the library's memory
  std::array<std::uint8_t, kFrameHeaderBytes + 4 * 6> settings_{};  // the first frame that is sent
  std::array<std::uint8_t, kGoawayBytes> last_words_{};
  std::span<const std::uint8_t> last_words_left_;
  Stream* writing_ = nullptr;  // the stream that write_data() is sending for
  const DataFrame* writing_frame_ = nullptr;
  bool written_ = false;
  std::uint32_t outbound_peak_ = 0;  // the maximum number of queued frames so far

  SessionEnd end_ = SessionEnd::kNone;
  TimePoint settings_sent_{};
  TimePoint block_began_{};
  TimePoint linger_until_{};  // zero: no stream lingers
  bool settings_said_ = false;
  bool settings_acked_ = false;
  bool peer_goaway_ = false;
  bool goaway_said_ = false;
  bool telling_ = false;
  bool yield_ = false;
};

}  // namespace weir::inline v0::http::h2
