#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/socket.h"

#include "h2_stream.h"
#include "http/h2/client_session_kit.h"
#include "policy/loser_end.h"
#include "policy/ping_pace.h"
#include "upstream/failure.h"

namespace weir::inline v0::upstream {

class ClientConnection;
class ConnectionPool;

/// HTTP/2 on one connection: up to kStreams requests at once.
///
/// It lives at the front of a block of UpstreamMemory::sessions, followed by its streams, the
/// codec's memory and the output buffer. Frames of all streams are collected there and written once
/// per turn of the loop.
///
/// Promises: never opens more streams than the endpoint allows; memory is the block, and one region
/// per stream whose owner is slow. Sends a PING if it has streams and hears nothing for long
/// (policy::PingPace); an endpoint that does not answer it within kPongWithin has lost the
/// connection.
/// Thread-safety: its loop's thread. Lifetime: make() to destroy().
class H2Wire final : private http::h2::ClientEvents {
 public:
  static constexpr std::uint32_t kStreams = 100;
  static constexpr std::size_t kNoRoom = ~std::size_t{0};
  static constexpr Duration kPongWithin = std::chrono::seconds(5);

  /// The limits of sessions whose streams' windows fit into half of a region.
  [[nodiscard]] static http::H2Limits limits(std::size_t region_bytes) noexcept;
  [[nodiscard]] static std::size_t block_bytes(std::size_t region_bytes) noexcept;

  /// nullptr if there is no block.
  [[nodiscard]] static H2Wire* make(ClientConnection& connection, ConnectionPool& pool) noexcept;
  /// The connection is gone: its streams fail.
  void destroy() noexcept;

  [[nodiscard]] ClientStream* take_stream() noexcept;
  [[nodiscard]] bool has_stream() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
  /// Sends GOAWAY, then closes.
  void shut_down() noexcept;
  /// Unless gRPC servers would find it too early.
  void ping() noexcept;
  void on_readable() noexcept;
  void on_writable() noexcept;
  void on_timer(TimePoint now) noexcept;
  /// The end of the turn: writes what was collected.
  void on_flush() noexcept;
  [[nodiscard]] io::Socket::Interest interest() const noexcept {
    return {.read = !input_blocked_, .write = out_begin_ != out_end_};
  }

  // For its streams.
  [[nodiscard]] ClientConnection& connection() noexcept { return connection_; }
  [[nodiscard]] TimePoint now() noexcept;
  [[nodiscard]] std::string_view scheme() const noexcept;
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  /// A call of gRPC begins.
  void note_grpc() noexcept { pings_.note_grpc(); }
  /// Fields to send, collected in the pool's storage.
  class FieldList {
   public:
    explicit FieldList(std::span<http::h2::Field> storage) noexcept : storage_(storage) {}
    void add(std::string_view name, std::string_view value) noexcept {
      if (count_ < storage_.size()) storage_[count_] = {name, value};
      ++count_;
    }
    [[nodiscard]] bool overflowed() const noexcept { return count_ > storage_.size(); }
    [[nodiscard]] std::span<const http::h2::Field> fields() const noexcept {
      return storage_.first(overflowed() ? 0 : count_);
    }

