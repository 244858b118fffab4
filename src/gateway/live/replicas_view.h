#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "live/live_json.h"
#include "live/live_query.h"
#include "live/live_sampler.h"

namespace weir::inline v0::gateway {

/// One watcher's page of the sorted list of replicas: sends each row when it is new on the page or
/// has changed.
///
/// Thread-safety: none. Cost: O(endpoints log endpoints) per second; remembers at most
/// LiveQuery::kRowsMax rows.
class ReplicasView {
 public:
  explicit ReplicasView(const LiveQuery& query) : query_(query) {}

  [[nodiscard]] LiveJson next(const LiveUpstream& upstream, TimePoint now);

 private:
  [[nodiscard]] bool matches(const EndpointLine& line) const;
  void sort(std::vector<const EndpointLine*>& lines) const;

  const LiveQuery query_;
  std::unordered_map<std::uint32_t, std::string> sent_;  // rows of the page, by id
};

}  // namespace weir::inline v0::gateway
