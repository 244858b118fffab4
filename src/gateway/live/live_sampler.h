#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/admission_stats.h"

#include "control/scope_seconds.h"
#include "counters.h"
#include "gateway_view.h"
#include "live/endpoint_lines.h"
#include "live/latest.h"
#include "live/live_events.h"
#include "live/refused_parties.h"
#include "live/upstream_history.h"
#include "policy/diagnosis.h"

namespace weir::inline v0::gateway {

/// Everything that is remembered of one upstream.
struct LiveUpstream {
  /// What a scope has refused since the start.
  struct Refusals {
    std::array<std::array<std::uint64_t, kPriorityCount>, kReasonCount> by_class{};
    std::array<std::uint64_t, kReasonCount> shadow{};
    std::array<std::uint64_t, GatewayReason::kOwnCount> own{};
  };
  static constexpr std::size_t kRefusalSeconds = 10;

  explicit LiveUpstream(std::string_view upstream) : name(upstream) {}

  const std::string name;
  UpstreamHistory history;
  EndpointLines endpoints;
  ScopeStats scope;  // of this second; its name is not valid
  policy::ScopeSecond second{};
  policy::Diagnosis diagnosis{};
  std::uint64_t cause_seconds = 0;  // for so long the cause is the same
  Latest<Refusals, kRefusalSeconds + 1> refusals;
  policy::CohortLatency cohort{};

  // For the sampler only.
  ScopeSeconds seconds;
  policy::Diagnoser diagnoser;
  std::uint64_t admitted = 0;  // since the start
  std::uint64_t refused = 0;
  std::uint32_t limit = 0;       // one second ago; 0: there was none
  std::uint32_t limit_told = 0;  // in the last event
  policy::Cause cause_told = policy::Cause::kFine;
  TimePoint cause_told_at{};
};

/// Reads the counters of the gateway once a second and remembers them: the history, the diagnosis
/// of each upstream, and what happened. Logs each change of a diagnosis, at most one per upstream
/// in ten seconds.
///
/// Promises: fixed memory per upstream and endpoint, at most memory_bytes(); requests are not
/// delayed. Thread-safety: the loop of the admin endpoint; events(): any thread.
/// Cost: O(upstreams + endpoints + actors) per second. Lifetime: within that of the view.
class LiveSampler {
 public:
  struct Bounds {
    std::size_t upstreams = 0;
    std::size_t endpoints = 0;  // of all upstreams
  };
  LiveSampler(const GatewayView& view, const Bounds& bounds) : view_(view), bounds_(bounds) {}
  LiveSampler(const LiveSampler&) = delete;
  LiveSampler& operator=(const LiveSampler&) = delete;

  /// A second is over.
  void second(TimePoint now, std::int64_t unix_seconds);

  /// How often it has read, since the start.
  [[nodiscard]] std::uint64_t seconds() const noexcept { return seconds_; }
  [[nodiscard]] std::int64_t unix_seconds() const noexcept { return unix_seconds_; }
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  /// In the order of the configuration.
  [[nodiscard]] const std::vector<std::unique_ptr<LiveUpstream>>& upstreams() const noexcept {
    return upstreams_;
  }
  [[nodiscard]] const LiveUpstream* find(std::string_view name) const noexcept;
  /// The one an operator looks at first: in trouble, then by its state, then by its refusals.
  /// nullptr: there is none.
  [[nodiscard]] const LiveUpstream* worst() const noexcept;
  [[nodiscard]] const RefusedParties& actors() const noexcept { return actors_; }
  [[nodiscard]] const RefusedParties& peers() const noexcept { return peers_; }
  [[nodiscard]] LiveEvents& events() noexcept { return events_; }
  [[nodiscard]] const LiveEvents& events() const noexcept { return events_; }

  /// What it uses at most.
  [[nodiscard]] static std::uint64_t memory_bytes(const Bounds& bounds) noexcept;

 private:
  void match(const UpstreamSet& set);
  void read(LiveUpstream& record, const ServedUpstream& upstream, Duration passed,
            const std::vector<BudgetRow>& actors);
  void note_limit(LiveUpstream& record);
  void note_verdict(LiveUpstream& record);
  void note_endpoints(const LiveUpstream& record, const std::vector<EndpointChange>& changes);
  void note_gateway();

  const GatewayView& view_;
  const Bounds bounds_;
  std::vector<std::unique_ptr<LiveUpstream>> upstreams_;
  RefusedParties actors_;
  RefusedParties peers_;
  LiveEvents events_;
  std::uint64_t seconds_ = 0;
  std::int64_t unix_seconds_ = 0;
  TimePoint now_{};
  // As they were in the second before.
  bool draining_ = false;
  std::uint64_t reloads_ok_ = 0;
  std::uint64_t reloads_refused_ = 0;
  std::vector<Override> overrides_;
  std::size_t memory_level_ = 0;
};

/// Of a gateway with this configuration, the upstreams that reloads may add included.
[[nodiscard]] LiveSampler::Bounds live_bounds(const config::Config& config);

/// The evidence of a diagnosis, for people: "offered 1260/s, usual 580/s, …".
[[nodiscard]] std::string evidence_text(const policy::Evidence& evidence);

}  // namespace weir::inline v0::gateway
