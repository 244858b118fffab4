#pragma once

#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/passed_sockets.h"
#include "weir/experimental/server/server.h"

#include "socket_places.h"

namespace weir::inline v0::gateway {

/// Where the listening sockets of a gateway come from, and to whom they go: a service manager, the
/// process before it, the process after it.
///
/// Thread-safety: one owner.
class GatewaySockets {
 public:
  /// The sockets of both servers of a gateway, in the order of their addresses.
  struct Given {
    GivenSockets clients;
    GivenSockets admin;
  };
  /// Divides passed sockets among the addresses of the configuration. Fails if a service manager
  /// passed one that has no address there.
  [[nodiscard]] Result<Given, std::string> assign(const config::Config& config,
                                                  PassedSockets passed);
  /// For each of the passed sockets: whether an address has it.
  [[nodiscard]] const std::vector<bool>& taken() const noexcept { return taken_; }

  struct Servers {
    Server& clients;
    Server* admin = nullptr;
  };
  /// All of them again, for a process that takes over; empty while a server drains.
  [[nodiscard]] std::vector<PassedSocket> duplicates(const Servers& servers) const;
  /// That process serves the queues of these (in the same order).
  void share(const Servers& servers, const std::vector<bool>& shared) const;

 private:
  std::vector<SocketPlace> places_;  // those of the admin endpoint last
  std::vector<bool> held_;           // of each place: a service manager keeps its socket
  std::vector<bool> taken_;
};

}  // namespace weir::inline v0::gateway
