#pragma once

#include <algorithm>
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

/// Which side of the connection we are.
enum class Side : std::uint8_t { kServer, kClient };

/// The decision about one frame.
struct Judgement {
  enum class Action : std::uint8_t {
    kPass,  // pass it to the codec
    kSkip,  // skip its payload; the codec does not need it
    kEnd,   // end the connection: GOAWAY(code)
  };
  Action action = Action::kPass;
  SessionEnd end = SessionEnd::kNone;    // kEnd
  ErrorCode code = ErrorCode::kNoError;  // of GOAWAY, or of the RST_STREAM
  StreamId reset = 0;                    // also reset this stream …
  bool opens = false;  // … which this frame opens: after the codec has decoded it
};

/// Checks every frame header before the codec: whether a frame of this kind and length is allowed
/// now for this stream, and whether there were too many of its kind.
///
/// It reads only the first bytes of some payloads (prefix_bytes()), and does not depend on the
/// codec: the session reports to it what the codec sends and closes. It owns the connection's
/// stream table and glitch score. A server's streams are opened by the peer's frames; a client
/// opens its streams itself (open_own()), and the peer's frames only answer them. Promises: the
/// decision depends on frames, never on how the bytes were split into reads. Thread-safety: none.
/// Cost: tens of nanoseconds per frame, no allocation.
class FrameGuard {
 public:
  FrameGuard(const H2Limits& limits, void* table_memory, Side side = Side::kServer) noexcept;

  /// The number of payload bytes that must have arrived before a frame can be judged.
  [[nodiscard]] static std::uint32_t prefix_bytes(const FrameHeader& header) noexcept;

  /// `prefix` holds prefix_bytes(header) bytes.
  [[nodiscard]] Judgement judge(const FrameHeader& header, std::span<const std::uint8_t> prefix,
                                TimePoint now) noexcept;

  /// The worst verdict of the score so far.
  [[nodiscard]] GlitchVerdict verdict() const noexcept { return verdict_; }
  void glitch(H2Glitch glitch, TimePoint now) noexcept {
    verdict_ = std::max(verdict_, score_.add(glitch, now));
  }

  /// A client's new stream. nullptr if every place is taken.
  [[nodiscard]] Stream* open_own(StreamId id) noexcept;
  /// Its head was sent: the peer may use it. Numbers below it that were not sent stay unused.
  void on_own_sent(StreamId id) noexcept;
  void on_ping_sent() noexcept { expects_pong_ = true; }
  void on_pong() noexcept { expects_pong_ = false; }

  // Reports of what the codec did, and of what the peer has acknowledged.
  void on_data_sent() noexcept;
  /// A WINDOW_UPDATE was sent; stream 0 is the connection.
  void on_window_sent(StreamId id, std::uint32_t bytes) noexcept;
  /// The peer has acknowledged our SETTINGS: new streams now start with our window, not with 65535.
  void on_settings_acked() noexcept;
  void on_closed(StreamId id, ClosedHow how) noexcept;
  /// Streams above `last` are not accepted any more.
  void on_goaway_sent(StreamId last) noexcept { goaway_last_ = last; }

  [[nodiscard]] StreamTable& streams() noexcept { return table_; }
  [[nodiscard]] const StreamTable& streams() const noexcept { return table_; }
  [[nodiscard]] const GlitchScore& score() const noexcept { return score_; }
  /// The highest stream that was used.
  [[nodiscard]] StreamId last_stream() const noexcept { return last_stream_; }
  /// Inside a header block: HEADERS has arrived, END_HEADERS has not.
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
    return id > last_stream_ || id % 2 == 0;  // even numbers are for pushes, which nobody sends
  }
  [[nodiscard]] Stream* find_open(StreamId id) const noexcept;
  [[nodiscard]] Judgement judge_body(Stream& stream, const FrameHeader& h, std::uint32_t content,
                                     TimePoint now) noexcept;
  void late_frame(TimePoint now) noexcept;
  void earn_by_stream() noexcept;

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
  StreamId empty_data_stream_ = 0;  // the last frame was an empty DATA frame for this stream
  Side side_;
  bool got_settings_ = false;
  bool expects_pong_ = false;  // a client's PING is not answered yet
};

}  // namespace weir::inline v0::http::h2
