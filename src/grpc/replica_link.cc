#include "replica_link.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

#include "hedged_setup.h"
#include "policy/redundancy_budget.h"

namespace weir::inline v0::grpc {
policy::RedundancyBudgetRules hedge_budget_rules(const policy::HedgeConfig& config) {
  return policy::redundancy_budget_rules(config.budget_pct, config.max_budget_tokens);
}

ReplicaLink::ReplicaLink(const Setup& setup)
    : target(setup.target),
      channel(::grpc::CreateCustomChannel(setup.target, setup.credentials, setup.arguments)),
      stub(channel),
      health(setup.health),
      budget(hedge_budget_rules(setup.hedge)),
      medians(setup.read_classes),
      queue(setup.outgoing, counts, setup.totals) {
  for (std::uint32_t i = 0; i < setup.read_classes; ++i) {
    reads.push_back(std::make_unique<control::LatencyTracker>(setup.hedge));
  }
}

// ---- connection

void ReplicaLink::watch(::grpc::CompletionQueue& queue_of_events) {
  static_cast<void>(channel->GetState(true));
  watching = true;
  channel->NotifyOnStateChange(state, wire_time_in(kWatchEvery), &queue_of_events, &watch_tag_);
}

bool ReplicaLink::watched(TimePoint now, Rng& rng) {
  watching = false;
  const grpc_connectivity_state before = state;
  state = channel->GetState(true);
  if (state == before) {
    note(policy::HealthEvent::kTick, now, rng);
    return false;
  }
  if (connected()) note(policy::HealthEvent::kConnected, now, rng);
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    note(policy::HealthEvent::kConnectFailed, now, rng);
  }
  return true;
}

// ---- health and load

void ReplicaLink::note(policy::HealthEvent event, TimePoint now, Rng& rng) {
  static_cast<void>(health.apply(event, now, rules, rng));
}

policy::Openness ReplicaLink::openness() const noexcept {
  const policy::Openness open = health.openness();
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
    return policy::Openness::kClosed;
  }
  if (!connected() && open <= policy::Openness::kTrial) return policy::Openness::kTrialBusy;
  return open;
}

HedgedReplicaStats ReplicaLink::stats(TimePoint now) {
  control::LatencyReading busiest;
  for (const auto& tracker : reads) {
    const control::LatencyReading reading = tracker->reading(now);
    if (reading.samples >= busiest.samples) busiest = reading;
  }
  return {.target = target,
          .health = std::string(policy::name_of(health.state())),
          .connected = connected(),
          .sent = sent,
          .in_flight = in_flight,
          .queued = queue.queued(),
          .median = busiest.known() ? busiest.median : Duration(0),
          .hedge_delay = busiest.delay.delay,
          .budget = budget.balance_millitokens() / policy::kRedundancyToken};
}

}  // namespace weir::inline v0::grpc
