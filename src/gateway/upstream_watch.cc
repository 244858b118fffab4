#include "upstream_watch.h"

namespace weir::inline v0::gateway {

UpstreamWatch::UpstreamWatch(const std::vector<std::string>& names,
                             const std::vector<std::unique_ptr<upstream::Upstream>>& upstreams,
                             OperatorLog& log)
    : names_(names), upstreams_(upstreams), log_(log), told_(upstreams.size()) {}

void UpstreamWatch::look(TimePoint now) noexcept {
  constexpr Duration kPace = std::chrono::seconds(1);
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    if (!upstreams_[i]->discovered()) continue;
    const bool unavailable = upstreams_[i]->all_failing();
    Told& told = told_[i];
    if (unavailable == told.unavailable || (told.at != TimePoint{} && now < told.at + kPace)) {
      continue;
    }
    told = {.unavailable = unavailable, .at = now};
    log_.on_upstream(names_[i], upstreams_[i]->endpoints()->members.size(), unavailable);
  }
}

}  // namespace weir::inline v0::gateway
