#include "upstream_watch.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::gateway {
namespace {

constexpr Duration kPace = std::chrono::seconds(1);

}  // namespace

void UpstreamWatch::look(const UpstreamSet& upstreams, TimePoint now) {
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
    look_at_hedging(*upstreams.all[i], told_[i], now);
    look_at_queues(*upstreams.all[i], told_[i], now);
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

void UpstreamWatch::look_at_hedging(const ServedUpstream& one, Told& told, TimePoint now) {
  const policy::HedgeCohort cohort = one.upstream.slowest_cohort();
  const bool paced = told.not_hedged_at != TimePoint{} && now < told.not_hedged_at + kPace;
  if (cohort.slow == told.not_hedged || paced) return;
  told.not_hedged = cohort.slow;
  told.not_hedged_at = now;
  log_.on_hedging(one.name(), cohort.median, cohort.slow);
}

/// Names the endpoint with the fullest queue.
void UpstreamWatch::look_at_queues(const ServedUpstream& one, Told& told, TimePoint now) {
  const std::shared_ptr<const upstream::EndpointSet> set = one.upstream.endpoints();
  const upstream::Endpoint* fullest = nullptr;
  policy::OutgoingState state = policy::OutgoingState::kBatching;
  for (const upstream::EndpointSet::Member& member : set->members) {
    if (member.endpoint->queue_state() <= state) continue;
    state = member.endpoint->queue_state();
    fullest = member.endpoint.get();
  }
  const bool paced = told.overflow_at != TimePoint{} && now < told.overflow_at + kPace;
  if ((fullest != nullptr) == told.overflow || paced) return;
  told.overflow = fullest != nullptr;
  told.overflow_at = now;
  if (fullest == nullptr) return log_.on_queues_fine(one.name());
  log_.on_queue({.upstream = one.name(), .endpoint = fullest->label(), .state = state});
}

}  // namespace weir::inline v0::gateway
