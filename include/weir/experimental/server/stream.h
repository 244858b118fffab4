#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/arena.h"
#include "weir/experimental/server/handler.h"

namespace weir::inline v0::server {

/// A field of a response. Name in lower case, as HTTP/2 wants it.
struct ResponseField {
  std::string_view name;
  std::string_view value;
};

/// The head of a response; framing, date and connection fields are the server's own.
struct ResponseHead {
  std::uint16_t status = 200;
  std::span<const ResponseField> fields;
  std::optional<std::uint64_t> content_length;  // nothing: chunked, or until close for HTTP/1.0
  bool dated = false;  // a Date is among the fields (an origin's, passed on): none is added
};

enum class SendResult : std::uint8_t {
  kSent,     // taken as a whole
  kBlocked,  // nothing was taken: no write buffer is left; on_writable() will be called
  kClosed,   // the stream is over, or this part of it was sent before
  kInvalid,  // cannot be sent: a field that would break framing, a head or body too large to buffer
};

enum class ArenaWait : std::uint8_t { kNo, kQueue };
enum class ArenaStatus : std::uint8_t {
  kGranted,  // here it is, until the stream ends
  kPending,  // in the queue: on_arena() brings it; the body waits meanwhile
  kRefused,  // none: answer send_503(), or go on without
};
struct ArenaAnswer {
  Arena* arena = nullptr;
  ArenaStatus status = ArenaStatus::kRefused;
};

/// How long the bytes given to send_response() live.
enum class BodyLife : std::uint8_t {
  kCall,    // until the call returns: they are copied if they cannot be sent at once
  kStream,  // until the stream ends (arena, static): they are sent from where they are
};

/// One request and its response, as a handler sees it; the protocol is not visible.
///
/// Promises: every byte accepted is sent in order or the stream is aborted; what is not accepted
/// stays with the caller. Nothing is buffered beyond the connection's share of the write pool. All
/// calls are safe at any time between on_headers and on_finished / on_abort.
/// Thread-safety: the loop's thread. From elsewhere: loop().post() a task that calls it.
/// Cost: no allocation, at most one copy per byte sent (none for BodyLife::kStream).
class ServerStream {
 public:
  ServerStream(const ServerStream&) = delete;
  ServerStream& operator=(const ServerStream&) = delete;

  /// Stops on_body; the client is held back by flow control. Deadlines on the body stand still.
  virtual void pause() = 0;
  /// on_body goes on, later in this turn.
  virtual void resume() = 0;

  /// 1xx may come any number of times before the final head. With `last` there is no body.
  [[nodiscard]] virtual SendResult send_headers(const ResponseHead& head, bool last = false) = 0;
  /// Takes as many bytes as there is room for, and says how many. `last` ends the body once all
  /// bytes of this call were taken. Less than offered: on_writable() will be called.
  [[nodiscard]] virtual std::size_t send_data(std::string_view bytes, bool last = false) = 0;
  /// Ends the body with trailers (dropped, as they must be, where the client cannot get them).
  [[nodiscard]] virtual SendResult send_trailers(std::span<const ResponseField> fields) = 0;
  /// Head and whole body at once, or nothing. A stream that holds an arena is never kBlocked while
  /// the arena has room.
  [[nodiscard]] virtual SendResult send_response(const ResponseHead& head, std::string_view body,
                                                 BodyLife life = BodyLife::kCall) = 0;
  /// The overload answer. Needs no arena and no write buffer, and never fails; ignored when a
  /// response has begun.
  virtual void send_503() = 0;
  /// Ends the stream now; the client sees that it is incomplete. on_abort(kReset) follows.
  virtual void reset() = 0;

  /// Memory for this request, taken when first asked for; asking again gives the same.
  [[nodiscard]] virtual ArenaAnswer acquire_arena(ArenaWait wait = ArenaWait::kNo) = 0;
  [[nodiscard]] virtual Arena* arena() const noexcept = 0;

  /// Critical work may use the reserved places of every pool from here on.
  virtual void mark_critical() noexcept = 0;

  /// Bytes that send_data() would take now.
  [[nodiscard]] virtual std::size_t writable_bytes() const noexcept = 0;
  [[nodiscard]] virtual bool response_started() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_bytes_received() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_bytes_sent() const noexcept = 0;
  [[nodiscard]] virtual const io::Address& peer() const noexcept = 0;
  [[nodiscard]] virtual io::Loop& loop() const noexcept = 0;
  /// Unique in this process.
  [[nodiscard]] virtual std::uint64_t id() const noexcept = 0;

  /// All further callbacks of this stream go to `handler`: how a router hands a stream on.
  void set_handler(Handler& handler) noexcept { handler_ = &handler; }
  [[nodiscard]] Handler& handler() const noexcept { return *handler_; }

  /// A small state of the handler's own, inside the stream: no arena, no heap. Zeroed by the first
  /// call; T must be trivially destructible.
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

  void* user_data = nullptr;  // the handler's

 protected:
  ServerStream() = default;
  ~ServerStream() = default;

  Handler* handler_ = nullptr;
  alignas(std::max_align_t) std::array<std::byte, kStateBytes> state_;
};

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::ArenaAnswer;
using server::ArenaStatus;
using server::ArenaWait;
using server::BodyLife;
using server::ResponseField;
using server::ResponseHead;
using server::SendResult;
using server::ServerStream;
}  // namespace weir::inline v0
