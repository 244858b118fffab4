#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/response_parser.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/socket.h"

#include "upstream/client_stream.h"

namespace weir::inline v0::upstream {

class ClientConnection;

/// HTTP/1.1 on one connection: one stream at a time.
///
/// It writes the head from the caller's block and the body from the caller's bytes; only framing
/// that the kernel did not accept (a chunk's size line) is buffered here. It reads into a region
/// that is leased while it has unprocessed bytes, so an idle connection holds none.
///
///   state        meaning                                          leaves by
///   kIdle        no request                                       start()
///   kHead        the request is sent, its answer has not begun    the final head → kBody
///   kBody        the answer's body is being delivered             its end → kIdle, or closed
///   kDiscarding  cancelled; the small rest is read and dropped    its end → kIdle, or closed
///
/// Thread-safety: its loop's thread. Cost: one system call per piece, no allocation.
class H1Wire final : public ClientStream {
 public:
  H1Wire(ClientConnection& connection, const http::HttpLimits& limits) noexcept;
  ~H1Wire();

  void start(const RequestHead& head, const AttemptFields& fields,
             ClientStreamEvents& events) noexcept override;
  std::size_t send(std::string_view bytes, bool last) noexcept override;
  std::size_t send_trailers(std::string_view lines) noexcept override;
  void resume() noexcept override;
  void cancel() noexcept override;
  policy::LoserEnd lose() noexcept override;
  void decline() noexcept override;
  bool is_http2() const noexcept override { return false; }
  void hand_over(ClientStreamEvents& events) noexcept override {
    events_ = &events;
    head_ = nullptr;
  }
  bool may_have_sent() const noexcept override { return wrote_some_; }
  bool request_ended() const noexcept override { return ended_; }
  bool paused() const noexcept override { return paused_; }
  bool request_sent() const noexcept override {
    if (head_ == nullptr) return ended_;
    return (ended_ || head_->upgrade) && unflushed() == 0;
  }
  TimePoint progress_at() const noexcept override { return progress_at_; }

  // For its connection.
  void on_readable() noexcept;
  void on_writable() noexcept;
  [[nodiscard]] bool idle() const noexcept { return state_ == State::kIdle; }
  [[nodiscard]] bool wants_read() const noexcept { return !paused_; }
  [[nodiscard]] bool wants_write() const noexcept { return want_write_; }
  /// The connection is closing: gives back the region. The stream must have ended.
  void drop_region() noexcept;
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }

 private:
  enum class State : std::uint8_t { kIdle, kHead, kBody, kDiscarding };
  /// The rest of a cancelled response that is worth reading for the sake of the connection.
  static constexpr std::uint64_t kDiscardMax = 16 * 1024;
  /// x-weir-attempt, x-weir-deadline-ms, the empty line.
  static constexpr std::size_t kTailBytes = 80;

  void write_tail(const AttemptFields& fields) noexcept;
  [[nodiscard]] bool flush() noexcept;
  [[nodiscard]] std::size_t write(std::span<const std::string_view> pieces) noexcept;
  [[nodiscard]] std::size_t unflushed() const noexcept;
  void queue_frame(std::string_view rest) noexcept;
  void end_request() noexcept;

  void read() noexcept;
  [[nodiscard]] bool process() noexcept;
  [[nodiscard]] bool process_head() noexcept;
  [[nodiscard]] bool process_body() noexcept;
  [[nodiscard]] bool deliver(std::string_view bytes, bool last) noexcept;
  [[nodiscard]] bool deliver_head(const ResponseHead& head) noexcept;
  void begin_body(const http::h1::ResponseHead& head) noexcept;
  void hold() noexcept;
  void finish() noexcept;
  void fail(UpstreamFailure failure) noexcept;
  void on_end(bool reset) noexcept;
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const noexcept;
  /// Ends it early: reads the rest and drops it, or closes the connection.
  void stop(bool drain) noexcept;
  [[nodiscard]] std::span<const char> unread() const noexcept {
    return {region_ + begin_, end_ - begin_};
  }

  ClientConnection& connection_;
  ClientStreamEvents* events_ = nullptr;  // null: idle, or discarding
  const RequestHead* head_ = nullptr;
  const http::HttpLimits* limits_;
  char* region_ = nullptr;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t head_sent_ = 0;  // bytes of head and tail that the kernel accepted
  std::uint32_t generation_ = 0;
  std::uint32_t head_bytes_ = 0;  // of the response head that is being delivered, or is held
  std::uint64_t chunk_left_ = 0;  // bytes of the current chunk that were announced and not sent
  std::uint64_t requests_ = 0;
  TimePoint progress_at_{};
  http::h1::ResponseParser parser_;
  http::h1::BodyDecoder decoder_;
  std::string_view held_;  // the part of a piece that was not accepted
  std::array<char, kTailBytes> tail_{};
  std::array<char, 24> frame_{};  // framing to be sent before anything else
  std::uint8_t tail_size_ = 0;
  std::uint8_t frame_begin_ = 0;
  std::uint8_t frame_end_ = 0;
  State state_ = State::kIdle;
  bool ended_ = false;  // the end of the request was accepted
  bool trailers_begun_ = false;
  bool tunnel_ = false;
  bool keep_alive_ = false;
  bool rest_known_ = false;  // how much is left of the response
  bool held_last_ = false;
  bool paused_ = false;
  bool want_write_ = false;
  bool write_broken_ = false;
  bool wrote_some_ = false;
  bool heard_some_ = false;  // a byte of an answer, be it an interim one
};

}  // namespace weir::inline v0::upstream
