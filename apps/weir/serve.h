#pragma once

#include <functional>
#include <string>

#include "weir/config/weir_config.h"
#include "weir/gateway/gateway.h"

namespace weir::app {

/// How a gateway is run in this process until a signal ends it.
struct Serving {
  std::string config_file;  // read again on SIGHUP; empty: there is nothing to read
  /// Told once, when clients can connect.
  std::function<void(const Gateway&)> on_started{};
  /// Told every second; unset: nobody looks.
  std::function<void(const Gateway&)> on_second{};
};

/// Runs until SIGTERM or SIGINT, then drains: stops accepting, lets requests finish for at most
/// admin.drain_timeout_ms, ends. A second signal ends at once. The exit status of the program.
int serve(const Config& config, const Serving& serving);

}  // namespace weir::app
