#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/response_parser.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/io/timer.h"

#include "upstream/exchange.h"

namespace weir::inline v0::upstream {

/// One HTTP/1.1 connection to one endpoint: connecting, serving one exchange, or idle.
///
/// It reads into a region, leased while it has unprocessed bytes, and writes from the exchange's
/// buffer, so an idle connection holds only its own 500 bytes of memory.
/// Thread-safety: its loop's thread. Lifetime: in its pool's slab, until the socket is closed.
class UpstreamConnection final : private io::SocketEvents {
 public:
  UpstreamConnection(UpstreamPool& pool, std::uint32_t endpoint_index) noexcept;
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;
  ~UpstreamConnection();

  [[nodiscard]] Result<void, io::IoError> open(io::Fd fd);
  /// Starts an exchange: a new connection sends when it is connected, an idle one at once.
  void carry(Exchange& exchange) noexcept;
  /// Drops the exchange, which its owner cancelled, and closes.
  void abandon() noexcept;
  void close() noexcept;
  /// Of an idle connection: nothing was received, not even an end. Costs a system call.
  [[nodiscard]] bool still_quiet() noexcept;

  /// Sends the bytes in the exchange's buffer. True if nothing is left.
  bool flush() noexcept;
  /// Sends pieces without buffering, if nothing is buffered before them; returns the bytes sent.
  [[nodiscard]] std::size_t write_through(std::span<const io::ConstBuffer> pieces) noexcept;
  void resume() noexcept;
  void rearm() noexcept;
  /// The owner passed the last byte of its request.
  void request_ended() noexcept;

  [[nodiscard]] std::uint32_t endpoint_index() const noexcept { return endpoint_index_; }
  [[nodiscard]] bool reused() const noexcept { return exchanges_ > 1; }

  ListHook<UpstreamConnection> hook;  // in the pool's idle list

 private:
  enum class State : std::uint8_t { kConnecting, kActive, kIdle, kClosing };

  void on_readable() override;
  void on_writable() override;
  void on_disconnected() override;
  void on_timer(TimePoint now);
  void on_closed();

  [[nodiscard]] bool process() noexcept;
  [[nodiscard]] bool process_head() noexcept;
  [[nodiscard]] bool process_body() noexcept;
  [[nodiscard]] bool deliver(std::string_view bytes, bool last) noexcept;
  void finish_exchange() noexcept;
  void fail(UpstreamFailure failure) noexcept;
  void connect_failed(UpstreamFailure failure) noexcept;
  void on_end(bool reset) noexcept;
  void update_watch() noexcept;
  /// How long the upstream may neither send nor accept anything in the current state.
  [[nodiscard]] Duration silence_allowed() const noexcept;
  [[nodiscard]] bool answer_due() const noexcept;
  void drop_region() noexcept;
  void hold() noexcept;
  void end_tunnel_output() noexcept;
  [[nodiscard]] bool may_retry() const noexcept;
  [[nodiscard]] std::span<const char> unread() const noexcept {
    return {region_ + begin_, end_ - begin_};
  }

  UpstreamPool& pool_;
  io::Socket socket_;
  io::Timer timer_;
  Exchange* exchange_ = nullptr;
  char* region_ = nullptr;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  http::h1::ResponseParser parser_;
  http::h1::BodyDecoder decoder_;
  std::string_view held_;  // the part of a piece that the owner did not accept
  TimePoint progress_at_{};
  std::uint64_t exchanges_ = 0;
  std::uint32_t endpoint_index_;
  State state_ = State::kConnecting;
  bool head_done_ = false;
  bool keep_alive_ = false;
  bool held_last_ = false;
  bool paused_ = false;
  bool want_write_ = false;
  bool write_broken_ = false;
  bool wrote_some_ = false;  // of the current exchange
  bool said_end_ = false;    // our side of a tunnel is shut
};

}  // namespace weir::inline v0::upstream
