#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/server/server.h"

#include "core.h"
#include "gateway_loop.h"
#include "override_table.h"

namespace weir::inline v0::gateway {

/// Puts the live options of a new configuration in force: for each OptionApply of a changed row, it
/// calls exactly the function of that name.
///
/// Promises: applies everything or nothing. Afterwards core.config and the values that each
/// consumer holds are those of a fresh start with the same live options, except the learned limits
/// and what overrides change (effective_config.h): core.config is the configuration without them.
/// Thread-safety: one reload at a time; change_overrides() from other threads.
class LiveOptions {
 public:
  struct Consumers {
    /// Reads certificates and keys again. This step and the next two may fail.
    std::function<Result<std::vector<RotatedCertificate>, ConfigError>(const io::TlsConfig&)>
        set_tls;
    /// Reads the files of [upstream.tls]: a context for each upstream, or why not.
    std::function<Result<std::vector<io::TlsContext::Ptr>, std::string>(const config::Config&)>
        read_dial_tls;
    /// Finds the endpoints of the upstreams that are new. Returns why they cannot be used; empty if
    /// they can.
    std::function<std::string(const UpstreamSet&, const config::Config&)> find_endpoints;
    /// Stops the sources of all other upstreams.
    std::function<void(const UpstreamSet&)> keep_endpoints;
    /// Changes the sources of all upstreams.
    std::function<void(const UpstreamSet&, const config::Config&)> set_endpoints;
    /// Gives upstreams and rules to every loop; when it returns, all of them use it.
    std::function<void(const GatewayLoop::Table&)> take;
    /// Waits until this is true, or for a moment at most.
    std::function<void(const std::function<bool()>&)> wait_briefly;
  };
  /// `rules` are those that the loops have now.
  LiveOptions(GatewayCore& core, Consumers consumers, std::shared_ptr<const Rules> rules)
      : core_(core), consumers_(std::move(consumers)), rules_(std::move(rules)) {}

  /// `next` must be valid. Overrides stay in force; those that have nothing to act on any more end.
  [[nodiscard]] ReloadReport reload(const config::Config& next);

  /// Puts in force what `change` leaves in the table. False, without a call: a reload is under way.
  /// From any thread but the loops'.
  bool change_overrides(const std::function<void(OverrideTable&)>& change, TimePoint now);

 private:
  /// What a reload is going to put in force.
  struct Prepared {
    config::Config now;
    std::vector<io::TlsContext::Ptr> contexts;
    std::shared_ptr<const UpstreamSet> upstreams;
    IdentityFiles identity;
  };
  [[nodiscard]] std::string objection_to(const config::Config& now) const;
  [[nodiscard]] std::string prepare(const config::Config& before, Prepared& prepared);
  void put_in_force(const Prepared& prepared, const std::set<config::OptionApply>& wanted);
  void apply(config::OptionApply which, const Prepared& prepared);
  [[nodiscard]] AdmissionConfig in_controller(AdmissionConfig rules) const;
  void set_limits(const config::Config& effective, const UpstreamSet& upstreams);
  void set_drained(const UpstreamSet& upstreams, TimePoint now);
  void end_overrides(const config::Config& config, ReloadReport& report);
  void end_drains(const UpstreamSet& upstreams, ReloadReport& report);

  GatewayCore& core_;
  Consumers consumers_;
  std::mutex mutex_;                    // one change at a time
  OverrideTable overrides_;             // under mutex_
  std::shared_ptr<const Rules> rules_;  // that the loops have; under mutex_
};

}  // namespace weir::inline v0::gateway
