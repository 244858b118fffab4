#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.h"

#include "control/compared_latency.h"
#include "control/scope_seconds.h"
#include "live/latest.h"
#include "policy/endpoint_health.h"
#include "upstream/endpoint_set.h"
#include "upstream/latency_counts.h"

namespace weir::inline v0::gateway {

/// What is known of one endpoint now, and its median latency of the last seconds.
struct EndpointLine {
  static constexpr std::size_t kSparkSeconds = 20;

  std::uint32_t number = 0;  // of the endpoint: as long as it exists
  std::string label{};
  std::string zone{};
  std::uint32_t weight = 1;
  bool open = true;
  policy::EndpointState state = policy::EndpointState::kAvailable;
  policy::HealthReason reason = policy::HealthReason::kNew;
  TimePoint since{};
  Duration p50{};  // of the last window with answers
  Duration p99{};
  std::uint32_t in_flight = 0;
  std::uint64_t failures = 0;  // since the start
  double failures_per_s = 0;
  std::uint64_t hedges = 0;
  std::uint64_t hedge_wins = 0;
  upstream::LatencySummary second{};          // of the last second
  Latest<float, kSparkSeconds> spark_ms{};    // 0: no answer
  upstream::LatencyCounts::Reading counts{};  // as they were
  upstream::LatencyCounts::Reading compared_counts{};
  control::ComparedLatency compared{};
};

/// A change of an endpoint since the second before.
struct EndpointChange {
  std::string endpoint;
  std::string text;  // "available to ejected: connect_failed"
};

/// The lines of all endpoints of one upstream.
///
/// Thread-safety: none. Cost: O(endpoints) per second; it allocates when the set changes.
class EndpointLines {
 public:
  /// Reads the endpoints; `most` bounds how many lines there may be.
  [[nodiscard]] std::vector<EndpointChange> read(const upstream::EndpointSet& set, TimePoint now,
                                                 double seconds, std::size_t most);

  [[nodiscard]] const std::vector<std::unique_ptr<EndpointLine>>& all() const noexcept {
    return lines_;
  }
  /// Of all endpoints together, in the last second.
  [[nodiscard]] const upstream::LatencySummary& second() const noexcept { return second_; }
  /// For the diagnosis: those that an operator drains do not count.
  [[nodiscard]] control::ReplicaSpread spread() const;

 private:
  void match(const upstream::EndpointSet& set, std::size_t most,
             std::vector<EndpointChange>& changes);

  std::vector<std::unique_ptr<EndpointLine>> lines_;  // in the order of the set
  upstream::LatencySummary second_;
  bool begun_ = false;
};

}  // namespace weir::inline v0::gateway
