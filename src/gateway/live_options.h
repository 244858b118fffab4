#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/server/server.h"

#include "core.h"
#include "gateway_loop.h"

namespace weir::inline v0::gateway {

/// Puts the live options of a new configuration in force: for each OptionApply of a changed row, it
/// calls exactly the function of that name.
///
/// Promises: applies everything or nothing. Afterwards core.config and the values that each
/// consumer holds are those of a fresh start with the same live options, except the learned limits.
/// Thread-safety: the thread that reloads.
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
  LiveOptions(GatewayCore& core, Consumers consumers)
      : core_(core), consumers_(std::move(consumers)) {}

  /// `next` must be valid.
  [[nodiscard]] ReloadReport reload(const config::Config& next);

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

  GatewayCore& core_;
  Consumers consumers_;
};

}  // namespace weir::inline v0::gateway
