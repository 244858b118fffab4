#pragma once

#include <span>
#include <string>

#include "weir/config/weir_config.h"

#include "gateway/identity.h"
#include "gateway/request_log.h"
#include "gateway/route_table.h"
#include "gateway/trust.h"

namespace weir::inline v0 {

/// What a loop needs to know about a request's head, compiled from the configuration. Never
/// changed: a reload makes a new one and hands it to each loop, which looks at it in on_headers
/// only.
struct Rules {
  Rules(const Config& config, std::span<const std::string> upstreams)
      : routes(config.routes_in_force(), upstreams, config.actors.identity),
        trust(config.trust),
        identity(config.actors.api_key_header),
        log{.mode = config.admin.access_log, .sample = config.admin.access_log_sample} {}

  RouteTable routes;
  TrustTable trust;
  IdentityFinder identity;
  RequestLog::Rules log;
};

}  // namespace weir::inline v0
