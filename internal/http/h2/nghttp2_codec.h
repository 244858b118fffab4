#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <nghttp2/nghttp2.h>

#include "http/h2/frame_guard.h"
#include "http/h2/header_block.h"
#include "http/h2/region_heap.h"
#include "http/h2/session_base.h"

namespace weir::inline v0::http::h2 {

/// What the two sides of a connection share: libnghttp2 for HPACK, windows and frame writing,
/// behind our FrameGuard, in one block of memory. Nghttp2Session and Nghttp2ClientSession derive
/// from it.
///
/// Frames are passed to the library one at a time. Its callbacks only record what happened; the
/// owner's callbacks run after the library has returned, so that they may call the session. Every
/// connection error, found by the library or the guard, sends our own GOAWAY without allocating.
class Nghttp2Codec {
 public:
  struct Shared {
    const H2Limits& limits;
    const nghttp2_session_callbacks* callbacks;
    const nghttp2_option* option;
  };

  Nghttp2Codec(const Nghttp2Codec&) = delete;
  Nghttp2Codec& operator=(const Nghttp2Codec&) = delete;

  static void set_callbacks(nghttp2_session_callbacks* callbacks) noexcept;
  /// Options that both sides need; the caller deletes them.
  [[nodiscard]] static nghttp2_option* make_option(const H2Limits& limits);
  /// Bytes that the stream table and the smallest heap need.
  [[nodiscard]] static std::size_t bytes_min(const H2Limits& limits) noexcept;

  /// For tests: the library, and the heap that it allocates from.
  [[nodiscard]] RegionHeap& heap() noexcept { return heap_; }
  [[nodiscard]] nghttp2_session* library() noexcept { return library_; }

 protected:
  Nghttp2Codec(const Shared& shared, std::span<std::byte> memory, Side side, StreamEvents& events);
  // The library owns nothing but memory inside the block, which is freed with the block.
  // nghttp2_session_del() is not needed, and it frees twice after some failed allocations.
  virtual ~Nghttp2Codec() = default;

  // The methods of SessionBase.
  [[nodiscard]] ReceiveResult receive(std::span<const std::byte> in, TimePoint now);
  void yield() noexcept { yield_ = true; }
  [[nodiscard]] std::size_t produce(std::span<std::byte> out, TimePoint now);
  [[nodiscard]] bool has_output() const noexcept;
  [[nodiscard]] std::uint32_t sendable(StreamId id) const noexcept;
  [[nodiscard]] std::uint32_t window(StreamId id) const noexcept;
  [[nodiscard]] std::int32_t stream_window(StreamId id) const noexcept;
  [[nodiscard]] bool write_data(StreamId id, const DataFrame& frame, TimePoint now);
  [[nodiscard]] SubmitStatus submit_trailers(StreamId id, std::span<const Field> fields);
  void grant(StreamId id, std::uint64_t bytes);
  void reset(StreamId id, ErrorCode code);
  void release(StreamId id);
  void shut_down();
  [[nodiscard]] TimePoint next_expiry() const noexcept;
  void expire(TimePoint now);
  [[nodiscard]] SessionEnd ended() const noexcept { return end_; }
  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] bool peer_is_leaving() const noexcept { return peer_goaway_; }
  [[nodiscard]] bool is_leaving() const noexcept {
    return goaway_said_ || (end_ != SessionEnd::kNone && end_ != SessionEnd::kFinished);
  }
  [[nodiscard]] const GlitchScore& score() const noexcept { return guard_.score(); }
  [[nodiscard]] std::uint32_t outbound_frames_peak() const noexcept { return outbound_peak_; }
  [[nodiscard]] SessionStats stats(TimePoint now) const noexcept;

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

  // Called inside the library; they record and submit, and never call the owner.
  /// A header block begins: calls block_.begin(). Returns the result for the library.
  [[nodiscard]] virtual int begin_block(StreamId id) = 0;
  virtual void on_received(const nghttp2_frame& frame) = 0;
  /// A frame of this stream was sent; its flags are updated.
  virtual void on_sent(const nghttp2_frame& frame, Stream& stream) = 0;
  virtual void on_closing(Stream& stream, ErrorCode code) = 0;

  // Called after it; they call the owner.
  virtual void tell_block(Stream& stream) = 0;
  virtual void tell_body(Stream& stream) = 0;
  virtual void tell_connection() = 0;
  virtual void tell_end(StreamId id, const Stream& stream) = 0;
  /// The score asked for a GOAWAY, and it was queued.
  virtual void tell_leaving() = 0;

