#include "weir/experimental/config/weir_config.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/net_address.h"

#include "config/nearest.h"
#include "config/option_table.h"
#include "config/raw_config.h"

namespace weir::inline v0::config {
namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kScopesMax = 1024;  // of AdmissionConfig

/// Adds the errors of one layer's struct, with the keys of the file.
void take(ConfigErrors& errors, std::string_view owner, ConfigErrors inner) {
  const std::string own = std::string(owner) + ".";
  for (ConfigError& error : inner) {
    std::string_view field = error.key;
    if (field.starts_with(own)) field.remove_prefix(own.size());
    error.key = key_of_field(owner, field);
    errors.push_back(std::move(error));
  }
}

std::string indexed(std::string_view section, std::size_t index) {
  return std::string(section) + "[" + std::to_string(index) + "].";
}

/// Letters, digits and - _ . : the name becomes a metric label and part of paths of /endpoints.
bool is_name(std::string_view text) {
  return text.size() <= kNameMax && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

void check_listen(ConfigErrors& errors, std::string_view key,
                  const std::vector<std::string>& listen) {
  for (const std::string& text : listen) {
    const auto address = parse_net_address(text);
    if (address && address->can_listen()) continue;
    add_error(errors, key, quoted_text(text), "numeric address:port, :port or unix:/path");
  }
}

void check_listeners(ConfigErrors& errors, const ServerConfig& server) {
  const bool encrypted = server.tls.enabled() && !server.tls.listen.empty();
  if (server.listen.empty() && !encrypted) {
    add_error(errors, "listen.addresses", "[]", "at least one address, here or in tls.listen");
  }
  check_listen(errors, "listen.addresses", server.listen);
  check_listen(errors, "tls.listen", server.tls.listen);
}

/// Nobody could send a header that is believed. Unix sockets have the permissions of their files.
void check_proxies(ConfigErrors& errors, const Config& config) {
  if (!config.trust.proxies.empty()) return;
  for (const std::string& text : config.server.proxy_protocol) {
    const auto address = parse_net_address(text);
    if (address && address->kind == NetAddressKind::kUnix) continue;
    return add_error(errors, "trust.proxies", "[]",
                     "the addresses of the proxies that connect to " + text +
                         ", which listen.proxy_protocol names");
  }
}

void check_upstreams(ConfigErrors& errors, const Config& config) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    const upstream::UpstreamConfig& upstream = config.upstreams[i];
    const std::string prefix = indexed("upstream", i);
    append_errors(errors, prefix, upstream.validate(config.admission.limit));
    if (!is_name(upstream.name)) {
      add_error(errors, prefix + "name", quoted_text(upstream.name),
                "at most 64 letters, digits, '-', '_' and '.'");
    }
    if (!upstream.name.empty() && !names.insert(upstream.name).second) {
      add_error(errors, prefix + "name", quoted_text(upstream.name), "a name of its own");
    }
  }
}

void check_routes(ConfigErrors& errors, const Config& config) {
  std::vector<std::string_view> names;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) names.push_back(upstream.name);
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const gateway::RouteConfig& route = config.routes[i];
    append_errors(errors, indexed("route", i), route.validate());
    const auto& identity = route.identity;
    if (config.actors.jwt.keys.empty() &&
        std::find(identity.begin(), identity.end(), gateway::IdentityKind::kJwt) !=
            identity.end()) {
      add_error(errors, indexed("route", i) + "identity", "jwt",
                "used with actors.jwt.keys, which verify tokens");
    }
    check_range(errors, indexed("route", i) + "buffer_request_max",
                route.buffer_request_max.value_or(0), std::uint64_t{0},
                config.buffering.buffer_request_max);
    if (route.upstream.empty()) continue;
    const auto named = std::find(names.begin(), names.end(), route.upstream);
    if (named != names.end()) {
      const upstream::UpstreamConfig& to =
          config.upstreams[static_cast<std::size_t>(named - names.begin())];
      if (!route.grpc.empty() && !to.may_speak_http2()) {
        add_error(errors, indexed("route", i) + "grpc", quoted_text(route.grpc),
                  "led to an upstream that speaks HTTP/2: [[upstream]] protocol = \"http2\"");
      }
      continue;
    }
    std::string allowed = "the name of an [[upstream]]";
    const std::string_view meant = nearest(route.upstream, names);
    if (!meant.empty()) allowed += "; did you mean " + std::string(meant) + "?";
    add_error(errors, indexed("route", i) + "upstream", quoted_text(route.upstream), allowed);
  }
  if (config.routes.empty() && config.upstreams.size() > 1) {
    add_error(
        errors, "route", "none",
        "written when there are several upstreams: [[route]] path_prefix = \"/some\" upstream "
        "= " +
            quoted_text(config.upstreams.front().name) +
            ", and so on; one without a path takes the rest");
  }
}

