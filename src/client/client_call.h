#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/client/client.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"

#include "control/redundancy_budget.h"
#include "response_collector.h"
#include "upstream/call.h"

namespace weir::inline v0::inline client {

class ClientLoop;

/// One request of a client, from send() to its callback.
///
///   state      meaning                                            leaves by
///   kPosted    on its way to its loop                             enter()
///   kQueued    waits for one of max_in_flight                     begin() → kUnderWay
///   kUnderWay  an upstream::Call works on it                      its end: end(), or → kBackOff
///   kBackOff   an endpoint, or a bound of ours, refused it        the timer → kQueued
///
/// Promises: its callback is called once, by end(), which also gives its place back.
/// Thread-safety: its loop's thread, after the constructor. Lifetime: in ClientCore's slab; end()
/// destroys it.
class ClientCall final : private upstream::CallEvents {
 public:
  ClientCall(ClientLoop& home, ClientRequest request, Client::OnAnswer on_answer,
             TimePoint deadline);
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;
  ~ClientCall();

  /// Brings it to its loop.
  [[nodiscard]] io::Task& arrival() noexcept { return arrival_; }
  [[nodiscard]] Priority priority() const noexcept { return request_.priority; }
  [[nodiscard]] ClientLoop& home() const noexcept { return home_; }
  /// A place in flight is free for it.
  void begin();
  /// Ends it on the wire and for its owner.
  void cancel(ClientErrorKind why);

  ListHook<ClientCall> hook;  // in one of the lists of its loop

 private:
  enum class State : std::uint8_t { kPosted, kQueued, kUnderWay, kBackOff };

  bool on_upstream_interim(const upstream::ResponseHead&) override { return false; }
  bool on_upstream_head(const upstream::ResponseHead& head) override;
  std::size_t on_upstream_body(std::string_view bytes) override;
  bool on_upstream_trailers(const http::HeaderList&) override { return true; }
  void on_upstream_complete() override;
  void on_upstream_received() override {}
  void on_upstream_blocked() override {}
  void on_upstream_writable() override;
  void on_upstream_failed(upstream::UpstreamFailure failure) override;
  void on_upstream_held() override {}
  bool may_leave_hold() override { return true; }

  void arrive();
  void queue();
  void on_timer(TimePoint now);
  /// Why it could not be started; no event follows.
  [[nodiscard]] Result<void, upstream::UpstreamFailure> start();
  void pass_body();
  void attempt_over() noexcept;
  void refused(ClientErrorKind why, bool sent);
  [[nodiscard]] bool back_off(bool sent);
  [[nodiscard]] bool take_token();
  void too_large();
  void end(Client::Answer answer);

  ClientLoop& home_;
  ClientRequest request_;
  Client::OnAnswer on_answer_;
  const TimePoint deadline_;
  io::Task arrival_;
  io::Timer timer_;  // the deadline while it is queued, and the end of a back-off
  upstream::Call call_;
  ResponseCollector collector_;
  control::RedundancyToken token_;  // of the retry that comes next, or is under way
  std::uint32_t attempts_ = 0;      // of the calls that have ended
  std::uint32_t retries_ = 0;
  State state_ = State::kPosted;
  bool hedged_ = false;
  bool opened_ = false;  // call_ was used for the attempt under way
  bool body_passed_ = false;
};

}  // namespace weir::inline v0::inline client
