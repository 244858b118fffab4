#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/h2_session_end.h"

#include "http/h2/closed_streams.h"
#include "http/h2/frame.h"
#include "http/h2/glitch_score.h"
#include "http/h2/stream_table.h"

namespace weir::inline v0::http::h2 {

/// What is to be done with one frame.
struct Judgement {
  enum class Action : std::uint8_t {
    kPass,  // to the codec
    kSkip,  // over its payload; nobody needs to see it
    kEnd,   // the connection is over: GOAWAY(code)
  };
  Action action = Action::kPass;
  SessionEnd end = SessionEnd::kNone;    // kEnd
  ErrorCode code = ErrorCode::kNoError;  // of GOAWAY, or of the RST_STREAM
  StreamId reset = 0;                    // also reset this stream …
  bool opens = false;                    // … which this very frame opens: after the codec saw it
};

/// Stands in front of the codec and looks at every frame header first: is a frame of this kind, of
/// this length, allowed now, for this stream, and how many of its kind were there?
///
/// It knows nothing of payloads but the first bytes of some (prefix_bytes()), and nothing of the
/// codec behind it: it is told of what the codec sends and closes. It owns the connection's stream
/// table and glitch score.
/// Promises: the judgement depends on frames, never on how the bytes were cut into reads.
/// Thread-safety: none. Cost: tens of nanoseconds per frame, no allocation.
class FrameGuard {
 public:
  FrameGuard(const H2Limits& limits, void* table_memory) noexcept;

  /// How many bytes of its payload must be there before a frame can be judged.
  [[nodiscard]] static std::uint32_t prefix_bytes(const FrameHeader& header) noexcept;

  /// `prefix` holds prefix_bytes(header) bytes.
  [[nodiscard]] Judgement judge(const FrameHeader& header, std::span<const std::uint8_t> prefix,
                                TimePoint now) noexcept;

  /// The worst that the score said so far.
  [[nodiscard]] GlitchVerdict verdict() const noexcept { return verdict_; }
  void glitch(H2Glitch glitch, TimePoint now) noexcept;

  // What the codec did, and what the peer knows of it.
  void on_data_sent() noexcept;
  /// A WINDOW_UPDATE went out; stream 0 is the connection.
  void on_window_sent(StreamId id, std::uint32_t bytes) noexcept;
  /// The peer has acknowledged our SETTINGS: from now on streams begin with our window, not 65535.
  void on_settings_acked() noexcept;
  void on_closed(StreamId id, ClosedHow how) noexcept;
  /// No stream above `last` is begun any more.
  void on_goaway_sent(StreamId last) noexcept { goaway_last_ = last; }

  [[nodiscard]] StreamTable& streams() noexcept { return table_; }
  [[nodiscard]] const StreamTable& streams() const noexcept { return table_; }
  [[nodiscard]] const GlitchScore& score() const noexcept { return score_; }
  /// The highest stream the peer has used.
  [[nodiscard]] StreamId last_stream() const noexcept { return last_stream_; }
  /// A header block is under way: HEADERS came, END_HEADERS not yet.
  [[nodiscard]] bool in_header_block() const noexcept { return block_stream_ != 0; }

 private:
  using Prefix = std::span<const std::uint8_t>;

  [[nodiscard]] Judgement judge_data(const FrameHeader& h, Prefix prefix, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_headers(const FrameHeader& h, Prefix prefix,
                                        TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_continuation(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_priority(const FrameHeader& h, Prefix prefix,
                                         TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_rst_stream(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_settings(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_ping(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_goaway(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] Judgement judge_window_update(const FrameHeader& h, Prefix prefix,
                                              TimePoint now) noexcept;

  [[nodiscard]] Judgement open_stream(const FrameHeader& h, bool self_dependent,
                                      TimePoint now) noexcept;
  /// DATA or HEADERS for a stream that is not open.
  [[nodiscard]] Judgement judge_closed(StreamId id, TimePoint now) noexcept;
  [[nodiscard]] Judgement count_fragment(const FrameHeader& h, TimePoint now) noexcept;
  [[nodiscard]] bool is_idle(StreamId id) const noexcept {
    return id > last_stream_ || id % 2 == 0;  // even numbers are ours, and we open none
  }
  [[nodiscard]] Stream* find_open(StreamId id) const noexcept;
  [[nodiscard]] Judgement judge_body(Stream& stream, const FrameHeader& h, std::uint32_t content,
                                     TimePoint now) noexcept;
  void late_frame(TimePoint now) noexcept;

  const H2Limits* limits_;
  StreamTable table_;
  ClosedStreams closed_;
  GlitchScore score_;
  GlitchVerdict verdict_ = GlitchVerdict::kBearable;
  FrameAllowance priority_;
  FrameAllowance settings_;
  FrameAllowance ping_;
  FrameAllowance window_update_;
  FrameAllowance unknown_;
  std::uint32_t late_frames_ = 64;  // frames for closed streams that are still free
  StreamId last_stream_ = 0;
  StreamId goaway_last_ = kStreamIdMax;
  StreamId block_stream_ = 0;
  std::uint32_t block_bytes_ = 0;
  std::uint32_t block_fragments_ = 0;
  std::uint32_t block_small_ = 0;
  std::int64_t connection_window_;  // bytes the peer may still send
  std::int64_t initial_window_ = kDefaultWindow;
  StreamId empty_data_stream_ = 0;  // the last frame was empty DATA for it
  bool got_settings_ = false;
};

}  // namespace weir::inline v0::http::h2
