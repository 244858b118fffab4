#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/grpc/hedged_channel_config.h"

#include "control/hedge_executor.h"
#include "policy/replica_view.h"
#include "replica_link.h"

namespace weir::inline v0::grpc {

/// The replicas that a call has not used, best first, as the executor sees them.
/// Lifetime: within the event in which it was made.
struct ReplicaCandidates {
  static constexpr std::size_t kMax = control::HedgeExecutor::kCandidatesMax;

  std::array<control::HedgeCandidate, kMax> targets{};
  std::array<ReplicaLink*, kMax> links{};
  std::size_t count = 0;

  [[nodiscard]] std::span<const control::HedgeCandidate> span() const noexcept {
    return {targets.data(), count};
  }
};

/// The replicas of a channel: which of them a call is sent to, and what their latencies say
/// together.
///
/// Thread-safety: the lock of its channel. Cost: choose() O(replicas); a new set allocates.
/// Lifetime: replicas that left live here until they are unused.
class ReplicaLinks {
 public:
  using Make = std::function<std::shared_ptr<ReplicaLink>(const std::string& target, bool first)>;
  ReplicaLinks(const HedgedChannelConfig& config, std::uint32_t read_classes);

  /// Replaces the set. `make` gives a link to a target that is not known.
  void set(const std::vector<HedgedReplica>& replicas, const Make& make, TimePoint now, Rng& rng);

  struct Ask {
    std::span<const ReplicaLink* const> tried{};
    std::span<const std::string> among{};  // empty: all
    ReadClass reads = 0;
    bool may_try = false;  // a read: a replica on trial may get it
  };
  struct Chosen {
    ReplicaLink* link = nullptr;  // none can be used
    bool all_full = false;        // because the queues to all of them are full
  };
  /// One that was tried only if no other is open.
  [[nodiscard]] Chosen choose(const Ask& ask, TimePoint now, Rng& rng);
  [[nodiscard]] ReplicaCandidates candidates(const Ask& ask, TimePoint now, Rng& rng);
  /// A candidate that can take an attempt at once; nullptr: there is none.
  [[nodiscard]] static ReplicaLink* ready(const ReplicaCandidates& candidates);
  [[nodiscard]] bool other_open(const Ask& ask) const;

  /// An attempt at the replica has ended, or was given up: what its latency says.
  void learn(ReplicaLink& link, const policy::LatencySample& sample, TimePoint now);
  /// How long to wait for this replica before a hedge.
  [[nodiscard]] Duration hedge_delay(ReplicaLink& link, ReadClass reads, TimePoint now);
  [[nodiscard]] const policy::HedgeCohort& cohort(ReadClass reads) const noexcept {
    return hedge_cohorts_[reads];
  }
  /// Every 100 ms: judges the cohort, and forgets replicas that left and are unused.
  void tick(TimePoint now);
  /// The state or the health of a replica has changed.
  void publish(TimePoint now);

  [[nodiscard]] const std::vector<std::shared_ptr<ReplicaLink>>& links() const noexcept {
    return links_;
  }

 private:
  struct View;

  [[nodiscard]] policy::Choice pick(const Ask& ask, std::span<const std::uint32_t> tried,
                                    bool tried_again, TimePoint now, Rng& rng);
  [[nodiscard]] control::HedgeCandidate candidate(std::uint32_t index, ReadClass reads,
                                                  TimePoint now) const;
  [[nodiscard]] std::vector<std::uint32_t> indexes(std::span<const ReplicaLink* const> of) const;

  const HedgedChannelConfig& config_;
  std::vector<std::shared_ptr<ReplicaLink>> links_;
  std::vector<std::shared_ptr<ReplicaLink>> leaving_;
  policy::Cohort cohort_;
  policy::CohortLatency latency_;  // of all attempts
  control::LatencyTracker all_;
  std::vector<policy::HedgeCohort> hedge_cohorts_;  // by ReadClass
  std::uint64_t cursor_ = 0;
};

}  // namespace weir::inline v0::grpc
