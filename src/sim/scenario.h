#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/admission_config.h"
#include "weir/control/outgoing_config.h"
#include "weir/policy/hedge_config.h"
#include "weir/policy/priority.h"

#include "distribution.h"
#include "measure.h"
#include "policy/redundancy_budget.h"
#include "policy/replica_choice.h"
#include "rate_profile.h"

namespace weir::inline v0::sim {

// The contents of a scenario file as plain data. scenario_reader.h creates it, World runs it.

/// The path to a service: how long one direction takes, and how often a message is lost. A lost
/// message is sent again after `retransmit`, and each further time after twice as long, as TCP
/// does; zero: it is lost for ever, as a datagram is.
struct LinkSpec {
  Distribution delay{};
  double loss = 0;
  Duration retransmit{};
};

enum class RetryKind : std::uint8_t { kNone, kImmediate, kBackoff, kHint };

/// What a caller does after a refusal, a failure or a timeout.
///   backoff  base × 2^(n-1), at most `wait_max`, spread by ± jitter
///   hint     what the refusal said; backoff if it said nothing
struct RetrySpec {
  RetryKind kind = RetryKind::kNone;
  std::uint32_t attempts_max = 3;  // the first one included
  Duration base = std::chrono::milliseconds(100);
  Duration wait_max = std::chrono::seconds(5);
  double jitter = 0.5;
};

/// How a client, or a service that needs another, calls a service.
struct CallerSpec {
  LinkSpec link{};
  Duration timeout{};           // per attempt; zero: none
  bool cancels = true;          // the service notices that the caller gave up
  bool sends_deadline = false;  // the attempt carries its deadline
  RetrySpec retry{};
};

enum class ArrivalKind : std::uint8_t { kPoisson, kConstant, kBursts, kTrace, kClosed };

/// One row of a trace: time,class,actor,bytes,cost; peer and hedge come from recordings only.
struct TraceRow {
  Duration at{};
  Priority priority = Priority::kNormal;
  std::uint32_t actor = 0;  // 0: none; else 1 + index into the load's actors
  std::uint64_t bytes = 0;
  std::uint32_t cost = 1;
  std::uint32_t peer = 0;  // 0: none; else 1 + index into the load's peers
  bool hedge = false;      // a caller's second attempt
};

/// A group of clients with the same behaviour.
struct LoadSpec {
  std::string name{};
  std::uint32_t to = 0;      // index of a service
  std::uint32_t spread = 1;  // calls go to one of this many services, `to` and those after it
  std::optional<std::uint32_t> sender{};  // calls are messages of this sender
  Duration expires{};  // a message is not sent after this time in the queue; zero: none
  Priority priority = Priority::kNormal;
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  std::vector<RatePoint> rate{};  // calls per second (poisson, constant)
  RateShape shape = RateShape::kSteps;
  Duration burst_every{};  // bursts: this many at once, that often
  std::uint32_t burst_size = 0;
  Duration burst_spread{};
  std::uint32_t clients = 0;  // closed loop: each thinks, calls, waits for the end
  Distribution think{};
  std::vector<TraceRow> trace{};
  Duration starts{};
  Duration stops = Duration::max();
  std::uint32_t actors = 0;  // calls are billed to them in turn; 0: to no actor
  std::uint32_t peers = 0;   // calls come from them in turn; 0: from no trusted node
  std::uint64_t bytes = 0;
  std::uint32_t cost = 1;
  std::uint32_t width = 1;             // workers that each call uses at once
  std::optional<Distribution> time{};  // of its calls at the service; unset: the service's own
  CallerSpec caller{};
};

enum class FaultKind : std::uint8_t {
  kPause,
  kSlow,
  kCrash,
  kErrors,
  kWorkers,
  kGateways,
  kBaseline,
  kAbsent,
  kStall
};

/// A fault of a service.
///   pause    no progress for `lasts`
///   slow     service times × factor for `lasts` (for ever when zero)
///   crash    everything inside fails; connections are refused for `lasts`
///   errors   a share `factor` fails at once, after `time`, for `lasts`
///   workers  `workers` of them from now on
///   gateways only the first `gateways` of its gateways get calls for `lasts`
///   baseline the gateway `gateway` tells the others its baseline × factor for `lasts`
///   absent   a share `factor` is answered "not found" for `lasts`: a replica that lags behind
///   stall    the gateway before the replicas does nothing for `lasts`
struct FaultSpec {
  Duration at{};
  FaultKind kind = FaultKind::kPause;
  Duration lasts{};
  Duration every{};  // again after this time, and so on; zero: once
  double factor = 1;
  Duration time{};
  std::uint32_t workers = 0;
  std::uint32_t replica = 0;  // of this replica only, counted from 1; 0: of all
  std::uint32_t gateways = 0;
  std::uint32_t gateway = 0;  // counted from 1
};

/// Memory of a service, as a share of its limit: a profile over time plus what requests hold.
struct MemorySpec {
  std::vector<RatePoint> used{};  // shares, linear in between
  double per_request = 0;         // share that each request inside (queued or served) adds
  Duration restart = std::chrono::seconds(5);  // at 1.0 it is killed, and restarts after this
};

/// A call that every request of a service makes while it is served.
struct CallSpec {
  std::uint32_t to = 0;
  CallerSpec caller{};
};

/// One replica of a service: what differs from the others.
struct ReplicaSpec {
  std::optional<Distribution> time{};
  std::uint32_t workers = 0;  // 0: as the service says
  LinkSpec link{};
  double weight = 1;
};

/// How a gateway uses the replicas of a service; the decisions are those of production.
struct ReplicasSpec {
  std::vector<ReplicaSpec> each{};
  policy::Balance balance = policy::Balance::kPeakEwma;
  std::uint32_t attempts_max = 3;
  Duration timeout{};      // of one attempt; zero: none
  bool idempotent = true;  // requests may be sent again after they may have been processed
  bool silence = true;     // hangs are detected
  bool probes = true;      // suspect replicas are probed
  bool ejection = true;    // slow replicas are ejected
  policy::RedundancyBudgetRules budget{};
  Duration hold_max = std::chrono::seconds(2);  // a request without a replica waits this long
  bool cancel = true;  // a loser leaves its replica at once; false: it is worked off
  std::optional<policy::HedgeConfig> hedge{};  // unset: no hedging
};

/// Sends the messages of its loads through queues to their destinations, one queue for each.
struct SenderSpec {
  std::string name{};
  OutgoingConfig queues{};
  bool shared = false;  // one queue for all destinations: what the queues are compared with
};

struct ServiceSpec {
  std::string name{};
  std::uint32_t gateways = 1;       // limiters before it, each with a part of the calls
  std::uint32_t first_gateway = 0;  // the index of the first, if there are several
  bool shared_baseline = false;     // the gateways tell each other what they measured
  std::string group{};              // services of one group share a panel of the plot; empty: alone
  std::uint32_t gateway = 0;        // of those, counted from 1; 0: none
  bool is_gateway = false;  // its calls are those of its callers: their times and widths apply
  std::uint32_t workers = 1;
  Distribution time{};
  double contention = 0;       // service times × (1 + contention × requests beyond the workers)
  bool sharing = false;        // workers divide their time among all requests; no queue
  bool holds_worker = true;    // while it is blocked on a service it calls
  bool stops_running = false;  // cancelled work stops even when a worker runs it
  std::uint32_t queue_max = std::numeric_limits<std::uint32_t>::max();
  Duration timeout{};  // admitted work that takes longer counts as overload; zero: none
  std::vector<CallSpec> calls{};
  std::vector<FaultSpec> faults{};
  std::optional<ReplicasSpec> replicas{};  // then it is a gateway, and `calls` has one per replica
  std::optional<MemorySpec> memory{};
  std::optional<AdmissionConfig> admission{};  // unset: every request is let in and queued
};

/// A requirement of the scenario: a measure stays within bounds.
struct VerdictSpec {
  std::string name{};
  Measure measure = Measure::kGoodput;
  std::optional<Priority> priority{};   // only this class
  std::optional<std::uint32_t> load{};  // only this load
  std::uint32_t service = 0;            // for measures of a service
  std::uint32_t first_gateway = 0;      // of that service, if it has several
  std::uint32_t gateways = 0;
  std::uint32_t reason = 0;  // for refused: index of a Reason; no_hedge: of a NoHedge; diagnosed:
                             // of a Cause
  Duration from{};
  Duration to{};                           // zero: the end of the run
  Duration after{};                        // for recovery_time
  Duration above{};                        // for slow_ratio
  std::optional<std::uint32_t> against{};  // the value is divided by that of this load
  double level = 0;                        // for recovery_time, calls per second
  Duration hold = std::chrono::seconds(1);
  std::optional<double> min{};
  std::optional<double> max{};
};

/// The unit of its value and bounds.
[[nodiscard]] inline MeasureUnit unit_of(const VerdictSpec& verdict) noexcept {
  return verdict.against ? MeasureUnit::kRatio : facts_of(verdict.measure).unit;
}

/// A part of the run in which load and service stay as they are, so that there is one best fixed
/// limit (the oracle). Reading a scenario turns it into verdicts:
///   goodput at least `goodput_min` × that of the oracle, p99 from dispatch at most `latency_max` ×
///   the unloaded p99, and at most 0.1 % refused if the phase is `light` (at most 80 % load).
struct PhaseSpec {
  std::string name{};
  Duration from{};
  Duration to{};
  bool light = false;
  std::uint32_t oracle_limit = 0;
  double oracle_goodput = 0;  // calls per second; 0: not searched yet, and goodput is not judged
  double goodput_min = 0.95;
  double latency_max = 3;  // 0: latency is not judged
  Duration unloaded{};     // p99 without a queue; zero: of the service times
};

struct Scenario {
  std::string file{};
  std::string name{};
  std::string story{};
  std::uint64_t seed = 1;
  Duration duration = std::chrono::seconds(60);
  Duration drain = std::chrono::seconds(10);  // afterwards, without new calls
  Duration settle{};                          // the summary omits this much of the start
  Duration bucket{};                          // of the time series; zero: chosen automatically
  bool stationary = false;    // the load and the service do not change: compared with a fixed limit
  std::string undiagnosed{};  // why no verdict says what the diagnosis should be
  std::vector<ServiceSpec> services{};
  std::vector<LoadSpec> loads{};
  std::vector<SenderSpec> senders{};
  std::vector<PhaseSpec> phases{};
  std::vector<VerdictSpec> verdicts{};  // those of the phases included

  /// The bucket in force: as given, or chosen for at most 600 buckets of at least 10 ms.
  [[nodiscard]] Duration bucket_width() const noexcept;
};

/// The most buckets a run may have; it bounds the memory of a run.
inline constexpr std::int64_t kBucketsMax = 20000;

}  // namespace weir::inline v0::sim
