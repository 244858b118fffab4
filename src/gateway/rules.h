#pragma once

#include <span>
#include <string>

#include "weir/experimental/config/weir_config.h"

#include "identity.h"
#include "request_log.h"
#include "route_table.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// What a loop needs to evaluate a request's head, compiled from the configuration. It never
/// changes: a reload makes a new one and gives it to each loop, which uses it in on_headers only.
struct Rules {
  Rules(const config::Config& config, std::span<const std::string> upstreams)
      : routes(config.routes_in_force(), upstreams, config.actors.identity),
        trust(config.trust),
        identity(config.actors.api_key_header),
        log{.mode = config.admin.access_log, .sample = config.admin.access_log_sample} {}

  bool operator==(const Rules&) const = default;

  RouteTable routes;
  TrustTable trust;
  IdentityFinder identity;
  RequestLog::Rules log;
};

}  // namespace weir::inline v0::gateway
