#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/admission_request.h"
#include "weir/experimental/http/limits.h"

#include "counters.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {

/// What belongs to the name of an upstream: its admission scope, and what the loops count for it.
/// An upstream that is replaced by another one of the same name leaves it to that one, so one limit
/// bounds the requests of both, and the counters go on.
///
/// Thread-safety: each loop writes its own counters. Lifetime: UpstreamTable owns it while there is
/// an upstream of that name.
struct UpstreamPlace {
  UpstreamPlace(std::string_view upstream, ScopeId id, std::uint32_t loops)
      : name(upstream), scope(id) {
    for (std::uint32_t i = 0; i < loops; ++i) {
      counters.push_back(std::make_unique<UpstreamCounters>());
    }
  }

  const std::string name;
  const ScopeId scope;
  std::vector<std::unique_ptr<UpstreamCounters>> counters;  // by loop
  std::atomic<std::uint32_t> uploads{0};        // admitted, with an incomplete body; of all loops
  std::atomic<std::int64_t> short_until_ns{0};  // a request without a body found no place lately
};

/// One upstream that the gateway serves, or that it has served and whose requests are finishing.
///
/// Thread-safety: any thread. Lifetime: shared by the loops, the sets and who reads them; the last
/// one that lets it go destroys it.
struct ServedUpstream {
  ServedUpstream(UpstreamPlace& where, upstream::Upstream::Setup setup,
                 std::vector<upstream::DiscoveredEndpoint> endpoints, TimePoint now)
      : place(where),
        busy_loops(setup.loops),
        upstream(std::move(setup), std::move(endpoints), now) {
    response_limits.head_bytes_max = upstream.config().response_head_bytes_max;
  }

  [[nodiscard]] const std::string& name() const noexcept { return place.name; }
  [[nodiscard]] ScopeId scope() const noexcept { return place.scope; }

  UpstreamPlace& place;
  http::HttpLimits response_limits;
  std::atomic<bool> left{false};                // was in force, and is not any more
  std::atomic<std::uint32_t> requests_left{0};  // in progress when it left
  std::atomic<std::uint32_t> busy_loops;        // that may have requests for it
  upstream::Upstream upstream;
};

/// The upstreams of one configuration, in its order. Never changes: a reload makes another one.
struct UpstreamSet {
  std::vector<std::shared_ptr<ServedUpstream>> all;

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one->name());
    return names;
  }
  [[nodiscard]] std::shared_ptr<ServedUpstream> find(std::string_view name) const {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->name() == name; });
    return found == all.end() ? nullptr : *found;
  }
  [[nodiscard]] bool has(const ServedUpstream& upstream) const {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& one) { return one.get() == &upstream; });
  }
};

}  // namespace weir::inline v0::gateway
