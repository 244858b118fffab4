#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weir/base/time.h"

#include "policy/latency_ejection.h"
#include "upstream/latency_counts.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

/// Judges the endpoints of an upstream from what all loops measured: silence at every tick, the
/// delay of hedges ten times a second, latency once a second. Publishes the sums that choices need.
///
/// A loop that is late has not read what arrived: what it waits for does not count. The others tell
/// when they tick (Upstream::note_tick()); `lateness` is that of the loop that runs this.
///
/// Thread-safety: one thread, the first loop's. Cost: O(endpoints) per tick, no lock while all are
/// well. Lifetime: within that of the upstream.
class EndpointWatch {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(20);
  static constexpr Duration kWindow = std::chrono::seconds(1);
  static constexpr Duration kHedgeEvery = std::chrono::milliseconds(100);
  /// Later than this, our own delay could look like the endpoints' silence.
  static constexpr Duration kLate = std::chrono::milliseconds(20);

  explicit EndpointWatch(Upstream& upstream) : upstream_(upstream) {}

  void tick(TimePoint now, Duration lateness);

 private:
  /// What is remembered of one endpoint from window to window.
  struct Seen {
    std::shared_ptr<Endpoint> endpoint;  // as long as its address is a key, nobody else gets it
    LatencyCounts::Reading counts{};
    policy::SlowWindows slow;
    bool present = false;
  };

  void judge_silence(const EndpointSet& set, TimePoint now, bool late);
  void close_window(const EndpointSet& set, TimePoint now);
  void judge_reads(const EndpointSet& set, TimePoint now);
  void publish(const EndpointSet& set, TimePoint now);

  Upstream& upstream_;
  std::unordered_map<const Endpoint*, Seen> seen_;
  std::vector<policy::LatencyWindow> windows_;
  std::vector<policy::SlowWindows> history_;
  std::vector<Duration> scratch_;
  std::vector<policy::CohortMember> members_;
  policy::CohortLatency latency_;
  TimePoint window_ends_{};
  TimePoint reads_due_{};
  TimePoint late_until_{};
};

}  // namespace weir::inline v0::upstream
