#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/server/server.h"

#include "core.h"
#include "rules.h"

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
    /// Reads certificates and keys again. This step and the next one may fail.
    std::function<Result<std::vector<RotatedCertificate>, ConfigError>(const io::TlsConfig&)>
        set_tls;
    /// Reads the files of [upstream.tls] again. Returns what puts them in force, or why not.
    std::function<Result<std::function<void()>, std::string>(const config::Config&)> read_dial_tls;
    std::function<void(const std::shared_ptr<const Rules>&)> set_rules;
    std::function<void(const config::Config&)> set_endpoints;
  };
  LiveOptions(GatewayCore& core, Consumers consumers)
      : core_(core), consumers_(std::move(consumers)) {}

  /// `next` must be valid.
  [[nodiscard]] ReloadReport reload(const config::Config& next);

 private:
  [[nodiscard]] std::string objection_to(const config::Config& next,
                                         const config::Config& now) const;
  void apply(config::OptionApply which, const config::Config& now);

  GatewayCore& core_;
  Consumers consumers_;
};

}  // namespace weir::inline v0::gateway
