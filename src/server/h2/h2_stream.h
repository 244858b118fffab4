#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/slab.h"
#include "weir/experimental/http/method.h"
#include "weir/experimental/server/stream.h"

#include "h2/h2_body_lease.h"
#include "h2/h2_window.h"
#include "http/h2/session.h"
#include "memory/arena_pool.h"
#include "memory/stream_arena.h"
#include "memory/write_pool.h"
#include "rate_guard.h"
#include "stream_places.h"

namespace weir::inline v0::inline server {

class H2Session;

/// One request on an HTTP/2 connection, and its response. It has a place in the server's stream
/// pool from the head of the request until on_finished() or on_abort().
///
/// Input: bytes go to the handler as they arrive; while it has paused, they are kept in the
/// stream's body leases, and the peer's window is no larger than the room there.
/// Output: DATA is framed in the connection's write buffers as far as windows and buffers allow;
/// what send_response() accepted and cannot be sent yet is kept where it is (BodyLife::kStream), in
/// the arena, or in write buffers of the connection's quota.
///
///   request        meaning                                    leaves by
///   kExpect        the client expects 100 Continue            100, or its body → kBody
///   kBody          the body is incomplete                     its end → kEnded, kTrailersKept
///   kTrailersKept  it ended; trailers are in the lease        on_trailers → kEnded
///   kEnded         it ended; the last on_body is due          the last on_body → kWhole
///   kWhole         the handler has all of it                  on_complete → kComplete
///   kComplete      on_complete was called                     –
///
///   response       meaning                                    leaves by
///   kNone          no final head was sent                     the head → kOpen
///   kOpen          head sent, body incomplete                 its end → kDone
///   kDone          the handler has sent all of it             on_finished, on_abort → kOver
///   kOver          the handler's last callback has begun      –
///
///   wire           meaning, for what we send                  leaves by
///   kOpen          the codec does not have END_STREAM yet     END_STREAM → kEnded
///   kEndDue        … and only that, in an empty frame, is due its turn → kEnded
///   kRefusalDue    … and the 503 that has it found no room    its turn → kEnded
///   kEnded         the codec has END_STREAM                   the client's → kOver
///   kOver          the stream has ended in both directions    –
///
/// A reset leads from each wire state to kOver, and from each response state to kDone.
class H2Stream final : public ServerStream, private ArenaWaiter::Owner {
 public:
  H2Stream(H2Session& session, http::h2::StreamId wire_id) noexcept;
  H2Stream(const H2Stream&) = delete;
  H2Stream& operator=(const H2Stream&) = delete;
  ~H2Stream() = default;

  // ServerStream
  void pause() override;
  void resume() override;
  void expect_silence() noexcept override;
  SendResult send_headers(const ResponseHead& head, bool last) override;
  std::size_t send_data(std::string_view bytes, bool last) override;
  SendResult send_trailers(std::span<const ResponseField> fields) override;
  SendResult send_response(const ResponseHead& head, std::string_view body, BodyLife life) override;
  void send_503() override;
  void reset() override;
  ArenaAnswer acquire_arena(ArenaWait wait) override;
  Arena* arena() const noexcept override { return arena_.held(); }
  void set_critical(bool critical) noexcept override;
  std::size_t writable_bytes() const noexcept override;
  std::size_t unsent_bytes() const noexcept override;
  bool response_started() const noexcept override { return response_ != Response::kNone; }
  std::uint64_t body_bytes_received() const noexcept override { return body_received_; }
  std::uint64_t body_bytes_sent() const noexcept override { return body_sent_; }
  const io::Address& peer() const noexcept override;
  std::optional<io::LocalPeer> local_peer() const override;
  io::Loop& loop() const noexcept override;
  std::uint64_t id() const noexcept override { return id_; }

  // For the session: the request.
  void begin(const http::h2::RequestHead& head, TimePoint now);
  void receive(const http::BodyChunk& chunk);
  void receive(const http::HeaderList& trailers);
  /// Continues after resume(), or when an arena is granted. True if a callback was called.
  bool proceed();
  /// Calls on_abort().
  void abandon(CloseReason reason);
  void finish();

  // For the session: the response.
  enum class Turn : std::uint8_t {
    kOver,     // nothing more to send now
    kAgain,    // it has more
    kBlocked,  // it has more, but the peer's windows are closed
    kNoRoom,   // it has more, but no write buffer is free
  };
  [[nodiscard]] Turn take_turn(TimePoint now);
  /// Calls on_writable() of a paused handler: its output is nearly sent.
  void tell_drained() {
    if (open() && paused_) handler_->on_writable(*this);
  }
  [[nodiscard]] bool wants_turn() const noexcept {
    return blocked_on_output_ || tail_pending() || wire_ == Wire::kEndDue ||
           wire_ == Wire::kRefusalDue;
  }

  /// When one of its rates must be checked; TimePoint::max() for never.
  [[nodiscard]] TimePoint deadline() const noexcept;
  void on_deadline(TimePoint now);
  /// How far it is behind the minimum rates, because of its client.
  [[nodiscard]] Duration blocked_for(TimePoint now) const noexcept;
  void make_room() override;
  bool reserve_tunnel() noexcept override;

