#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/server/handler.h"

#include "h2/h2_stream.h"
#include "http/h2/session.h"
#include "http/h2/session_kit.h"
#include "session.h"

namespace weir::inline v0::inline server {

class Connection;
class LoopShard;
struct ServerConfig;

/// HTTP/2 on one connection: turns the codec's events into streams, and the streams' output into
/// frames in the connection's output.
///
/// It is at the front of a block of the session pool, followed by the codec's memory, so a
/// connection without HTTP/2 needs none of it. Streams that have something to send are in two
/// rings: `ready_`, where each sends one frame in turn while the output has room, and
/// `blocked_on_window_`, until the peer opens a window. Handlers are never called from inside the
/// codec's output calls: streams that end there are recorded and reported afterwards.
///
/// Promises: at most kRequestsPerRound requests begin before other connections get a turn; a stream
/// that the peer does not read, or does not feed, at the minimum rate is ended without effect on
/// other streams; unsent output stays within the connection's write quota.
/// Thread-safety: its loop's thread. Lifetime: make() to destroy(); the connection's.
class H2Session final : public Session, private http::h2::SessionEvents {
 public:
  static constexpr std::uint32_t kRequestsPerRound = 16;

  /// In a block of the shard's pool; nullptr, and counted, if none is free.
  [[nodiscard]] static H2Session* make(Connection& connection, LoopShard& shard, TimePoint now);
  static void destroy(H2Session* session) noexcept;
  /// Size of one block: this, the codec, and room for a few frames if no write buffer is free.
  [[nodiscard]] static std::size_t block_bytes(const http::H2Limits& limits) noexcept;

  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  // Session
  bool advance(TimePoint now) override;
  bool on_flushed(TimePoint now) override;
  void on_end_of_input(TimePoint now) override;
  void on_disconnected(TimePoint now) override { on_end_of_input(now); }
  void end_streams(CloseReason reason) override;
  bool wants_input() const noexcept override { return !backlog_; }
  bool idle() const noexcept override { return streams_.empty(); }
  bool awaits_peer() const noexcept override;
  Duration blocked_time(TimePoint now) const noexcept override;
  std::uint32_t requests_open() const noexcept override {
    return static_cast<std::uint32_t>(streams_.size());
  }
  std::uint32_t end_blocked(std::uint32_t count, TimePoint now) override;
  bool unused() const noexcept override { return requests_ == 0; }
  bool critical() const noexcept override;
  bool wants_room() const noexcept override { return blocked_on_output_ || !ready_.empty(); }
  TimePoint deadline() const noexcept override;
  void on_deadline(TimePoint now) override;
  void on_drain() override;

  // For its streams.
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] const Connection& connection() const noexcept { return connection_; }
  [[nodiscard]] LoopShard& shard() const noexcept { return shard_; }
  [[nodiscard]] http::h2::Session& wire() noexcept { return *wire_; }
  [[nodiscard]] const http::h2::Session& wire() const noexcept { return *wire_; }
  [[nodiscard]] TimePoint now() const noexcept;
  /// Bytes ever put into the output.
  [[nodiscard]] std::uint64_t put_bytes() const noexcept { return put_; }
  /// Puts all queued frames into the output. False if some had no room.
  [[nodiscard]] bool put_frames(TimePoint now);
  enum class PutStop : std::uint8_t { kAll, kWindow, kRoom };
  struct Put {
    std::size_t bytes = 0;
    PutStop stop = PutStop::kAll;
  };
  /// Frames as much of `bytes` as windows and buffers allow; the last frame has `end`.
  [[nodiscard]] Put put_data(const H2Stream& stream, std::string_view bytes, bool end,
                             TimePoint now);
  /// Whether that many bytes of DATA can be sent as a whole now; if so, their room is reserved.
  [[nodiscard]] bool reserve(const H2Stream& stream, std::size_t head_bytes,
                             std::size_t body_bytes);
  /// A buffer of the connection's quota for bytes that cannot be sent yet, or nullptr.
  [[nodiscard]] WriteBuffer* hold(io::Access access);
  void unpark(WriteBuffer* buffer) noexcept;
  void retry_blocked() noexcept { windows_opened_ = true; }
  /// Whether the connection holds as many write buffers as its quota allows.
  [[nodiscard]] bool at_quota() const noexcept;
  /// Whether another stream is ready and it is not this stream's turn.
  [[nodiscard]] bool must_queue(const H2Stream& stream) const noexcept {
    return turn_ != &stream && !ready_.empty();
  }
  [[nodiscard]] bool others_wait() const noexcept { return !ready_.empty(); }
  void wait_for_turn(H2Stream& stream);
  void wait_for_window(H2Stream& stream);
  void stop_waiting(H2Stream& stream) noexcept;
  void wait_for_drain(H2Stream& stream) {
    if (!stream.drain_hook.linked()) drains_.push_back(stream);
  }
  void add_work(H2Stream& stream);
  /// Aborts the stream: on_abort() follows when no call into it is active.
  void add_abort(H2Stream& stream, CloseReason reason);
  /// The response is complete, and the stream has ended on the wire.
  void add_finished(H2Stream& stream);
  void watch_deadline(TimePoint at) noexcept { next_check_ = std::min(next_check_, at); }
  [[nodiscard]] ServerRequest request_of(const http::h2::RequestHead& head) const;
  void give_back_lease(H2Stream& stream) noexcept;
  /// The handler has taken bytes: the peer may send as many again, or more, or fewer.
  void return_window(H2Stream& stream, std::size_t bytes);
  void touch() noexcept;
  void note_critical(bool critical) noexcept {
    critical_streams_ = critical ? critical_streams_ + 1 : critical_streams_ - 1;
  }

