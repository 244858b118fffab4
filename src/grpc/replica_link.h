#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_queue.h"
#include "weir/experimental/grpc/hedged_stats.h"
#include "weir/policy/hedge_config.h"

#include "control/latency_tracker.h"
#include "control/redundancy_budget.h"
#include "hedged_methods.h"
#include "hedged_tag.h"
#include "policy/endpoint_health.h"
#include "policy/loser_end.h"
#include "policy/peak_ewma.h"

namespace weir::inline v0::grpc {

/// One replica: its connection, which is kept warm, its health and load, the queue to it, and what
/// is known of its latencies.
///
/// gRPC's channel connects again by itself after a failure, and not after a GOAWAY, so watch() asks
/// for a connection each time. A connection per replica: `grpc.use_local_subchannel_pool`, because
/// channels to one target share one otherwise.
///
/// Thread-safety: the lock of its channel. Lifetime: until its last attempt has ended and its watch
/// has come back.
struct ReplicaLink {
  struct Setup {
    std::string target;
    std::uint32_t read_classes = 1;
    policy::EndpointHealth health;
    const policy::HedgeConfig& hedge;
    const control::OutgoingConfig& outgoing;
    control::OutgoingTotals& totals;
    const std::shared_ptr<::grpc::ChannelCredentials>& credentials;
    const ::grpc::ChannelArguments& arguments;
  };
  explicit ReplicaLink(const Setup& setup);
  ReplicaLink(const ReplicaLink&) = delete;
  ReplicaLink& operator=(const ReplicaLink&) = delete;

  // ---- connection
  static constexpr Duration kWatchEvery = std::chrono::milliseconds(100);
  /// Asks for a connection, and for an event when its state changes or kWatchEvery has passed.
  void watch(::grpc::CompletionQueue& queue);
  /// The event has come. True: the state is another one.
  bool watched(TimePoint now, Rng& rng);
  [[nodiscard]] bool connected() const noexcept { return state == GRPC_CHANNEL_READY; }

  // ---- health and load
  void note(policy::HealthEvent event, TimePoint now, Rng& rng);
  /// How a choice may treat it: as its health says, but one that has no connection is used only if
  /// no other can be, and one that cannot connect is not used.
  [[nodiscard]] policy::Openness openness() const noexcept;
  [[nodiscard]] bool pushed_back(TimePoint now) const noexcept { return now < pushed_back_until; }
  [[nodiscard]] HedgedReplicaStats stats(TimePoint now);
  [[nodiscard]] bool unused() const noexcept { return in_flight == 0 && !watching; }

  const std::string target;
  const std::shared_ptr<::grpc::Channel> channel;
  ::grpc::GenericStub stub;
  grpc_connectivity_state state = GRPC_CHANNEL_IDLE;
  policy::EndpointHealth health;
  const policy::EndpointHealthRules rules{};
  policy::PeakEwma score;
  control::RedundancyBudget budget;
  std::vector<std::unique_ptr<control::LatencyTracker>> reads;  // by ReadClass
  std::vector<Duration> medians;                                // of them; zero: unknown
  control::OutgoingCounts counts;
  control::OutgoingQueue queue;
  policy::CancelPace pace;
  TimePoint pushed_back_until{};
  std::uint32_t in_flight = 0;  // attempts, those in the queue too
  std::uint64_t sent = 0;
  bool in_set = true;
  bool watching = false;

 private:
  HedgedTag watch_tag_{.kind = HedgedTag::Kind::kState, .owner = this};
};

/// The rules of the redundancy budgets of a channel.
[[nodiscard]] policy::RedundancyBudgetRules hedge_budget_rules(const policy::HedgeConfig& config);

}  // namespace weir::inline v0::grpc
