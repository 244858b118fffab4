#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/response_framing.h"
#include "weir/experimental/server/stream.h"

#include "memory/arena_pool.h"
#include "memory/stream_arena.h"
#include "rate_guard.h"
#include "session.h"

namespace weir::inline v0::inline server {

class Connection;
class LoopShard;

/// HTTP/1.x on one connection: one request at a time, and its stream.
///
///   state         meaning                                  leaves by
///   kIdle         no byte of a request was received        a byte → kHead
///   kHead         a head is incomplete                     its end → kExpect, kBody, kWhole
///   kExpect       the client expects 100 Continue          100, or its body → kBody
///   kBody         body bytes go to the handler             the last byte → kWhole
///   kWhole        the request is received                  on_complete → kComplete
///   kComplete     on_complete was called                   the response's end → kIdle
///   kDrain        answered before the end of the body      the last byte → kIdle
///   kTunnelAgreed 101, or 2xx to CONNECT, was sent         on_complete → kTunnel
///   kTunnel       raw bytes go in both directions          the client's end → kTunnelEnded
///   kTunnelEnded  raw bytes go to the client only          our end → kDiscard
///   kDiscard      the input is not used any more           the connection's end
///
/// A response may end before the request: kExpect and kBody then lead to kDrain, kWhole to kIdle.
/// Each state leads to kDiscard when the connection must end after its output.
///
///   response  meaning                                      leaves by
///   kNone     no final head was sent                       the head → kOpen
///   kOpen     head sent, body incomplete                   its end → kDone
///   kDone     the handler has sent all of it               the flush → kOver, in a tunnel kShut
///   kShut     our side of a tunnel has ended               the client's end → kOver
///   kOver     no stream: before the first, between two     the next request → kNone
///
/// Each response state leads to kOver when the stream is aborted.
/// Pipelined requests stay unparsed in the read region.
class H1Session final : public Session, public ServerStream, private ArenaWaiter::Owner {
 public:
  H1Session(Connection& connection, LoopShard& shard) noexcept;
  H1Session(const H1Session&) = delete;
  H1Session& operator=(const H1Session&) = delete;

  // Session
  bool advance(TimePoint now) override;
  bool on_flushed(TimePoint now) override;
  void on_end_of_input(TimePoint now) override;
  void on_disconnected(TimePoint now) override;
  void end_streams(CloseReason reason) override;
  bool wants_input() const noexcept override;
  bool idle() const noexcept override { return state_ == State::kIdle; }
  bool awaits_peer() const noexcept override {
    const bool uploads = body_open() && !held() && response_ == Response::kNone;
    return uploads || state_ == State::kHead || state_ == State::kDrain;
  }
  Duration blocked_time(TimePoint now) const noexcept override;
  std::uint32_t requests_open() const noexcept override {
    return response_ == Response::kOver ? 0 : 1;
  }
  TimePoint head_since() const noexcept override {
    return state_ == State::kHead ? head_since_ : TimePoint::max();
  }
  bool unused() const noexcept override { return requests_ == 0; }
  bool critical() const noexcept override { return access_ == io::Access::kCritical; }
  bool wants_room() const noexcept override { return blocked_on_output_; }
  TimePoint deadline() const noexcept override;
  void on_deadline(TimePoint now) override;
  void on_drain() override;

  // ServerStream
  void pause() override;
  void resume() override;
  void expect_silence() noexcept override {}
  SendResult send_headers(const ResponseHead& head, bool last) override;
  std::size_t send_data(std::string_view bytes, bool last) override;
  SendResult send_trailers(std::span<const ResponseField> fields) override;
  SendResult send_response(const ResponseHead& head, std::string_view body, BodyLife life) override;
  void send_503() override;
  void reset() override;
  void make_room() override;
  bool reserve_tunnel() noexcept override;
  ArenaAnswer acquire_arena(ArenaWait wait) override;
  Arena* arena() const noexcept override { return arena_.held(); }
  void set_critical(bool critical) noexcept override {
    access_ = critical ? io::Access::kCritical : io::Access::kOrdinary;
  }
  std::size_t writable_bytes() const noexcept override;
  std::size_t unsent_bytes() const noexcept override;
  bool response_started() const noexcept override { return response_ != Response::kNone; }
  std::uint64_t body_bytes_received() const noexcept override { return body_received_; }
  std::uint64_t body_bytes_sent() const noexcept override { return body_sent_; }
  const io::Address& peer() const noexcept override;
  std::optional<io::LocalPeer> local_peer() const override;
  io::Loop& loop() const noexcept override;
  std::uint64_t id() const noexcept override { return id_; }

