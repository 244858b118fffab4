#pragma once

#include <vector>

#include "weir/base/time.h"

#include "operator_log.h"
#include "served_upstream.h"

namespace weir::inline v0::gateway {

/// Logs when every endpoint of an upstream is unavailable, and when one answers again; when an
/// upstream is too slow to be hedged, and when it is not any more; when the queue to an endpoint
/// overflows, and when none does any more.
///
/// Unavailable: ejected, and no answer since. The end of an ejection does not count as an answer,
/// so an upstream that stays down causes one line, not one per attempt. Before its sources have
/// answered or failed for the first time there is nothing to tell.
/// Promises: one line per change, at most one per second and upstream; always logs the last state.
/// Thread-safety: one thread. Cost: a few loads per endpoint.
class UpstreamWatch {
 public:
  explicit UpstreamWatch(OperatorLog& log) noexcept : log_(log) {}

  void look(const UpstreamSet& upstreams, TimePoint now);

 private:
  struct Told {
    const ServedUpstream* upstream = nullptr;  // only compared
    bool unavailable = false;
    TimePoint at{};
    bool not_hedged = false;
    TimePoint not_hedged_at{};
    bool overflow = false;
    TimePoint overflow_at{};
  };

  void look_at_hedging(const ServedUpstream& one, Told& told, TimePoint now);
  void look_at_queues(const ServedUpstream& one, Told& told, TimePoint now);

  OperatorLog& log_;
  std::vector<Told> told_;
};

}  // namespace weir::inline v0::gateway
