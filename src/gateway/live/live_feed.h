#pragma once

#include <cstdint>
#include <string>

#include "admin_request.h"
#include "live/live_json.h"
#include "live/live_query.h"
#include "live/live_sampler.h"
#include "live/replicas_view.h"

namespace weir::inline v0::gateway {

/// The stream of one watcher: `hello`, then a `tick` per second, as docs/design/live.md has them.
///
/// Thread-safety: the loop of the admin endpoint. Lifetime: within that of view and sampler.
class LiveFeed final : public AdminFeed {
 public:
  /// `query.upstream` names the upstream that is watched; empty: there is none.
  LiveFeed(const GatewayView& view, const LiveSampler& sampler, const LiveQuery& query);

  [[nodiscard]] std::string next() override;

 private:
  [[nodiscard]] LiveJson hello();
  [[nodiscard]] LiveJson tick();
  void add_view(LiveJson& tick, const LiveUpstream& upstream);
  void add_config(LiveJson& tick);

  const GatewayView& view_;
  const LiveSampler& sampler_;
  const LiveQuery query_;
  ReplicasView replicas_;
  std::uint64_t events_seen_ = 0;
  std::uint64_t reloads_seen_ = 0;
  bool begun_ = false;
  bool first_tick_ = true;
};

/// The page /live: a stream, or what is wrong with its parameters.
[[nodiscard]] AdminPage live_page(const GatewayView& view, const AdminRequest& request);

/// The page /diagnose: the verdict of each upstream, or of the one that `upstream=` names.
[[nodiscard]] AdminPage diagnose_page(const GatewayView& view, const AdminRequest& request);

}  // namespace weir::inline v0::gateway
