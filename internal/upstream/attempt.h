#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/io/timer.h"

#include "control/latency_tracker.h"
#include "control/redundancy_budget.h"
#include "policy/peak_ewma.h"
#include "upstream/client_stream.h"
#include "upstream/connection_waiter.h"
#include "upstream/endpoint_counters.h"

namespace weir::inline v0::upstream {

class Call;
class Dispatcher;
class Endpoint;
struct PoolEndpoint;

/// One try of a call: one endpoint, one stream, its own position in the body, its own timers.
///
///   state        meaning                                         leaves by
///   kNone        not in use                                      begin()
///   kConnecting  waits for a connection                          a stream → kSending
///   kSending     the request is being sent                       its last byte → kAwaiting
///   kAwaiting    sent; the response head has not come            the head → kReceiving
///   kReceiving   the head was accepted                           the end → kNone
///
/// Everything it holds (a place in the endpoint's count, a stream, a token of the budget) is given
/// back in one function, end(), whatever ended it.
/// Thread-safety: its loop's thread. Lifetime: inside its Call.
class Attempt final : private ClientStreamEvents, private ConnectionWaiter {
 public:
  explicit Attempt(Call& call) noexcept;
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  struct Plan {
    std::uint32_t number = 1;  // of the call, from 1
    io::Access access = io::Access::kOrdinary;
    bool check = false;  // of a health check: nothing is counted or learned from it
    bool read = false;   // its latency decides about hedges
    bool hedge = false;  // beside another attempt; it does not wait for a connection
  };
  /// Asks for a connection to the endpoint, and sends when there is one. The result is that of the
  /// first step: if it failed, the attempt has ended, the token is where it was, and no event
  /// follows.
  [[nodiscard]] UpstreamFailure begin(Dispatcher& dispatcher, PoolEndpoint& endpoint, Plan plan,
                                      control::RedundancyToken& token) noexcept;
  /// Sends bytes that follow everything sent so far; returns how many were accepted.
  [[nodiscard]] std::size_t pass(std::string_view bytes, bool last) noexcept;
  /// Sends what the call's body has for it. True: nothing is unsent.
  bool pump() noexcept;
  void resume() noexcept;
  /// Ends it on the wire, without events.
  void cancel() noexcept;
  /// The same, because another attempt answers the call; `beaten`: one that began later. Returns
  /// how it was ended on the wire; nullopt: nothing had been sent.
  std::optional<policy::LoserEnd> lose(bool beaten) noexcept;
  /// The same for a beaten one whose request is sent and unanswered, but its stream goes on.
  [[nodiscard]] ClientStream& let_finish() noexcept;
  /// Ends it on the wire; the call is told as if the endpoint had failed.
  void give_up(UpstreamFailure failure) noexcept;
  /// Its call is a read that may be hedged.
  void count_as_read() noexcept { plan_.read = true; }
  /// Its endpoint is silent: ends it if the request may be sent to another one. Returns whether it
  /// has ended.
  bool leave_silent() noexcept;
  /// The call has become patient.
  void rearm() noexcept;

  [[nodiscard]] bool active() const noexcept { return state_ != State::kNone; }
  [[nodiscard]] bool connecting() const noexcept { return state_ == State::kConnecting; }
  [[nodiscard]] bool awaiting() const noexcept { return state_ == State::kAwaiting; }
  [[nodiscard]] bool receiving() const noexcept { return state_ == State::kReceiving; }
  [[nodiscard]] bool tunnel() const noexcept { return tunnel_; }
  /// All bytes of the request have reached the kernel.
  [[nodiscard]] bool request_sent() const noexcept { return sent_at_ != TimePoint{}; }
  [[nodiscard]] PoolEndpoint& endpoint() const noexcept { return *endpoint_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// It waits for its owner: for more of the request, or for room for the response.
  [[nodiscard]] bool waits_for_owner() const noexcept;
  /// When the last byte of the request reached the kernel; zero: not yet.
  [[nodiscard]] TimePoint sent_at() const noexcept { return sent_at_; }

  ListHook<Attempt> unanswered_hook;  // in the endpoint's list, while kAwaiting

 private:
  enum class State : std::uint8_t { kNone, kConnecting, kSending, kAwaiting, kReceiving };

  void on_connection(ClientStream& stream) override;
  void on_no_connection(UpstreamFailure failure) override;
  bool on_stream_head(const ResponseHead& head) override;
  std::size_t on_stream_body(std::string_view bytes) override;
  bool on_stream_trailers(const http::HeaderList& trailers) override;
  std::size_t keep_body(std::string_view bytes) noexcept override;
  bool keep_trailers(const http::HeaderList& trailers) noexcept override;
  void on_stream_complete() override;
  void on_stream_writable() override;
  void on_stream_failed(const StreamFailure& failure) override;
  void on_timer(TimePoint now);

  [[nodiscard]] bool can_carry(const ClientStream& stream) const noexcept;
  void start(ClientStream& stream) noexcept;
  void note_sent() noexcept;
  void note_answered(const ResponseHead& head) noexcept;
  void note_good() noexcept;
  void note_pushback(std::optional<Duration> asked) noexcept;
  void teach(Duration latency, bool error) noexcept;
  void teach_score(const policy::LatencySample& sample) noexcept;
  void teach_unanswered(bool beaten) noexcept;
  void record(control::AttemptEnd end) noexcept;
  void note_cancelled(bool beaten = false) noexcept;
  void count(AttemptOutcome outcome, UpstreamFailure failure = UpstreamFailure::kNone) noexcept;
  void end() noexcept;
  void fail(const StreamFailure& failure) noexcept;
  [[nodiscard]] Duration silence_allowed() const noexcept;

  Call& call_;
  Dispatcher* dispatcher_ = nullptr;
  PoolEndpoint* endpoint_ = nullptr;
  ClientStream* stream_ = nullptr;
  control::RedundancyToken token_;
  io::Timer timer_;
  TimePoint sent_at_{};
  std::uint64_t position_ = 0;  // in the body: accepted by the stream up to here
  Plan plan_;
  State state_ = State::kNone;
  TimePoint owner_waited_at_{};  // the last time that a timer found it waiting for its owner
  bool tunnel_ = false;
  bool error_answer_ = false;  // the answer's status is 500 or above
  bool bad_answer_ = false;    // its head speaks against the endpoint
};

}  // namespace weir::inline v0::upstream
