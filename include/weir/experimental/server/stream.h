#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "weir/experimental/io/local_peer.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/arena.h"
#include "weir/experimental/server/handler.h"

namespace weir::inline v0::inline server {

/// A field of a response. The name is in lower case, as HTTP/2 requires.
struct ResponseField {
  std::string_view name;
  std::string_view value;
};

/// The head of a response; the server adds framing, date and connection fields.
struct ResponseHead {
  std::uint16_t status = 200;
  std::span<const ResponseField> fields;
  std::optional<std::uint64_t> content_length;  // nullopt: chunked, or until close for HTTP/1.0
  bool dated = false;  // the fields contain a Date (forwarded from an origin): none is added
};

enum class SendResult : std::uint8_t {
  kSent,     // accepted completely
  kBlocked,  // nothing was accepted: no write buffer is free; on_writable() follows
  kClosed,   // the stream has ended, or this part was already sent
  kInvalid,  // cannot be sent: a field that would break framing, a head or body too large to buffer
};

enum class ArenaWait : std::uint8_t { kNo, kQueue };
enum class ArenaStatus : std::uint8_t {
  kGranted,  // valid until the stream ends
  kPending,  // queued: on_arena() follows; the body is not read until then
  kRefused,  // none: call send_503(), or continue without an arena
};
struct ArenaAnswer {
  Arena* arena = nullptr;
  ArenaStatus status = ArenaStatus::kRefused;
};

/// How long the bytes given to send_response() stay valid.
enum class BodyLife : std::uint8_t {
  kCall,    // until the call returns: they are copied if they cannot be sent at once
  kStream,  // until the stream ends (arena, static): they are sent from where they are
};

/// One request and its response, as a handler sees it; the protocol is not visible.
///
/// Promises: every accepted byte is sent in order, or the stream is aborted; bytes that are not
/// accepted stay with the caller. At most the connection's share of the write pool is buffered. All
/// calls are allowed at any time between on_headers and on_finished / on_abort.
/// Thread-safety: the loop's thread. From another thread: loop().post() a task that calls it.
/// Cost: no allocation, at most one copy per byte sent (none for BodyLife::kStream).
class ServerStream {
 public:
  ServerStream(const ServerStream&) = delete;
  ServerStream& operator=(const ServerStream&) = delete;

  /// Stops on_body; flow control stops the client. The timers of the body are stopped too.
  virtual void pause() = 0;
  /// Continues on_body, later in this turn.
  virtual void resume() = 0;
  /// The request's body is a conversation (gRPC): its client may be silent, and body_timeout does
  /// not end it. HTTP/2 only.
  virtual void expect_silence() noexcept = 0;

  /// Any number of 1xx heads may be sent before the final one. With `last` there is no body.
  [[nodiscard]] virtual SendResult send_headers(const ResponseHead& head, bool last = false) = 0;
  /// Accepts as many bytes as there is room for, and returns how many. `last` ends the body if all
  /// bytes of this call were accepted. If fewer were accepted, on_writable() follows.
  [[nodiscard]] virtual std::size_t send_data(std::string_view bytes, bool last = false) = 0;
  /// Ends the body with trailers (dropped if the client cannot receive them).
  [[nodiscard]] virtual SendResult send_trailers(std::span<const ResponseField> fields) = 0;
  /// Sends head and whole body at once, or nothing. A stream that holds an arena is never kBlocked
  /// while the arena has room.
  [[nodiscard]] virtual SendResult send_response(const ResponseHead& head, std::string_view body,
                                                 BodyLife life = BodyLife::kCall) = 0;
  /// Sends the overload answer. It needs no arena and no write buffer, and never fails; it is
  /// ignored if a response has begun.
  virtual void send_503() = 0;
  /// Ends the stream now; the client sees that the response is incomplete. on_abort(kReset)
  /// follows.
  virtual void reset() = 0;

  /// This request needs something that the handler has no more of. If requests that are blocked on
  /// their clients hold it, the worst of them are ended now: their on_abort() is called before this
  /// returns. It never ends a request of this stream's connection.
  virtual void make_room() {}

  /// Takes one of server.tunnels_max places for the tunnel that this stream is to become; the
  /// stream holds it to its end. False: all are taken. A head that begins a tunnel takes a place
  /// too, if the stream has none; it is kInvalid without one.
  [[nodiscard]] virtual bool reserve_tunnel() noexcept = 0;

  /// The arena of this request, acquired at the first call; later calls return the same one.
  [[nodiscard]] virtual ArenaAnswer acquire_arena(ArenaWait wait = ArenaWait::kNo) = 0;
  [[nodiscard]] virtual Arena* arena() const noexcept = 0;

  /// From now on the request may use the reserved places of every pool, or may not. Without a call,
  /// it may if its connection's peer is critical (Server::set_critical_peers).
  virtual void set_critical(bool critical) noexcept = 0;

  /// The number of bytes that send_data() would accept now.
  [[nodiscard]] virtual std::size_t writable_bytes() const noexcept = 0;
  /// Bytes of this response that the kernel has not accepted yet. For HTTP/2 this is an upper
  /// bound, because streams share their connection's output.
  [[nodiscard]] virtual std::size_t unsent_bytes() const noexcept = 0;
  [[nodiscard]] virtual bool response_started() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_bytes_received() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_bytes_sent() const noexcept = 0;
  [[nodiscard]] virtual const io::Address& peer() const noexcept = 0;
  /// The process at the other end, if the connection is a Unix socket without a PROXY header.
  [[nodiscard]] virtual std::optional<io::LocalPeer> local_peer() const { return std::nullopt; }
  [[nodiscard]] virtual io::Loop& loop() const noexcept = 0;
  /// Unique in this process.
  [[nodiscard]] virtual std::uint64_t id() const noexcept = 0;

  /// Sends all further callbacks of this stream to `handler`, for example from a router.
  void set_handler(Handler& handler) noexcept { handler_ = &handler; }
  [[nodiscard]] Handler& handler() const noexcept { return *handler_; }

  /// Storage for a small state of the handler, inside the stream: no arena, no heap. The first call
  /// sets it to zero; T must be trivially destructible.
  static constexpr std::size_t kStateBytes = 128;
  template <class T>
  T& make_state() {
    static_assert(sizeof(T) <= kStateBytes);
    static_assert(alignof(T) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_destructible_v<T>, "nobody would run its destructor");
    return *::new (static_cast<void*>(state_.data())) T();
  }
  template <class T>
  [[nodiscard]] T& state() noexcept {
    return *std::launder(reinterpret_cast<T*>(state_.data()));
  }

  void* user_data = nullptr;  // for the handler

 protected:
  ServerStream() = default;
  ~ServerStream() = default;

  Handler* handler_ = nullptr;
  alignas(std::max_align_t) std::array<std::byte, kStateBytes> state_;
};

}  // namespace weir::inline v0::inline server
