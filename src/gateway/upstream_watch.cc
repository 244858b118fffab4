#include "upstream_watch.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::gateway {

void UpstreamWatch::look(const UpstreamSet& upstreams, TimePoint now) {
  constexpr Duration kPace = std::chrono::seconds(1);
  const auto same = [](const std::shared_ptr<ServedUpstream>& one, const Told& told) {
    return one.get() == told.upstream;
  };
  if (!std::equal(upstreams.all.begin(), upstreams.all.end(), told_.begin(), told_.end(), same)) {
    const std::vector<Told> before = std::exchange(told_, {});
    for (const auto& one : upstreams.all) {
      const auto known = std::find_if(before.begin(), before.end(),
                                      [&](const Told& told) { return same(one, told); });
      told_.push_back(known != before.end() ? *known : Told{.upstream = one.get()});
    }
  }
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const upstream::Upstream& upstream = upstreams.all[i]->upstream;
    if (!upstream.discovered()) continue;
    const bool unavailable = upstream.all_failing();
    Told& told = told_[i];
    if (unavailable == told.unavailable || (told.at != TimePoint{} && now < told.at + kPace)) {
      continue;
    }
    told.unavailable = unavailable;
    told.at = now;
    log_.on_upstream(upstreams.all[i]->name(), upstream.endpoints()->members.size(), unavailable);
  }
}

}  // namespace weir::inline v0::gateway
