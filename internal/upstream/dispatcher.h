#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"

#include "control/hedge_executor.h"
#include "policy/replica_view.h"
#include "upstream/call.h"
#include "upstream/hedge_candidates.h"
#include "upstream/upstream.h"
#include "upstream/upstream_memory.h"

namespace weir::inline v0::upstream {

class ConnectionPool;
class EndpointWatch;
class HealthCheck;

/// One loop's part of an upstream: it chooses endpoints for calls, holds calls while there is no
/// endpoint to use, and keeps the loop's connections.
///
/// The dispatcher of the first loop also judges the endpoints (EndpointWatch).
/// Thread-safety: its loop's thread; post_review() from any thread. Cost: no allocation for a
/// request; a change of the set allocates.
/// Lifetime: stop() and stopped() before destruction.
class Dispatcher {
 public:
  struct Setup {
    io::Loop& loop;
    std::uint32_t loop_index = 0;
    Upstream& upstream;
    UpstreamMemory& memory;
    const http::HttpLimits& response_limits;
    Rng rng;
  };
  explicit Dispatcher(const Setup& setup);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  /// Leases the block for the call's head; false if none is free. A critical call may use reserved
  /// blocks, here and later, and a reserved connection.
  [[nodiscard]] bool open(Call& call, io::Access access = io::Access::kOrdinary) noexcept;

  /// Ends held calls, closes idle connections now and the others when their streams have ended;
  /// then stopped() becomes true.
  void stop() noexcept;
  [[nodiscard]] bool stopped() const noexcept;
  [[nodiscard]] std::size_t idle_connections() const noexcept;

  void post_review() noexcept { loop_.post(review_); }

  // For calls and attempts.
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] TimePoint now() noexcept { return loop_.now(); }
  [[nodiscard]] std::uint32_t loop_index() const noexcept { return loop_index_; }
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] UpstreamMemory& memory() noexcept { return memory_; }
  [[nodiscard]] ConnectionPool& pool() noexcept { return *pool_; }
  [[nodiscard]] Rng& rng() noexcept { return rng_; }
  struct Ask {
    std::span<const Endpoint* const> tried;
    std::uint64_t hash = 0;
    bool tried_again = true;
    bool may_try = false;  // a read: an endpoint on trial may get it
  };
  struct Chosen {
    PoolEndpoint* endpoint = nullptr;
    policy::ChoiceReason reason = policy::ChoiceReason::kEmptySet;
  };
  [[nodiscard]] Chosen choose(const Ask& ask) noexcept;
  /// The endpoints that the call has not used, best first.
  [[nodiscard]] HedgeCandidates candidates(const Ask& ask) noexcept;
  /// An attempt begins at an endpoint that a candidate named.
  void note_begun(PoolEndpoint& endpoint) noexcept;
  [[nodiscard]] const policy::HedgeConfig& hedge() const noexcept { return hedge_; }
  /// Hedging is on, and there is another endpoint to send a hedge to.
  [[nodiscard]] bool may_hedge() const noexcept {
    return hedge_.enabled && set_->members.size() > 1;
  }
  /// Whether an endpoint that was not tried is open.
  [[nodiscard]] bool other_open(std::span<const Endpoint* const> tried) const noexcept;
  /// Holds the call until an endpoint may be usable; false: too many are held.
  [[nodiscard]] bool hold(Call& call) noexcept;
  void release(Call& call) noexcept;
  void add_unanswered(Attempt& attempt) noexcept;
  void remove_unanswered(Attempt& attempt) noexcept;
  /// An attempt that refers to the endpoint begins or ends.
  static void pin(PoolEndpoint& endpoint) noexcept;
  void unpin(PoolEndpoint& endpoint) noexcept;

 private:
  [[nodiscard]] policy::Choice pick(const Ask& ask, std::span<const std::uint32_t> tried) noexcept;
  [[nodiscard]] control::HedgeCandidate candidate_at(std::uint32_t index) noexcept;
  /// An endpoint on trial that was not tried: its weight is so small that a choice among all would
  /// hardly ever send it the one attempt that decides.
  [[nodiscard]] std::optional<std::uint32_t> on_trial(const Ask& ask) const noexcept;
  void take_set();
  void review();
  void on_tick(TimePoint now);
  void on_hold_timer(TimePoint now);
  void serve_held() noexcept;
  void give_up_silent(PoolEndpoint& endpoint) noexcept;
  void run_checks(TimePoint now);

  io::Loop& loop_;
  const std::uint32_t loop_index_;
  Upstream& upstream_;
  UpstreamMemory& memory_;
  Rng rng_;
  std::unique_ptr<ConnectionPool> pool_;
  std::unique_ptr<EndpointWatch> watch_;              // of the first loop only
  std::vector<std::unique_ptr<HealthCheck>> checks_;  // of the first loop only
  std::shared_ptr<const EndpointSet> set_;
  std::vector<std::unique_ptr<PoolEndpoint>> endpoints_;  // as set_->members
  std::vector<std::unique_ptr<PoolEndpoint>> leaving_;    // not in the set, still in use
  IntrusiveList<Call, &Call::held_hook> held_;
  io::Task review_;
  io::Timer tick_;
  io::Timer hold_timer_;
  policy::HedgeConfig hedge_;
  std::uint64_t cursor_ = 0;  // of round robin
  bool stopping_ = false;
};

}  // namespace weir::inline v0::upstream