  [[nodiscard]] http::h2::StreamId wire_id() const noexcept { return wire_id_; }

  ListHook<H2Stream> all_hook;
  ListHook<H2Stream> turn_hook;   // in a ring: ready, or blocked on windows
  ListHook<H2Stream> work_hook;   // has events for its handler
  ListHook<H2Stream> end_hook;    // ended on the wire, or complete and not yet sent
  ListHook<H2Stream> drain_hook;  // paused; on_writable() is due when its output is nearly sent
  std::uint64_t end_mark = 0;     // of the connection's output: finished when that much is sent
  CloseReason end_reason = CloseReason::kNone;  // why it was aborted, if it was

 private:
  friend class H2Session;
  enum class Request : std::uint8_t { kExpect, kBody, kTrailersKept, kEnded, kWhole, kComplete };
  enum class Response : std::uint8_t { kNone, kOpen, kDone, kOver };
  enum class Wire : std::uint8_t { kOpen, kEndDue, kRefusalDue, kEnded, kOver };
  /// Which of the session's rings it is in.
  enum class Ring : std::uint8_t { kNone, kReady, kBlocked };
  /// How the body is sent: kNone (HEAD, 204, 304) drops it, kLength has an announced length.
  enum class Framing : std::uint8_t { kOpen, kLength, kNone, kTunnel };

  void enter(Request next) noexcept;
  void enter(Response next) noexcept;
  void enter(Wire next) noexcept;
  [[nodiscard]] bool open() const noexcept { return response_ != Response::kOver; }
  /// Whether the handler still gets events of the request.
  [[nodiscard]] bool wants_events() const noexcept { return response_ < Response::kDone; }
  /// Whether more of the body is to be received.
  [[nodiscard]] bool body_open() const noexcept { return request_ <= Request::kBody; }
  /// Its body is incomplete, or its response is blocked on the peer's windows.
  [[nodiscard]] bool awaits_peer() const noexcept {
    return ring_ == Ring::kBlocked || (body_open() && !held() && response_ == Response::kNone);
  }
  /// Whether the request is paused by its handler, or pending.
  [[nodiscard]] bool held() const noexcept { return paused_ || arena_.waiting(); }
  [[nodiscard]] bool tail_pending() const noexcept { return !tail_.empty() || held_ != nullptr; }

  void deliver(std::span<const std::uint8_t> bytes, bool last);
  bool deliver_kept();
  void complete();
  void invite_body();
  void watch_writing();
  void begin_tunnel();
  void end_tunnel() noexcept;

  [[nodiscard]] SendResult submit(const ResponseHead& head, bool end);
  [[nodiscard]] SendResult inform(const ResponseHead& head);
  [[nodiscard]] SendResult blocked();
  [[nodiscard]] bool say_503();
  [[nodiscard]] bool keep_tail(std::string_view body, BodyLife life);
  [[nodiscard]] Turn send_tail(TimePoint now);
  void drop_tail() noexcept;
  void end_response() noexcept;
  void on_arena_ready(std::byte* memory) override;

  H2Session& session_;
  const http::h2::StreamId wire_id_;
  const std::uint64_t id_;
  BodyLease lease_;
  StreamWindow window_;
  RateGuard body_guard_;
  bool may_be_silent_ = false;
  RateGuard write_guard_;         // runs while the stream is blocked on the peer's windows
  std::uint64_t put_before_ = 0;  // put_bytes() of the session when that began
  TimePoint tunnel_active_{};     // the last byte of a tunnel, in either direction
  StreamArena arena_;

  std::string_view tail_;        // of send_response(): the unsent rest, if its memory stays valid
  WriteBuffer* held_ = nullptr;  // … or copies of it
  std::uint64_t body_received_ = 0;
  std::uint64_t body_sent_ = 0;
  std::uint64_t response_length_ = 0;

  Request request_ = Request::kBody;
  Response response_ = Response::kNone;
  Wire wire_ = Wire::kOpen;
  Ring ring_ = Ring::kNone;
  Framing framing_ = Framing::kOpen;
  http::Method method_ = http::Method::kOther;
  io::Access access_ = io::Access::kOrdinary;
  bool paused_ = false;             // by the handler
  bool blocked_on_output_ = false;  // on_writable() is due
  bool tunnel_place_ = false;
};

/// Memory for the HTTP/2 streams of all connections and loops: one per stream place.
///
/// Thread-safety: any thread. Cost: a mutex pair.
class H2StreamPool {
 public:
  H2StreamPool(StreamPlaces& places, std::uint32_t count) : places_(places), slab_(count) {}

  /// nullptr if no place is free for this access.
  [[nodiscard]] H2Stream* acquire(H2Session& session, http::h2::StreamId wire_id,
                                  io::Access access);
  void release(H2Stream& stream);

 private:
  StreamPlaces& places_;
  std::mutex mutex_;
  Slab<H2Stream> slab_;
};

}  // namespace weir::inline v0::inline server
