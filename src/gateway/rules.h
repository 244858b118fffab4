#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/experimental/config/weir_config.h"

#include "identity.h"
#include "request_log.h"
#include "route_table.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// What a loop needs to evaluate a request's head, compiled from the configuration. It never
/// changes: a reload makes a new one and gives it to each loop, which uses it in on_headers only.
struct Rules {
  Rules(const config::Config& config, std::span<const std::string> upstreams,
        IdentityFiles files = {}, std::shared_ptr<LogFocus> focus = {})
      : routes(config.routes_in_force(), upstreams, config.actors.identity),
        trust(config.trust),
        identity(config.actors, std::move(files)),
        hash_by(hash_by_of(config, upstreams)),
        log{.mode = config.admin.access_log,
            .sample = config.admin.access_log_sample,
            .format = config.admin.access_log_format,
            .focus = std::move(focus)} {}

  /// The same for a configuration that differs in the modes of routes only.
  [[nodiscard]] Rules with(const config::Config& config, std::span<const std::string> upstreams,
                           std::shared_ptr<LogFocus> focus) const {
    Rules next = *this;
    next.routes = RouteTable(config.routes_in_force(), upstreams, config.actors.identity);
    next.log.focus = std::move(focus);
    return next;
  }

  bool operator==(const Rules&) const = default;

  RouteTable routes;
  TrustTable trust;
  IdentityFinder identity;
  std::vector<upstream::HashBy> hash_by;  // of each upstream
  RequestLog::Rules log;

 private:
  static std::vector<upstream::HashBy> hash_by_of(const config::Config& config,
                                                  std::span<const std::string> upstreams) {
    std::vector<upstream::HashBy> all(upstreams.size());
    for (const upstream::UpstreamConfig& one : config.upstreams) {
      for (std::size_t i = 0; i < upstreams.size(); ++i) {
        if (upstreams[i] == one.name)
          all[i] = upstream::parse_hash_by(one.hash_by).value_or(all[i]);
      }
    }
    return all;
  }
};

}  // namespace weir::inline v0::gateway