   private:
    std::span<http::h2::Field> storage_;
    std::size_t count_ = 0;
  };
  [[nodiscard]] FieldList field_list() noexcept { return FieldList(fields_); }
  [[nodiscard]] Result<http::h2::StreamId, UpstreamFailure> open(
      const http::h2::RequestStart& start, H2Stream& stream) noexcept;
  /// Frames bytes into the output; kNoRoom: neither bytes nor the end were accepted.
  [[nodiscard]] std::size_t put_data(http::h2::StreamId id, std::string_view bytes,
                                     bool last) noexcept;
  [[nodiscard]] bool put_trailers(http::h2::StreamId id, const FieldList& list) noexcept;
  void grant(http::h2::StreamId id, std::size_t bytes) noexcept;
  void reset(http::h2::StreamId id, http::h2::ErrorCode code) noexcept;
  /// Whether an unneeded stream is reset, which is counted, or its answer read and dropped.
  [[nodiscard]] policy::LoserEnd end_of_loser() noexcept;
  /// A stream waits for an answer that is dropped.
  void note_drain() noexcept;
  void free(H2Stream& stream) noexcept;
  void flush_later() noexcept;
  void wait_for_progress(H2Stream& stream) noexcept;
  void stop_waiting(H2Stream& stream) noexcept;
  void fail_later(H2Stream& stream) noexcept;
  void stop_failing(H2Stream& stream) noexcept;
  [[nodiscard]] HeldResponse::Shape held_shape() const noexcept;
  /// Bytes ever put into the output, and those that the kernel accepted.
  [[nodiscard]] std::uint64_t put_bytes() const noexcept { return put_; }
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return put_ - (out_end_ - out_begin_); }
  /// Frames that are not in the output yet.
  [[nodiscard]] bool has_frames() const noexcept { return session_->has_output(); }

 private:
  static constexpr std::size_t kOutBytes = 32 * 1024;
  static constexpr std::size_t kFieldsMax = 128;

  H2Wire(ClientConnection& connection, ConnectionPool& pool, std::byte* block) noexcept;
  ~H2Wire();

  void on_response(http::h2::StreamId id, void* user, const http::h2::ResponseHead& head) override;
  void on_body(http::h2::StreamId id, void* user, const http::BodyChunk& chunk) override;
  void on_trailers(http::h2::StreamId id, void* user, const http::HeaderList& trailers) override;
  void on_stream_end(http::h2::StreamId id, void* user, http::h2::StreamEnd end,
                     http::h2::ErrorCode code, http::h2::Processed processed) override;
  void on_windows_opened() override { progress_ = true; }
  void on_capacity_changed() override { capacity_changed_ = true; }
  void on_pong(TimePoint) override {}

  [[nodiscard]] bool start() noexcept;
  void read() noexcept;
  /// Moves frames into the output and writes it. False: the connection is broken.
  [[nodiscard]] bool flush() noexcept;
  void collect() noexcept;
  void tell_progress() noexcept;
  void after_session() noexcept;
  void lose() noexcept;
  void heed_complaint() noexcept;
  void end_old_drains(TimePoint at) noexcept;
  void arm() noexcept;
  void dispose() noexcept;
  [[nodiscard]] H2Stream* stream_at(std::uint32_t index) noexcept;
  [[nodiscard]] std::span<std::byte> session_memory() noexcept;
  [[nodiscard]] std::byte* out() noexcept;

  ClientConnection& connection_;
  ConnectionPool& pool_;
  std::byte* const block_;
  http::h2::ClientSessionPtr session_;
  IntrusiveList<H2Stream, &H2Stream::waiting_hook> waiting_;
  IntrusiveList<H2Stream, &H2Stream::failed_hook> failed_;
  std::array<http::h2::Field, kFieldsMax> fields_{};
  char* region_ = nullptr;  // input that is not processed yet
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
  std::uint64_t put_ = 0;
  std::uint64_t requests_ = 0;
  std::array<std::uint8_t, kStreams> free_{};  // indices of streams that were used and are free
  std::uint32_t free_count_ = 0;
  std::uint32_t fresh_ = 0;  // streams from here on were never used
  std::uint32_t used_ = 0;   // streams that are not free
  policy::CancelPace pace_;
  policy::PingPace pings_;
  TimePoint drains_due_ = TimePoint::max();  // end_old_drains()
  bool input_blocked_ = false;               // output must be sent first
  bool progress_ = false;                    // windows or the output have room
  bool capacity_changed_ = false;
  bool leaving_ = false;     // no new streams
  bool complained_ = false;  // the endpoint finds that we ask too much
  bool lost_ = false;        // the connection has ended, or the endpoint is silent
  bool busy_ = false;        // inside a call of the session, or telling streams
  bool ending_ = false;      // inside on_stream_end(): no output may be made
  bool doomed_ = false;      // destroyed while busy: its memory is freed afterwards
};

}  // namespace weir::inline v0::upstream
