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
#include "http/h2/header_block.h"

namespace weir::inline v0::http::h2 {

/// A field to be sent. Names go out in lower case.
struct Field {
  std::string_view name;
  std::string_view value;
};

/// How a stream ended.
enum class StreamEnd : std::uint8_t {
  kDone,       // both sides said all they had to say
  kPeerReset,  // the peer gave it up
  kReset,      // we did: the owner, or because of what the peer sent
};

/// Told by a session from inside receive(), produce() and write_data(). Any method of the session
/// may be called from any of these, but for receive(), and but for produce() and write_data() from
/// on_stream_end().
///
/// For each accepted stream: on_request, (on_body | on_trailers)*, on_stream_end, in this order.
/// Views die when the callback returns.
class SessionEvents {
 public:
  /// A complete, checked head. Returns what the owner calls this stream, or nullptr: it is refused,
  /// and the peer told that it may try again.
  [[nodiscard]] virtual void* on_request(StreamId id, const RequestHead& head) = 0;
  /// A piece of body within what was granted. Exactly one is last(), possibly empty; none at all
  /// when the head ended the stream.
  virtual void on_body(StreamId id, void* user, const BodyChunk& chunk) = 0;
  /// Before the last, then empty, piece of body.
  virtual void on_trailers(StreamId id, void* user, const HeaderList& trailers) = 0;
  /// The stream is over as far as the wire is concerned. Call release() once the work for it is.
  virtual void on_stream_end(StreamId id, void* user, StreamEnd end, ErrorCode code) = 0;
  /// The peer opened windows: sendable() may be larger now, for any stream.
  virtual void on_windows_opened() = 0;

 protected:
  ~SessionEvents() = default;
};

enum class ReceiveStatus : std::uint8_t {
  kOk,       // all was consumed
  kBlocked,  // output must go first: produce(), then give the rest again
  kYielded,  // the owner had enough for now: give the rest again
  kEnded,    // see ended(); what is left of the input means nothing
};
struct ReceiveResult {
  std::size_t consumed = 0;
  ReceiveStatus status = ReceiveStatus::kOk;
};

enum class SubmitStatus : std::uint8_t {
  kOk,
  kBlocked,   // too many frames wait already: produce() first
  kClosed,    // the stream is over, or this part of it was sent before
  kBadField,  // a name or value that may not be sent
  kNoMemory,  // the session is over
};

/// The head of a response. 1xx may come before the final one; `end` with a 1xx is an error.
struct ResponseStart {
  std::uint16_t status = 200;
  std::span<const Field> fields;
  bool end = false;  // no body follows
};

/// One DATA frame to be framed: its nine bytes of header go to `header`, wherever the payload is;
/// in front of it, if the owner left room there, so that both are one write.
struct DataFrame {
  std::span<std::byte, kFrameHeaderBytes> header;
  std::uint32_t payload_bytes = 0;  // at most sendable()
  bool end = false;
};

struct SessionStats {
  std::size_t memory_used = 0;
  std::size_t memory_peak = 0;
  std::size_t memory_touched = 0;  // never more was written to
  std::size_t outbound_frames = 0;
  std::size_t outbound_frames_peak = 0;
  std::uint32_t streams = 0;  // places taken: open, or held by their owner
  double glitch_score = 0;
};

/// The server's side of one HTTP/2 connection, without the connection: bytes in, events out;
/// calls in, bytes out. The codec behind it may be replaced.
///
/// Promises: uses no memory but the block it was made in. What the peer does cannot make it hold
/// more frames than outbound_frames_max, more streams than concurrent_streams_max (a stream counts
/// until its owner released it), or run ahead of its output: receive() stops until produce() was
/// called. A body byte reaches the owner only if it was granted. Events and output do not depend
/// on how the input was cut.
/// Thread-safety: none. Cost: no allocation outside its block, no copy of body bytes either way.
/// Lifetime: the block, the limits and the events outlive it. Streams end with it: their owner
/// forgets them before it destroys it.
class Session {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  [[nodiscard]] virtual ReceiveResult receive(std::span<const std::byte> in, TimePoint now) = 0;
  /// From an event of receive(): it returns before the next frame.
  virtual void yield() noexcept = 0;

  /// Copies frames that wait (all but DATA) into `out`; returns the bytes written.
  [[nodiscard]] virtual std::size_t produce(std::span<std::byte> out, TimePoint now) = 0;
  [[nodiscard]] virtual bool has_output() const noexcept = 0;

  [[nodiscard]] virtual SubmitStatus submit_head(StreamId id, const ResponseStart& start) = 0;
  /// Payload bytes that one DATA frame could carry now: windows, frame size. 0 while has_output().
  [[nodiscard]] virtual std::uint32_t sendable(StreamId id) const noexcept = 0;
  /// What the windows of the stream and of the connection let through, whatever else is the case.
  [[nodiscard]] virtual std::uint32_t window(StreamId id) const noexcept = 0;
  /// The stream's own window alone; may be negative.
  [[nodiscard]] virtual std::int32_t stream_window(StreamId id) const noexcept = 0;
  /// Frames payload_bytes (at most sendable()); false if that cannot be. The header is written when
  /// it returns, and the frame goes out before anything that produce() gives later.
  [[nodiscard]] virtual bool write_data(StreamId id, const DataFrame& frame, TimePoint now) = 0;
  /// Ends the response, after its data.
  [[nodiscard]] virtual SubmitStatus submit_trailers(StreamId id,
                                                     std::span<const Field> fields) = 0;

  /// The owner will take so many more bytes of this body. The peer is told once it would otherwise
  /// run dry.
  virtual void grant(StreamId id, std::uint64_t bytes) = 0;
  /// Ends the stream now. on_stream_end(kReset) follows, not from inside this call.
  virtual void reset(StreamId id, ErrorCode code) = 0;
  /// The owner's work for an ended stream is over: its place is free. Before that end: allowed, the
  /// place is freed at the end.
  virtual void release(StreamId id) = 0;

  /// Says that no stream will be begun any more. First without `last`: what is on its way is still
  /// served. Later with it: nothing new is.
  virtual void announce_shutdown() = 0;
  virtual void shut_down() = 0;

  /// When expire() has something to do; the zero instant: never.
  [[nodiscard]] virtual TimePoint next_expiry() const noexcept = 0;
  virtual void expire(TimePoint now) = 0;

  /// Why it is over; kNone while it is not. Output (a GOAWAY) may still wait.
  [[nodiscard]] virtual SessionEnd ended() const noexcept = 0;
  /// Over, and all is sent: close the connection.
  [[nodiscard]] virtual bool finished() const noexcept = 0;
  [[nodiscard]] virtual bool peer_is_leaving() const noexcept = 0;  // it said GOAWAY
  [[nodiscard]] virtual bool is_leaving() const noexcept = 0;       // we did, with a last stream

  [[nodiscard]] virtual std::uint64_t glitches(H2Glitch glitch) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t glitches() const noexcept = 0;  // of all kinds
  [[nodiscard]] virtual std::uint32_t outbound_frames_peak() const noexcept = 0;
  [[nodiscard]] virtual SessionStats stats(TimePoint now) const noexcept = 0;

 protected:
  Session() = default;
};

}  // namespace weir::inline v0::http::h2
