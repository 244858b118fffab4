#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/gateway.h"

namespace weir::app {

/// How a gateway is run in this process until a signal ends it.
struct Serving {
  /// What a SIGHUP reads; nothing, with its errors told, when that is not good. Unset: there is
  /// nothing to read again.
  std::function<std::optional<config::Config>()> read_again{};
  /// How the user chooses addresses.
  std::string listen_option = "--listen";
  std::string admin_option = "--admin";
  /// Told once, when clients can connect.
  std::function<void(const gateway::Gateway&)> on_started{};
  /// Told every second; unset: nobody looks.
  std::function<void(const gateway::Gateway&)> on_second{};
};

/// Runs until SIGTERM or SIGINT, then drains: stops accepting, lets requests finish for at most
/// admin.drain_timeout_ms, ends. A second signal ends at once. The exit status of the program.
int serve(const config::Config& config, const Serving& serving);

}  // namespace weir::app
