#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.h"

#include "operator_log.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {

/// Logs when every endpoint of an upstream is unavailable, and when one answers again.
///
/// Unavailable: ejected, and no answer since. The end of an ejection does not count as an answer,
/// so an upstream that stays down causes one line, not one per attempt. Before its sources have
/// answered or failed for the first time there is nothing to tell.
/// Promises: one line per change, at most one per second and upstream; always logs the last state.
/// Thread-safety: one thread. Cost: a few loads per endpoint.
class UpstreamWatch {
 public:
  UpstreamWatch(const std::vector<std::string>& names,
                const std::vector<std::unique_ptr<upstream::Upstream>>& upstreams,
                OperatorLog& log);

  void look(TimePoint now) noexcept;

 private:
  struct Told {
    bool unavailable = false;
    TimePoint at{};
  };

  const std::vector<std::string>& names_;
  const std::vector<std::unique_ptr<upstream::Upstream>>& upstreams_;
  OperatorLog& log_;
  std::vector<Told> told_;
};

}  // namespace weir::inline v0::gateway
