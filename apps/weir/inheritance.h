#pragma once

#include <optional>
#include <string>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/passed_sockets.h"

#include "gateway/take_over_client.h"

namespace weir::app {

/// What this process gets from the service manager that started it, and from the running process
/// that it takes over from.
struct Inheritance {
  gateway::PassedSockets passed{};
  std::optional<gateway::TakeOver> take_over{};
  std::string notify_socket{};  // where the service manager is told the state; empty: nowhere
};

/// Reads LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES and NOTIFY_SOCKET, and removes them from the
/// environment, because they are meant for this process only. With `take_over`, asks the process
/// that serves admin.take_over_socket. nullopt, with the reason printed, if that fails.
[[nodiscard]] std::optional<Inheritance> inherit(const config::Config& config, bool take_over);

}  // namespace weir::app
