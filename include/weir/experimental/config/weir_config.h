#pragma once

#include <vector>

#include "weir/base/config_error.h"
#include "weir/control/admission_config.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/io/dns_config.h"
#include "weir/experimental/server/server_config.h"
#include "weir/experimental/upstream/upstream_config.h"
#include "weir/policy/hedge_config.h"

namespace weir::inline v0::config {

/// The content of weir.toml, as the config structs of the layers. A default-constructed Config
/// equals an empty file; it has no upstream.
///
/// Thread-safety: a value. Every field that is an option has one row in options.def.
struct Config {
  Config() {
    server.listen = {"127.0.0.1:8080"};
    server.tls.listen = {"127.0.0.1:8443"};
    // The library's default of 16 is meant for writes; a page with one token sends more at once.
    admission.inflight_max = 100;
  }

  ServerConfig server;
  gateway::AdminConfig admin;
  AdmissionConfig admission;
  gateway::ActorsConfig actors;
  gateway::BufferingConfig buffering;
  gateway::MemoryConfig memory;
  gateway::TrustConfig trust;
  io::DnsConfig dns;
  gateway::ReloadConfig reload;
  gateway::RecorderConfig recorder;
  policy::HedgeConfig hedge;
  std::vector<upstream::UpstreamConfig> upstreams;
  std::vector<gateway::RouteConfig> routes;

  bool operator==(const Config&) const = default;

  /// The limit of one upstream: [admission.limit] and what the upstream changes of it.
  [[nodiscard]] LimitConfig limit_of(const upstream::UpstreamConfig& upstream) const noexcept {
    return upstream.limit.over(admission.limit);
  }

  /// `admission` with one scope per upstream and per spare one, the limit of the first, and a table
  /// with room for all their waiters: the controller is made from it.
  [[nodiscard]] AdmissionConfig admission_for_scopes() const;

  /// `routes`; if there are none, one route that sends everything to the only upstream.
  [[nodiscard]] std::vector<gateway::RouteConfig> routes_in_force() const;

  /// All errors of the structs and between them, with keys as in the file ("actors.inflight_max",
  /// "upstream[0].name").
  [[nodiscard]] ConfigErrors validate() const;
  /// Settings that are allowed but not recommended, in the same form.
  [[nodiscard]] ConfigErrors warnings() const;
};

}  // namespace weir::inline v0::config
