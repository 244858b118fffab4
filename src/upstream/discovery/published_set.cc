#include "discovery/published_set.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weir::inline v0::upstream {
namespace {

auto rank_of(const DiscoveredEndpoint& one) {
  const io::Address& at = one.address.address;
  return std::tie(at.family, at.ip, at.scope, at.port, one.address.path);
}

}  // namespace

void PublishedSet::publish(List list, const std::string& error) {
  status_.succeeded = loop_->now();
  status_.cut = list.cut;
  std::vector<DiscoveredEndpoint> sorted = list.endpoints;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const DiscoveredEndpoint& a, const DiscoveredEndpoint& b) {
                     return rank_of(a) < rank_of(b);
                   });
  if (!status_.known || sorted != sorted_) {
    status_.known = true;
    status_.changed = status_.succeeded;
    status_.endpoints = sorted.size();
    sorted_ = std::move(sorted);
    if (attached()) sink_->on_endpoints(source_, std::move(list.endpoints));
  }
  tell(error);
}

void PublishedSet::fail(const std::string& error) {
  tell(error);
}

void PublishedSet::tell(const std::string& error) {
  if (error.empty()) {
    status_.failing_since = {};
  } else if (status_.error.empty()) {
    status_.failing_since = loop_->now();
  }
  if (std::exchange(status_.error, error) == error) return;
  if (attached()) sink_->on_source_error(source_, status_.error);
}

}  // namespace weir::inline v0::upstream