  /// The peer's head or trailers are invalid; HPACK is in sync, so other streams are not affected.
  virtual void refuse_block(Stream& stream, BlockFault fault) = 0;

  // For tell_block() and tell_body().
  void tell_trailers(Stream& stream);
  /// Counts the bytes and returns the connection's window. False: do not deliver them.
  [[nodiscard]] bool take_body(Stream& stream);
  void deliver_body(Stream& stream);
  /// The owner wants to receive more of this stream.
  [[nodiscard]] static bool listens(const Stream& stream) noexcept {
    return !stream.reset_by_us && !stream.discarding && stream.held;
  }

  // Output.
  /// A header list of this size must not be submitted before frames were sent.
  [[nodiscard]] bool must_wait(std::size_t bytes) const noexcept;
  void blame(Stream& stream, H2Glitch glitch, ErrorCode code);
  void reset_stream(Stream& stream, ErrorCode code);
  void add_end(Stream& stream) noexcept;
  static ssize_t read_body(nghttp2_session* library, std::int32_t id, std::uint8_t* into,
                           std::size_t bytes_max, std::uint32_t* flags, nghttp2_data_source* source,
                           void* user);

  void end_session(SessionEnd end, ErrorCode code);
  void check_library(long result);
  void say_goaway(ErrorCode code);
  void finish_if_done() noexcept;

  const H2Limits* limits_;
  StreamEvents* stream_events_;
  RegionHeap heap_;
  nghttp2_mem memory_;
  FrameGuard guard_;
  HeaderBlock block_;
  nghttp2_session* library_ = nullptr;
  Shared shared_;
  TimePoint now_{};

  Seen seen_;
  StreamId doomed_ = 0;  // the current HEADERS frame opens it; it is then reset with …
  ErrorCode doomed_code_ = ErrorCode::kNoError;

  std::span<const std::uint8_t> first_frame_;  // sent instead of the library's first frame
  std::uint32_t held_back_ = 0;                // queued frames that the library may not send now
  SessionEnd end_ = SessionEnd::kNone;
  TimePoint settings_sent_{};
  bool goaway_said_ = false;
  bool owes_ends_ = false;  // ends are to be told, though no frame may be left to send

 private:
  struct Callbacks;  // the library's callbacks
  friend struct Callbacks;

  // Input.
  [[nodiscard]] std::size_t match_preface(std::span<const std::uint8_t> in) noexcept;
  [[nodiscard]] std::size_t begin_frame(std::span<const std::uint8_t> in);
  [[nodiscard]] std::size_t stage(std::span<const std::uint8_t> in, std::size_t wanted) noexcept;
  [[nodiscard]] bool judge(const FrameHeader& header, std::span<const std::uint8_t> prefix);
  [[nodiscard]] std::size_t proceed(std::span<const std::uint8_t> in);
  void feed(std::span<const std::uint8_t> bytes);
  void act_on(const FrameHeader& header, const Judgement& judgement);
  void settle();
  [[nodiscard]] bool must_send_first() const noexcept;
  [[nodiscard]] std::size_t queued_frames() const noexcept;

  void tell();
  void tell_ends();
  /// Whether the library may still send: the session has not ended, or ended without an error.
  [[nodiscard]] bool library_speaks() const noexcept {
    return end_ == SessionEnd::kNone || end_ == SessionEnd::kFinished;
  }
  [[nodiscard]] bool pull();
  void on_library_error(ErrorCode code);

  // Input state: the part of the current frame that has not arrived yet.
  std::size_t preface_seen_ = 0;
  std::array<std::uint8_t, kFrameHeaderBytes + 6> staged_{};
  std::uint32_t staged_bytes_ = 0;
  std::uint32_t frame_left_ = 0;
  FrameHeader frame_{};
  bool passing_ = false;
  std::uint16_t ends_ = StreamTable::kNone;  // streams whose end is not reported yet, newest first

  // Output state.
  std::span<const std::uint8_t> pulled_;  // the unsent part of a frame in the library's memory
  std::array<std::uint8_t, kGoawayBytes> last_words_{};
  std::span<const std::uint8_t> last_words_left_;
  Stream* writing_ = nullptr;  // the stream that write_data() is sending for
  const DataFrame* writing_frame_ = nullptr;
  bool written_ = false;
  std::uint32_t outbound_peak_ = 0;  // the maximum number of queued frames so far

  TimePoint block_began_{};
  bool settings_acked_ = false;
  bool peer_goaway_ = false;
  bool telling_ = false;
  bool yield_ = false;
};

}  // namespace weir::inline v0::http::h2