/// A switch is an Upgrade of HTTP/1.1 towards the upstream.
void check_upgrades(ConfigErrors& errors, const Config& config) {
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const gateway::RouteConfig& route = config.routes[i];
    if (!route.upgrade || route.upgrade->empty()) continue;
    for (const upstream::UpstreamConfig& upstream : config.upstreams) {
      if (upstream.name != route.upstream || upstream.protocol != upstream::Protocol::kHttp2) {
        continue;
      }
      add_error(errors, indexed("route", i) + "upgrade", "[\"websocket\"]",
                "[] or left out for an upstream with protocol = \"http2\", or protocol = \"auto\" "
                "in upstream " +
                    upstream.name + ": its endpoints switch protocols in HTTP/1.1 only");
    }
  }
}

bool same_match(const gateway::RouteConfig& a, const gateway::RouteConfig& b) {
  return a.host == b.host && a.path == b.path && a.path_prefix == b.path_prefix &&
         a.grpc == b.grpc && a.methods == b.methods && a.headers == b.headers;
}

void warn_of_routes(ConfigErrors& found, const Config& config) {
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (!same_match(config.routes[i], config.routes[before])) continue;
      add_error(found, "route[" + std::to_string(i) + "]", "never used",
                "different from route[" + std::to_string(before) + "], which matches the same");
      break;
    }
  }
  for (std::size_t i = 0; i < config.upstreams.size() && !config.routes.empty(); ++i) {
    const std::string& name = config.upstreams[i].name;
    const bool used =
        std::any_of(config.routes.begin(), config.routes.end(),
                    [&](const gateway::RouteConfig& route) { return route.upstream == name; });
    if (!used)
      add_error(found, indexed("upstream", i) + "name", quoted_text(name), "used by a route");
  }
}

void warn_of_upstreams(ConfigErrors& found, const Config& config) {
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    const upstream::UpstreamConfig& upstream = config.upstreams[i];
    if (upstream.tls_enabled && upstream.tls.insecure) {
      add_error(found, indexed("upstream", i) + "tls.insecure", "true",
                "false outside of tests: no certificate is verified, so anybody between here and "
                "upstream " +
                    upstream.name + " can read and change everything");
    }
  }
}

void warn_of_trust(ConfigErrors& found, std::string_view key, const std::vector<IpRange>& ranges) {
  for (const IpRange& range : ranges) {
    if (range.bits == 0) add_error(found, key, to_string(range), "less than everybody");
  }
}

}  // namespace

AdmissionConfig Config::admission_for_scopes() const {
  AdmissionConfig scoped = admission;
  if (!upstreams.empty()) scoped.limit = limit_of(upstreams.front());
  const std::size_t scopes = upstreams.size() + reload.upstreams_spare;
  scoped.scopes_max = static_cast<std::uint32_t>(std::clamp<std::size_t>(scopes, 1, kScopesMax));
  // Each further upstream adds a waiting room, and each waiter holds an entry. So does each request
  // whose body is received first.
  const std::uint64_t more = scoped.pinned_max() - admission.pinned_max() + buffering.blocks();
  scoped.actor_table_size = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(admission.actor_table_size + 2 * more, kActorTableMax));
  return scoped;
}

std::vector<gateway::RouteConfig> Config::routes_in_force() const {
  if (!routes.empty() || upstreams.size() != 1) return routes;
  gateway::RouteConfig everything;
  everything.upstream = upstreams.front().name;
  return {everything};
}

ConfigErrors Config::validate() const {
  ConfigErrors errors;
  check_listeners(errors, server);
  check_proxies(errors, *this);
  take(errors, "server", server.validate());
  take(errors, "admin", admin.validate());
  take(errors, "admission", admission.validate());
  take(errors, "actors", actors.validate());
  take(errors, "buffering", buffering.validate());
  take(errors, "memory", memory.validate());
  take(errors, "dns", dns.validate());
  take(errors, "reload", reload.validate());
  take(errors, "recorder", recorder.validate());
  take(errors, "hedge", hedge.validate());
  check_upstreams(errors, *this);
  check_routes(errors, *this);
  check_upgrades(errors, *this);
  return errors;
}

ConfigErrors Config::warnings() const {
  ConfigErrors found;
  take(found, "server", server.warnings());
  const bool answers = std::any_of(routes.begin(), routes.end(),
                                   [](const auto& route) { return route.answer.given(); });
  if (upstreams.empty() && !answers)
    add_error(found, "upstream", "none", "given, or nothing can be forwarded");
  if (admin.listen && !admin.listen->is_loopback()) {
    add_error(found, "admin.listen", quoted_text(to_string(*admin.listen)),
              "a loopback address, because the admin endpoint asks nobody for a password");
  }
  warn_of_trust(found, "trust.peers", trust.peers);
  warn_of_trust(found, "trust.proxies", trust.proxies);
  warn_of_routes(found, *this);
  warn_of_upstreams(found, *this);
  return found;
}

}  // namespace weir::inline v0::config
