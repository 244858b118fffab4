#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "http/h2/client_session_kit.h"
#include "http/h2/nghttp2_facade.h"

namespace weir::inline v0::http::h2 {

/// A ClientSession that uses libnghttp2; see Nghttp2Codec.
///
/// The library queues requests without bound and sends them only while the server's limit of
/// streams allows. So this class counts: `queued_` requests are in that queue, `outgoing_` streams
/// are open in the library. open() never lets their sum exceed the limit. If the server lowers its
/// limit, or leaves, before a head was sent, the request is withdrawn and reported as not
/// processed; its dead entry stays in the queue until the library gets to it.
class Nghttp2ClientSession final : public Nghttp2Facade<ClientSession> {
 public:
  struct Given {
    Shared shared;
    const ClientOptions& options;
    std::span<std::byte> memory;
  };

  Nghttp2ClientSession(const Given& given, ClientEvents& events);

  /// Call it first; false if the memory is too small.
  [[nodiscard]] bool start(TimePoint now);
  static void set_callbacks(nghttp2_session_callbacks* callbacks) noexcept;

  [[nodiscard]] Result<StreamId, SubmitStatus> open(const RequestStart& start, void* user) override;
  [[nodiscard]] std::uint32_t capacity() const noexcept override;
  [[nodiscard]] bool has_settings() const noexcept override { return has_settings_; }
  [[nodiscard]] std::uint32_t peer_streams_max() const noexcept override;
  [[nodiscard]] bool peer_allows_extended_connect() const noexcept override;
  [[nodiscard]] std::optional<ErrorCode> peer_goaway_code() const noexcept override {
    return peer_goaway_code_;
  }
  [[nodiscard]] Processed processed(StreamId id) const noexcept override;
  [[nodiscard]] bool ping(TimePoint now) override;
  [[nodiscard]] TimePoint ping_sent() const noexcept override { return ping_sent_; }
  [[nodiscard]] SubmitStatus submit_trailers(StreamId id, std::span<const Field> fields) override;
  void reset(StreamId id, ErrorCode code) override;

 private:
  [[nodiscard]] int begin_block(StreamId id) override;
  void on_received(const nghttp2_frame& frame) override;
  void on_sent(const nghttp2_frame& frame, Stream& stream) override;
  void on_closing(Stream& stream, ErrorCode code) override;
  void tell_block(Stream& stream) override;
  void tell_body(Stream& stream) override;
  void tell_connection() override;
  void tell_end(StreamId id, const Stream& stream) override;
  void tell_leaving() override { events_->on_capacity_changed(); }
  void refuse_block(Stream& stream, BlockFault fault) override;

  // The library's callbacks that only a client has.
  static int before_send(nghttp2_session* library, const nghttp2_frame* frame, void* user);
  static int on_not_sent(nghttp2_session* library, const nghttp2_frame* frame, int error,
                         void* user);

  void tell_response(Stream& stream);
  void on_goaway(const nghttp2_goaway& frame);
  void on_ping(const nghttp2_ping& frame);
  void withdraw(Stream& stream);
  void withdraw_unsendable();
  [[nodiscard]] Stream* newest_unsent() const noexcept;
  [[nodiscard]] bool can_withdraw(const Stream& stream) const noexcept {
    return stream.open && stream.unsent && stream.id != sending_;
  }
  [[nodiscard]] std::uint32_t streams_allowed() const noexcept;
  void count_held_back() noexcept;
  [[nodiscard]] static Processed processed(const Stream& stream) noexcept;

  ClientEvents* events_;
  const ClientOptions* options_;
  std::uint32_t in_queue_ = 0;  // entries in the library's queue of requests, dead ones included
  std::uint32_t queued_ = 0;    // of them, requests that are still wanted
  std::uint32_t outgoing_ = 0;  // streams that the library has opened and not closed
  StreamId sending_ = 0;        // the library has begun to send its head
  std::optional<ErrorCode> peer_goaway_code_;
  TimePoint ping_sent_{};
  std::uint32_t pings_ = 0;  // the payload of the last PING
  bool has_settings_ = false;
  bool capacity_changed_ = false;
  bool pong_ = false;
};

}  // namespace weir::inline v0::http::h2