 private:
  enum class State : std::uint8_t {
    kIdle,
    kHead,
    kExpect,
    kBody,
    kWhole,
    kComplete,
    kDrain,
    kTunnelAgreed,
    kTunnel,
    kTunnelEnded,
    kDiscard,
  };
  enum class Response : std::uint8_t { kNone, kOpen, kDone, kShut, kOver };
  /// Whether the handler has paused, and whether it was notified that its output is nearly sent.
  enum class Pause : std::uint8_t { kNo, kUntold, kTold };
  using Framing = http::ResponseFraming;
  struct HeadPlan {
    Framing framing = Framing::kNone;
    std::uint64_t length = 0;
    bool keep = false;
    bool whole = true;  // no body follows
  };

  /// Whether the request is paused by its handler, or pending.
  [[nodiscard]] bool held() const noexcept { return pause_ != Pause::kNo || arena_.waiting(); }
  /// Whether the body, or the rest of it, is still to be received.
  [[nodiscard]] bool body_open() const noexcept {
    return state_ == State::kExpect || state_ == State::kBody;
  }
  [[nodiscard]] bool tunnel() const noexcept {
    return state_ >= State::kTunnelAgreed && state_ <= State::kTunnelEnded;
  }
  void enter(State next) noexcept;
  void enter(Response next) noexcept;

  // The request (h1_request.cc).
  [[nodiscard]] bool step(TimePoint now);
  [[nodiscard]] bool read_head(TimePoint now);
  void begin(const http::h1::RequestHead& head, TimePoint now);
  [[nodiscard]] bool take_place(const ServerRequest& request);
  void refuse_early();
  [[nodiscard]] bool read_body(TimePoint now);
  [[nodiscard]] bool read_tunnel(TimePoint now);
  void invite_body();
  [[nodiscard]] bool tell_complete();
  void refuse(unsigned status, CloseReason reason);
  void refuse_unknown_protocol();
  void next_request(TimePoint now);
  [[nodiscard]] bool may_keep() const noexcept;

  // The response (h1_response.cc).
  [[nodiscard]] HeadPlan plan(const ResponseHead& head, bool last) const noexcept;
  [[nodiscard]] Result<std::size_t, SendResult> write_head(std::span<char> into,
                                                           const ResponseHead& head,
                                                           const HeadPlan& plan);
  [[nodiscard]] std::size_t head_bytes_estimate(const ResponseHead& head) const noexcept;
  void head_sent(const ResponseHead& head, const HeadPlan& plan) noexcept;
  [[nodiscard]] SendResult inform(const ResponseHead& head);
  [[nodiscard]] SendResult blocked() noexcept;
  [[nodiscard]] SendResult respond_from_arena(const ResponseHead& head, const HeadPlan& how,
                                              std::string_view body, BodyLife life);
  [[nodiscard]] std::size_t put_chunks(std::string_view bytes);
  void end_response() noexcept;
  void touch() noexcept;
  void finish_stream(TimePoint now);
  void say_503();
  void release_stream() noexcept;
  void on_arena_ready(std::byte* memory) override;

  Connection& connection_;
  LoopShard& shard_;
  http::h1::RequestParser parser_;
  http::h1::BodyDecoder decoder_;
  RateGuard body_guard_;
  StreamArena arena_;

  TimePoint head_since_{};     // its first byte
  TimePoint last_activity_{};  // end of the last exchange; last byte of a tunnel
  std::uint64_t id_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t body_received_ = 0;
  std::uint64_t body_sent_ = 0;
  std::uint64_t response_length_ = 0;
  std::uint64_t drained_ = 0;

  State state_ = State::kIdle;
  Response response_ = Response::kOver;
  Pause pause_ = Pause::kNo;
  Framing framing_ = Framing::kNone;
  http::Method method_ = http::Method::kOther;
  http::h1::Version version_ = http::h1::Version::k11;
  io::Access access_ = io::Access::kOrdinary;
  bool keep_alive_ = false;  // as the client asks; after the response head, as that says
  bool tunnel_counted_ = false;
  bool tunnel_place_ = false;
  bool upgrade_ = false;  // of the request, as is te_trailers_
  bool te_trailers_ = false;
  bool blocked_on_output_ = false;  // the handler of an open response is blocked on the output
};

}  // namespace weir::inline v0::inline server
