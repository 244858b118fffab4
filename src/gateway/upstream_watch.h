#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.h"

#include "operator_log.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {

/// Tells the operator when every endpoint of an upstream is unavailable, and when one answers
/// again.
///
/// Unavailable: ejected, and no answer since. The end of an ejection is not yet an answer, so that
/// an upstream that stays down is one line, not one for every attempt.
/// Promises: one line per change, at most one a second per upstream; the last state is always told.
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
