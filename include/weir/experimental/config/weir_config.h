#pragma once

#include <vector>

#include "weir/base/config_error.h"
#include "weir/control/admission_config.h"
#include "weir/control/hedge_config.h"
#include "weir/control/outgoing_config.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/server/server_config.h"
#include "weir/experimental/upstream/upstream_config.h"

namespace weir::inline v0::config {

/// Everything weir.toml can say, as the structs that the layers take. A default-constructed one is
/// what an empty file means; it has no upstream.
///
/// Thread-safety: a value. Every field that is an option has one row in options.def.
struct Config {
  Config() {
    server.listen = {"127.0.0.1:8080"};
    server.tls.listen = {"127.0.0.1:8443"};
  }

  ServerConfig server;
  gateway::AdminConfig admin;
  AdmissionConfig admission;
  gateway::ActorsConfig actors;
  gateway::MemoryConfig memory;
  HedgeConfig hedge;
  OutgoingConfig outgoing;
  gateway::TrustConfig trust;
  std::vector<upstream::UpstreamConfig> upstreams;
  std::vector<gateway::RouteConfig> routes;

  bool operator==(const Config&) const = default;

  /// `admission` with one scope per upstream, and a table with room for all who wait in them: what
  /// the controller is made from.
  [[nodiscard]] AdmissionConfig admission_for_scopes() const;

  /// `routes`; when there are none, one that leads everything to the only upstream.
  [[nodiscard]] std::vector<gateway::RouteConfig> routes_in_force() const;

  /// Every fault of every struct and between them, keys as in the file ("actors.inflight_max",
  /// "upstream[0].name").
  [[nodiscard]] ConfigErrors validate() const;
  /// What is allowed but unwise, in the same form.
  [[nodiscard]] ConfigErrors warnings() const;
};

}  // namespace weir::inline v0::config
