#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"

#include "http/h2/client_session.h"
#include "upstream/client_stream.h"
#include "upstream/held_response.h"

namespace weir::inline v0::upstream {

class H2Wire;

/// One request on an HTTP/2 connection.
///
/// What its owner does not accept is kept in a region, leased when that happens. The endpoint may
/// send only what was granted, so a slow client stops its own stream and no other.
///
///   state       meaning                                            leaves by
///   kFree       not in use                                         take_stream()
///   kTaken      lent                                               start() → kOpen
///   kOpen       request and response are under way                 the last piece → kClosing
///   kClosing    the owner is done; the session still knows it      on_stream_end() → kFree
///               (reset, or its answer is read and dropped)
///
/// Thread-safety: its loop's thread. Lifetime: in its wire's block.
class H2Stream final : public ClientStream {
 public:
  explicit H2Stream(H2Wire& wire) noexcept : wire_(wire) {}
  ~H2Stream();

  void start(const RequestHead& head, const AttemptFields& fields,
             ClientStreamEvents& events) noexcept override;
  std::size_t send(std::string_view bytes, bool last) noexcept override;
  std::size_t send_trailers(std::string_view lines) noexcept override;
  void resume() noexcept override;
  void cancel() noexcept override;
  policy::LoserEnd lose() noexcept override;
  void decline() noexcept override;
  bool is_http2() const noexcept override { return true; }
  void hand_over(ClientStreamEvents& events) noexcept override { events_ = &events; }
  bool may_have_sent() const noexcept override { return id_ != 0; }
  bool request_ended() const noexcept override { return ended_; }
  bool request_sent() const noexcept override;
  bool paused() const noexcept override { return held_.attached(); }
  TimePoint progress_at() const noexcept override { return progress_at_; }

  // For its wire.
  enum class State : std::uint8_t { kFree, kTaken, kOpen, kClosing };
  [[nodiscard]] State state() const noexcept { return state_; }
  void take() noexcept { state_ = State::kTaken; }
  void freed() noexcept { state_ = State::kFree; }
  [[nodiscard]] http::h2::StreamId id() const noexcept { return id_; }
  void on_head(const http::h2::ResponseHead& head);
  void on_body(const http::BodyChunk& chunk);
  void on_trailers(const http::HeaderList& trailers);
  void on_end(http::h2::StreamEnd end, http::h2::ErrorCode code, http::h2::Processed processed);
  /// The connection is gone.
  void on_lost(http::h2::Processed processed);
  /// There may be room for more of the request, or all of it is sent.
  void on_progress();
  /// Its answer is read and dropped, since this time; zero: it is not.
  [[nodiscard]] TimePoint draining_since() const noexcept {
    return draining_ ? progress_at_ : TimePoint{};
  }
  /// Does not wait for the rest of that answer any longer.
  void stop_draining() noexcept;
  /// Tells the failure of start().
  void on_not_started();

  ListHook<H2Stream> waiting_hook;  // wants on_progress()
  ListHook<H2Stream> failed_hook;   // wants on_not_started()

 private:
  void wait() noexcept;
  [[nodiscard]] bool hold() noexcept;
  void drop_held() noexcept;
  void finish();
  void fail(UpstreamFailure failure, http::h2::Processed processed);
  /// The owner is done: the session's stream is given up if it is still open.
  void close(http::h2::ErrorCode code) noexcept;

  H2Wire& wire_;
  ClientStreamEvents* events_ = nullptr;
  HeldResponse held_;
  TimePoint progress_at_{};
  std::uint64_t sent_mark_ = 0;  // the wire's output up to here contains the end of the request
  http::h2::StreamId id_ = 0;
  UpstreamFailure not_started_ = UpstreamFailure::kNone;
  State state_ = State::kFree;
  bool ended_ = false;         // the end of the request was accepted
  bool got_head_ = false;      // the final one
  bool response_end_ = false;  // the last piece has arrived
  bool draining_ = false;
};

}  // namespace weir::inline v0::upstream
