#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weir/base/time.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

#include "latency_histogram.h"
#include "policy/diagnosis.h"
#include "policy/hedge_decision.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// How a call ended, as its caller sees it. Every call ends exactly once.
enum class CallEnd : std::uint8_t { kOk, kRefused, kFailed, kTimedOut };
inline constexpr std::size_t kCallEndCount = 4;

/// Counts of the calls of one load and class in a span of time.
struct CallTotals {
  std::uint64_t offered = 0;
  std::uint64_t attempts = 0;                        // sent
  std::uint64_t arrived = 0;                         // reached a service
  std::uint64_t refused = 0;                         // of those
  std::array<std::uint64_t, kCallEndCount> ended{};  // by CallEnd
  std::uint64_t absent = 0;                          // of those that succeeded: "not found"
  LatencyHistogram latency{};                        // of those that succeeded

  [[nodiscard]] std::uint64_t ended_all() const noexcept {
    return ended[0] + ended[1] + ended[2] + ended[3];
  }
  [[nodiscard]] std::uint64_t ok() const noexcept { return ended[0]; }
  void merge(const CallTotals& other) noexcept;
  void clear() noexcept;
};

/// The hedges of a gateway.
struct HedgeTotals {
  std::uint64_t sent = 0;
  std::uint64_t won = 0;                                        // the hedge answered the call
  std::uint64_t lost = 0;                                       // the first attempt did
  std::uint64_t failed = 0;                                     // none did
  std::array<std::uint64_t, policy::kNoHedgeCount> not_sent{};  // calls, by reason

  void merge(const HedgeTotals& later) noexcept;
};

/// The messages to a destination, from all senders.
struct MessageTotals {
  std::uint64_t offered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t refused = 0;
  std::uint64_t expired = 0;
  std::uint32_t queued_max = 0;

  void merge(const MessageTotals& later) noexcept;
};

/// Counts of one service in a span of time.
struct ServiceTotals {
  std::array<std::uint64_t, kReasonCount> refused{};
  std::uint64_t completed = 0;
  std::uint64_t dispatched = 0;
  std::uint64_t replica_tries = 0;  // attempts at replicas
  HedgeTotals hedges{};
  MessageTotals messages{};
  std::uint64_t ejections = 0;
  std::uint64_t suspicions = 0;
  std::uint64_t crashes = 0;
  double busy_ns = 0;    // work finished
  double wasted_ns = 0;  // part of it for callers that had left
  std::uint32_t limit_min = 0;
  std::uint32_t limit_max = 0;
  std::uint32_t limit_end = 0;
  std::uint32_t in_flight_max = 0;
  std::uint32_t in_flight_end = 0;
  std::uint32_t queue_max = 0;
  std::uint32_t waiting_end = 0;
  float baseline_ms = 0;  // of the limiter, at the end
  double memory_max = 0;
  double memory_end = 0;
  LatencyHistogram dispatch{};  // from permit to answer, of successful answers
  LatencyHistogram queue{};     // until a worker took it
  LatencyHistogram wait{};      // in the waiting room, of those admitted from it
  LatencyHistogram refusal{};   // from arrival to refusal

  void merge(const ServiceTotals& later) noexcept;
  /// Resets the counts of the span; keeps the current values (limit, in flight, memory).
  void clear() noexcept;
};

/// Calls of one load and class.
struct Cohort {
  std::uint32_t load = 0;
  Priority priority = Priority::kNormal;
};

/// One bucket of the time series.
struct SeriesPoint {
  struct Calls {
    std::uint32_t offered = 0;
    std::uint32_t ok = 0;
    std::uint32_t refused = 0;  // attempts
  };
  struct Service {
    std::uint32_t limit = 0;
    std::uint32_t in_flight = 0;
    std::uint32_t queue = 0;
    double memory = 0;
    float dispatch_p50_ms = 0;
    float wait_ms = 0;  // mean, in the waiting room, of those admitted from it
    float baseline_ms = 0;
  };
  std::vector<Calls> calls{};  // per cohort
  std::vector<Service> services{};
  float p50_ms = 0;  // over all calls that succeeded in this bucket; 0: none
  float p90_ms = 0;
  float p99_ms = 0;
};

/// A part of the run that a verdict or the summary covers.
struct Span {
  Duration from{};
  Duration to{};
  bool operator==(const Span&) const = default;
};

/// Totals of one span.
struct SpanTotals {
  Span span{};
  std::vector<CallTotals> calls{};  // per cohort
  std::vector<ServiceTotals> services{};

  [[nodiscard]] double seconds() const noexcept { return to_seconds(span.to - span.from); }
};

/// Counts every event once, in the current bucket, and adds closed buckets to the time series and
/// to the spans that cover them. So the cost of a request does not depend on the number of
/// verdicts, and memory does not grow with the number of requests.
class Recorder {
 public:
  Recorder(const Scenario& scenario, std::vector<Cohort> cohorts);

  /// What the diagnosis of a service said at the end of a second, in order.
  void diagnosed(std::uint32_t service, policy::Cause cause) { causes_[service].push_back(cause); }
  [[nodiscard]] const std::vector<policy::Cause>& causes(std::uint32_t service) const noexcept {
    return causes_[service];
  }

  [[nodiscard]] CallTotals& calls(std::uint32_t cohort) noexcept { return calls_[cohort]; }
  [[nodiscard]] ServiceTotals& service(std::uint32_t index) noexcept { return services_[index]; }

  /// Ends the current bucket; after the run's duration nothing is stored.
  void close_bucket();

  [[nodiscard]] const std::vector<Cohort>& cohorts() const noexcept { return cohorts_; }
  [[nodiscard]] Duration bucket() const noexcept { return bucket_; }
  [[nodiscard]] const std::vector<SeriesPoint>& series() const noexcept { return series_; }
  /// The totals of the spans of verdicts; spans().front() is the run without its start.
  [[nodiscard]] const std::vector<SpanTotals>& spans() const noexcept { return spans_; }
  [[nodiscard]] const SpanTotals& span(const Span& which) const;

 private:
  void add_span(const Span& span);

  std::vector<Cohort> cohorts_;
  Duration bucket_;
  std::size_t buckets_max_;
  std::vector<CallTotals> calls_;
  std::vector<ServiceTotals> services_;
  std::vector<SeriesPoint> series_;
  std::vector<std::vector<policy::Cause>> causes_;  // per service, one per second
  std::vector<SpanTotals> spans_;
};

}  // namespace weir::inline v0::sim