 private:
  using All = IntrusiveList<H2Stream, &H2Stream::all_hook>;
  using Ring = IntrusiveList<H2Stream, &H2Stream::turn_hook>;
  using Work = IntrusiveList<H2Stream, &H2Stream::work_hook>;
  using Ends = IntrusiveList<H2Stream, &H2Stream::end_hook>;
  using Drains = IntrusiveList<H2Stream, &H2Stream::drain_hook>;
  static constexpr std::size_t kSpareBytes = 1024;

  H2Session(Connection& connection, LoopShard& shard, TimePoint now) noexcept;
  ~H2Session() = default;

  // h2::SessionEvents
  void* on_request(http::h2::StreamId id, const http::h2::RequestHead& head) override;
  void on_body(http::h2::StreamId, void* user, const http::BodyChunk& chunk) override {
    static_cast<H2Stream*>(user)->receive(chunk);
  }
  void on_trailers(http::h2::StreamId, void* user, const http::HeaderList& trailers) override {
    static_cast<H2Stream*>(user)->receive(trailers);
  }
  void on_stream_end(http::h2::StreamId id, void* user, http::h2::StreamEnd end,
                     http::h2::ErrorCode code) override;
  void on_windows_opened() override { windows_opened_ = true; }

  [[nodiscard]] io::Access access() const noexcept {
    return critical() ? io::Access::kCritical : io::Access::kOrdinary;
  }
  [[nodiscard]] Result<H2Stream*, RefuseReason> open_stream(http::h2::StreamId id, bool has_body,
                                                            io::Access access);
  [[nodiscard]] bool take_lease(H2Stream& stream, io::Access access);
  void fit_window(H2Stream& stream);
  [[nodiscard]] H2Stream* next_ready() noexcept;
  [[nodiscard]] bool receive(TimePoint now);
  [[nodiscard]] bool do_work();
  [[nodiscard]] bool tell_ends();
  [[nodiscard]] bool pump(TimePoint now);
  [[nodiscard]] bool put_frames_into_spare(TimePoint now);
  void leave_ring(H2Stream& stream) noexcept;
  void finish_session(TimePoint now);
  void count_glitches() noexcept;
  void forget(H2Stream& stream);
  void check_streams(TimePoint now);
  void say_goodbye(TimePoint now) noexcept;
  [[nodiscard]] TimePoint idle_deadline() const noexcept;
  [[nodiscard]] std::span<std::byte> spare() noexcept;

  Connection& connection_;
  LoopShard& shard_;
  http::h2::SessionPtr wire_;
  All streams_;
  Ring ready_;
  Ring blocked_on_window_;
  Work work_;
  Ends over_;     // reset on the wire: to be aborted
  Ends closing_;  // complete: to be finished in this order, when their bytes are sent
  Drains drains_;
  const H2Stream* turn_ = nullptr;
  std::uint64_t put_ = 0;  // bytes ever put into the output
  std::uint64_t requests_ = 0;
  std::uint64_t glitches_counted_ = 0;
  std::array<std::uint32_t, http::kH2GlitchCount> glitches_told_{};
  TimePoint last_activity_{};
  TimePoint next_check_ = TimePoint::max();  // of the streams' rates
  TimePoint final_goaway_ = TimePoint::max();
  std::uint32_t held_ = 0;
  std::uint32_t leases_ = 0;  // streams with a lease
  std::uint32_t budget_ = 0;
  std::uint32_t critical_streams_ = 0;
  bool backlog_ = false;            // input that cannot be processed yet
  bool blocked_on_output_ = false;  // some frames have no room
  bool spare_used_ = false;
  bool windows_opened_ = false;
  bool leaving_ = false;  // the connection is being finished
  bool goaway_counted_ = false;
  bool receiving_ = false;
  bool idled_ = false;       // closed by the idle timeout
  bool had_output_ = false;  // before the flush
};

}  // namespace weir::inline v0::inline server
