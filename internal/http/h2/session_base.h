#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/h2_session_end.h"
#include "weir/experimental/http/header_view.h"

#include "http/h2/frame.h"

namespace weir::inline v0::http::h2 {

/// A field to send. Names are sent in lower case.
struct Field {
  std::string_view name;
  std::string_view value;
};

/// How a stream ended.
enum class StreamEnd : std::uint8_t {
  kDone,       // both sides ended it regularly
  kPeerReset,  // the peer reset it
  kReset,      // reset by us: by the owner, or because of the peer's input
};

/// The events of both sides; see SessionEvents and ClientEvents for when they are called.
class StreamEvents {
 public:
  /// A piece of the peer's body, within the granted bytes. Exactly one piece is last(), possibly
  /// empty; there is none if the head ended the stream.
  virtual void on_body(StreamId id, void* user, const BodyChunk& chunk) = 0;
  /// Comes before the last piece of the body, which is then empty.
  virtual void on_trailers(StreamId id, void* user, const HeaderList& trailers) = 0;
  /// The peer opened a window: sendable() may now be larger, for any stream.
  virtual void on_windows_opened() = 0;

 protected:
  ~StreamEvents() = default;
};

enum class ReceiveStatus : std::uint8_t {
  kOk,       // all input was consumed
  kBlocked,  // output must be sent first: call produce(), then pass the rest again
  kYielded,  // the owner asked to pause: pass the rest again
  kEnded,    // see ended(); the rest of the input is ignored
};
struct ReceiveResult {
  std::size_t consumed = 0;
  ReceiveStatus status = ReceiveStatus::kOk;
};

enum class SubmitStatus : std::uint8_t {
  kOk,
  kBlocked,   // too many frames are queued: call produce() first
  kClosed,    // the stream has ended, or this part was already sent
  kBadField,  // a name or value that must not be sent
  kNoMemory,  // the session has ended
};

/// One DATA frame to send. Its nine header bytes are written to `header`, which may be directly
/// before the payload, so that both are sent with one write.
struct DataFrame {
  std::span<std::byte, kFrameHeaderBytes> header;
  std::uint32_t payload_bytes = 0;  // at most sendable()
  bool end = false;
};

struct SessionStats {
  std::size_t memory_used = 0;
  std::size_t memory_peak = 0;
  std::size_t memory_touched = 0;  // the maximum extent of memory written so far
  std::size_t outbound_frames = 0;
  std::size_t outbound_frames_peak = 0;
  std::uint32_t streams = 0;  // places in use: open, or not released by their owner
  double glitch_score = 0;
};

/// What both sides of one HTTP/2 connection have in common, without the socket: bytes in, events
/// out; calls in, bytes out. Session is the server's side, ClientSession the client's.
///
/// Promises: uses only the block that it was created in. A peer cannot make it hold more frames
/// than outbound_frames_max or more streams than concurrent_streams_max (a stream counts until its
/// owner releases it), or process input ahead of its output: receive() stops until produce() is
/// called. A body byte reaches the owner only if it was granted. Events and output do not depend on
/// how the input was split.
/// Thread-safety: none. Cost: no allocation outside its block, no copy of body bytes.
/// Lifetime: the block, the limits and the events must outlive it. Its streams end with it: the
/// owner must drop them before it destroys the session.
class SessionBase {
 public:
  SessionBase(const SessionBase&) = delete;
  SessionBase& operator=(const SessionBase&) = delete;
  virtual ~SessionBase() = default;

  [[nodiscard]] virtual ReceiveResult receive(std::span<const std::byte> in, TimePoint now) = 0;
  /// Called from an event of receive(): makes receive() return before the next frame.
  virtual void yield() noexcept = 0;

  /// Copies queued frames (except DATA) into `out`; returns the number of bytes written.
  [[nodiscard]] virtual std::size_t produce(std::span<std::byte> out, TimePoint now) = 0;
  [[nodiscard]] virtual bool has_output() const noexcept = 0;

  /// Payload bytes that one DATA frame could carry now: windows, frame size. 0 while has_output().
  [[nodiscard]] virtual std::uint32_t sendable(StreamId id) const noexcept = 0;
  /// The smaller of the windows of the stream and of the connection, in any state of the session.
  [[nodiscard]] virtual std::uint32_t window(StreamId id) const noexcept = 0;
  /// The window of the stream alone; 0 also if it is negative, -1 if the stream is not open.
  [[nodiscard]] virtual std::int32_t stream_window(StreamId id) const noexcept = 0;
  /// Frames payload_bytes (at most sendable()); false if that is not possible. The header is
  /// written when it returns, and the frame must be sent before any later output of produce().
  [[nodiscard]] virtual bool write_data(StreamId id, const DataFrame& frame, TimePoint now) = 0;
  /// Ends our message after its data.
  [[nodiscard]] virtual SubmitStatus submit_trailers(StreamId id,
                                                     std::span<const Field> fields) = 0;

  /// The owner accepts this number of further body bytes. WINDOW_UPDATE is sent before the peer's
  /// window is used up.
  virtual void grant(StreamId id, std::uint64_t bytes) = 0;
  /// Ends the stream now. on_stream_end(kReset) follows, but not inside this call.
  virtual void reset(StreamId id, ErrorCode code) = 0;
  /// The owner's work for an ended stream is finished: its place becomes free. If called before the
  /// end, the place becomes free at the end.
  virtual void release(StreamId id) = 0;

  /// Sends GOAWAY with the last stream and accepts (a client: opens) no new one.
  virtual void shut_down() = 0;

  /// When expire() has work to do; zero: never.
  [[nodiscard]] virtual TimePoint next_expiry() const noexcept = 0;
  virtual void expire(TimePoint now) = 0;

  /// Why it ended; kNone while it has not. Output (a GOAWAY) may still be unsent.
  [[nodiscard]] virtual SessionEnd ended() const noexcept = 0;
  /// It has ended, and all output is sent: close the connection.
  [[nodiscard]] virtual bool finished() const noexcept = 0;
  [[nodiscard]] virtual bool peer_is_leaving() const noexcept = 0;  // it sent GOAWAY
  [[nodiscard]] virtual bool is_leaving() const noexcept = 0;       // we did, with the last stream

  [[nodiscard]] virtual std::uint64_t glitches(H2Glitch glitch) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t glitches() const noexcept = 0;  // the sum of all kinds
  [[nodiscard]] virtual std::uint32_t outbound_frames_peak() const noexcept = 0;
  [[nodiscard]] virtual SessionStats stats(TimePoint now) const noexcept = 0;

 protected:
  SessionBase() = default;
};

}  // namespace weir::inline v0::http::h2
