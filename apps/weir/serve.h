#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/gateway.h"

#include "inheritance.h"

namespace weir::app {

/// How a gateway is run in this process until a signal ends it.
struct Serving {
  /// Reads the configuration again on SIGHUP; nullopt, with its errors printed, if it is not valid.
  /// Unset: there is nothing to read again.
  std::function<std::optional<config::Config>()> read_again{};
  /// The option with which the user chooses addresses.
  std::string listen_option = "--listen";
  std::string admin_option = "--admin";
  /// Called once, when clients can connect.
  std::function<void(const gateway::Gateway&)> on_started{};
  /// Called every second, if set.
  std::function<void(const gateway::Gateway&)> on_second{};
};

/// Runs until SIGTERM or SIGINT, or until another process has taken over, then drains: stops
/// accepting, lets requests finish for at most admin.drain_timeout_ms, ends. A second signal ends
/// at once. Returns the exit status.
int serve(const config::Config& config, const Serving& serving, Inheritance inherited = {});

}  // namespace weir::app
