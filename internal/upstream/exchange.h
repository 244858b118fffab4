#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/http/h1/message.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"

#include "io/shared_blocks.h"
#include "upstream/failure.h"

namespace weir::inline v0::upstream {

class UpstreamConnection;
class UpstreamPool;
class Endpoint;

/// Events of an exchange, called on its loop. Each may call cancel(); then no event follows.
/// Order: on_upstream_head, on_upstream_body*, on_upstream_trailers?, on_upstream_complete;
/// on_upstream_failed may end it at any point. on_upstream_writable may come at any time between.
class ExchangeEvents {
 public:
  /// The final head (1xx except 101 are dropped). `head.tunnel`: raw bytes both ways from here on.
  /// False: not accepted; reading stops, and the same head is delivered again after resume().
  [[nodiscard]] virtual bool on_upstream_head(const http::h1::ResponseHead& head) = 0;
  /// Returns how many bytes were accepted; if fewer than given, reading stops until resume().
  [[nodiscard]] virtual std::size_t on_upstream_body(std::string_view bytes) = 0;
  /// False: as for the head.
  [[nodiscard]] virtual bool on_upstream_trailers(const http::HeaderList& trailers) = 0;
  virtual void on_upstream_complete() = 0;
  /// The bytes that send_body() buffered have been sent.
  virtual void on_upstream_writable() = 0;
  virtual void on_upstream_failed(UpstreamFailure failure) = 0;

 protected:
  ~ExchangeEvents() = default;
};

enum class RequestFraming : std::uint8_t { kNone, kLength, kChunked };

/// The owner's part of one request to an upstream and its response. It stays the same over several
/// attempts on several connections.
///
/// Use: pool.open(exchange) leases a buffer; write the request head into space(), commit(); then
/// pool.start(exchange, …). Body: send_body() accepts everything it is given (at most the piece_max
/// of UpstreamMemory) and returns whether to continue; if not, on_upstream_writable() reports when.
/// While the head is still in the buffer a piece may not fit beside it: call send_body({}, false)
/// first; if that returns false, send the first piece after on_upstream_writable(). The buffer
/// returns to its pool as soon as the request is sent and the response has begun.
/// Thread-safety: its loop's thread. Lifetime: never started, ended or cancelled when destroyed.
class Exchange {
 public:
  explicit Exchange(ExchangeEvents& events) noexcept : events_(events) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  [[nodiscard]] std::span<char> space() noexcept;
  /// `time_left_at`: position in the head of kTimeLeftDigits digits for the milliseconds that the
  /// caller has left (0: none). They are filled in each time before the head is sent.
  static constexpr std::size_t kTimeLeftDigits = 8;
  void commit(std::size_t head_bytes, std::size_t time_left_at = 0) noexcept;

  /// True: continue. False: buffered, and nothing more may be passed until on_upstream_writable().
  [[nodiscard]] bool send_body(std::string_view bytes, bool last) noexcept;
  [[nodiscard]] bool send_trailers(std::span<const http::HeaderView> trailers) noexcept;
  /// Continues reading after on_upstream_body() accepted less than it was given.
  void resume() noexcept;
  /// Ends it without further events; the connection is closed unless it can be reused.
  void cancel() noexcept;

  [[nodiscard]] bool active() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] bool tunnel() const noexcept { return tunnel_; }
  /// Request bytes in the buffer that the upstream has not accepted yet.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return end_ - begin_; }
  [[nodiscard]] const Endpoint* endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }
  /// A timeout ended it while the upstream was blocked on the owner: on more of the request, or on
  /// room for the response.
  [[nodiscard]] bool waited_for_owner() const noexcept { return waited_for_owner_; }
  /// From here on no timeout ends it, however long it is silent: event streams, tunnels.
  void lift_deadlines() noexcept;

 private:
  friend class UpstreamPool;
  friend class UpstreamConnection;

  struct Plan {
    http::Method method = http::Method::kGet;
    RequestFraming framing = RequestFraming::kNone;
    bool upgrade = false;
    bool patient = false;         // silence is not a failure
    TimePoint deadline{};         // of the whole exchange; max: none
    TimePoint caller_deadline{};  // the caller's own deadline; zero: none
  };

  void append(std::string_view bytes) noexcept;
  void write_time_left(TimePoint now) noexcept;
  void release_buffer() noexcept;
  void release_sent_buffer() noexcept;

  ListHook<Exchange> wait_hook_;  // while blocked on a connection that is idle on another loop
  TimePoint wait_until_{};
  ExchangeEvents& events_;
  UpstreamPool* pool_ = nullptr;
  UpstreamConnection* connection_ = nullptr;  // null while none is assigned
  Endpoint* endpoint_ = nullptr;
  char* buffer_ = nullptr;
  std::uint32_t begin_ = 0;  // written to the socket up to here
  std::uint32_t end_ = 0;
  std::uint32_t head_bytes_ = 0;
  std::uint32_t time_left_at_ = 0;
  std::uint32_t attempts_ = 0;
  Plan plan_;
  io::Access access_ = io::Access::kOrdinary;
  bool request_complete_ = false;  // the owner passed the last byte
  bool body_given_ = false;        // part or end of a body was passed
  bool response_started_ = false;
  bool tunnel_ = false;
  bool waited_for_owner_ = false;
  bool owes_writable_ = false;  // send_body() returned false
};

}  // namespace weir::inline v0::upstream
