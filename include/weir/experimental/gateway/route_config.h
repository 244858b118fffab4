#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/route_answer_config.h"
#include "weir/experimental/gateway/route_modes_config.h"
#include "weir/experimental/gateway/route_rewrite_config.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::gateway {

/// How the actor of a request is found: by the first kind in a list that the request contains.
/// Bearer tokens, and API keys without a keys_file, only distinguish clients; they are not
/// verified.
///   kCertificate  subject of the client's certificate
///   kBearer       token of the Authorization header, hashed
///   kApiKey       value of [actors] api_key_header, hashed; with keys_file, the owner of the key
///   kJwt          a claim of a token in the Authorization header, if its signature is verified
///   kHeader       x-weir-actor, from trusted peers only
///   kAddress      the client's address (v6: the /64); behind NAT many users share one
enum class IdentityKind : std::uint8_t { kCertificate, kBearer, kApiKey, kHeader, kAddress, kJwt };

WEIR_ENUM_NAMES(IdentityKind, "certificate", "bearer", "api_key", "header", "address", "jwt")

/// Which bytes of a request count against the budgets of its actor and of the process.
///   kHeld       what the gateway itself now holds of the request and its response
///   kAnnounced  the whole request body, to the end of the request: for services that buffer bodies
enum class BytesCharged : std::uint8_t { kHeld, kAnnounced };
WEIR_ENUM_NAMES(BytesCharged, "held", "announced")

/// A protocol that a request may switch to: by Upgrade in HTTP/1.1, by extended CONNECT in HTTP/2.
enum class UpgradeProtocol : std::uint8_t { kWebSocket };
WEIR_ENUM_NAMES(UpgradeProtocol, "websocket")

/// How a client reached the gateway: with TLS or not, or as a trusted proxy before it says.
enum class Scheme : std::uint8_t { kHttp, kHttps };
WEIR_ENUM_NAMES(Scheme, "http", "https")

/// Which requests go to which upstream, and with which settings. The first match is used.
struct RouteConfig {
  std::optional<Scheme> scheme;      // unset: any
  std::string host;                  // "example.com", "*.example.com"; empty: any
  std::string path;                  // this path exactly
  std::string path_prefix;           // or every path below it; both empty: any
  std::string grpc;                  // or a gRPC service "pkg.Service", or "pkg.Service/Method"
  std::vector<std::string> methods;  // empty: any
  std::vector<std::string> headers;  // all of them: "name: value", or "name" with any value
  std::string upstream;              // or an answer
  RouteAnswer answer;
  RouteRewrite rewrite;
  std::optional<Priority> priority;  // unset: from trusted peers' headers, else normal
  std::uint64_t max_body = 0;        // bytes; larger: 413; 0: no bound
  std::optional<std::uint64_t> buffer_request_max;  // unset: the server's, which is also the most
  BytesCharged bytes = BytesCharged::kHeld;
  std::uint64_t bytes_estimate = 1 << 20;  // if announced bytes count and Content-Length is missing
  std::optional<Duration> overall_timeout;     // unset: the upstream's; 0: none
  std::optional<Duration> first_byte_timeout;  // unset: the upstream's
  bool stream = false;                         // its answers may be silent, also before their heads
  bool idempotent = false;                     // may be sent twice, whatever its method
  bool hedge = true;                           // its reads may be sent to a second endpoint
  std::uint32_t cost = 1;                      // units of the limit that one request takes
  RouteModes modes;                            // of the rules of admission
  std::vector<IdentityKind> identity;          // empty: as in [actors]
  bool identity_required = false;              // without an actor: 401
  /// Unset: all of them, if the upstream can.
  std::optional<std::vector<UpgradeProtocol>> upgrade;

  bool operator==(const RouteConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
  /// Whether a request has the same class, cost and rules by either: not what is matched, nor what
  /// concerns the request alone (timeouts, whether it may be sent twice, or hedged).
  [[nodiscard]] bool treats_as(const RouteConfig& other) const {
    return upstream == other.upstream && priority == other.priority && cost == other.cost &&
           stream == other.stream && max_body == other.max_body && bytes == other.bytes &&
           bytes_estimate == other.bytes_estimate && identity == other.identity &&
           identity_required == other.identity_required && answer == other.answer &&
           rewrite == other.rewrite && upgrade == other.upgrade && modes == other.modes;
  }

 private:
  void check_target(ConfigErrors& errors) const;
};

inline constexpr std::uint64_t kBytesEstimateMax = 4398046511103;  // as [actors] bytes_max
inline constexpr std::size_t kRouteHeadersMax = 8;

namespace route_detail {

constexpr bool is_host_pattern(std::string_view host) noexcept {
  if (host.starts_with("*.")) host.remove_prefix(2);
  return !host.empty() && host.find_first_of("*/ \t\r\n?#@") == std::string_view::npos;
}

/// "pkg.Service" or "pkg.Service/Method".
constexpr bool is_grpc_name(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const auto is_name = [](std::string_view part) {
    return is_token(part) && part.find_first_of("!#$%&'*+-^`|~") == std::string_view::npos;
  };
  if (slash == std::string_view::npos) return is_name(text);
  return is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

}  // namespace route_detail

/// A route leads to an upstream, or has an answer; what it rewrites goes to an upstream.
inline void RouteConfig::check_target(ConfigErrors& errors) const {
  for (const ConfigErrors& some : {answer.validate(), rewrite.validate()}) {
    errors.insert(errors.end(), some.begin(), some.end());
  }
  if (upstream.empty() && !answer.given()) {
    add_error(errors, "upstream", "\"\"", "the name of an [[upstream]], or redirect or respond");
  }
  if (!upstream.empty() && answer.given()) {
    add_error(errors, "upstream", upstream, "left out when redirect or respond is given");
  }
  if (answer.given() && rewrite.changes_requests()) {
    add_error(errors, answer.redirect.empty() ? "respond" : "redirect", "given",
              "left out when requests are rewritten: they go nowhere");
  }
  if (!grpc.empty() && !rewrite.path.empty()) {
    add_error(errors, "path_rewrite", rewrite.path, "left out when grpc is given");
  }
}

inline ConfigErrors RouteConfig::validate() const {
  ConfigErrors errors;
  if (!host.empty() && !route_detail::is_host_pattern(host)) {
    add_error(errors, "host", host, "a host name, or *. and a domain");
  }
  if (!path.empty() && !path_prefix.empty()) {
    add_error(errors, "path_prefix", path_prefix, "left out when path is given");
  }
  if (!path.empty() && path[0] != '/') add_error(errors, "path", path, "a path that starts with /");
  if (!path_prefix.empty() && path_prefix[0] != '/') {
    add_error(errors, "path_prefix", path_prefix, "a path that starts with /");
  }
  if (!grpc.empty() && !route_detail::is_grpc_name(grpc)) {
    add_error(errors, "grpc", grpc, "a service, pkg.Service, or a method, pkg.Service/Method");
  }
  if (!grpc.empty() && !(path.empty() && path_prefix.empty())) {
    add_error(errors, "grpc", grpc, "left out when path or path_prefix is given");
  }
  for (const std::string& method : methods) {
    if (!route_detail::is_token(method)) add_error(errors, "methods", method, "an HTTP method");
  }
  for (const std::string& text : headers) {
    const FieldText field = split_field(text);
    if (!route_detail::is_token(field.name) || !route_detail::is_field_value(field.value)) {
      add_error(errors, "headers", text, "a field, \"name: value\", or its name alone");
    } else if (to_lower(field.name).starts_with("x-weir-")) {
      add_error(errors, "headers", text,
                "a field that is not x-weir-: priority and trust use them");
    }
  }
  if (headers.size() > kRouteHeadersMax) {
    add_error(errors, "headers", std::to_string(headers.size()) + " fields",
              "at most " + std::to_string(kRouteHeadersMax));
  }
  check_target(errors);
  check_range(errors, "bytes_estimate", bytes_estimate, std::uint64_t{0}, kBytesEstimateMax);
  check_range(errors, "overall_timeout_ms", overall_timeout.value_or(Duration(0)), Duration(0),
              Duration(std::chrono::hours(24)));
  if (first_byte_timeout) {
    check_range(errors, "first_byte_timeout_ms", *first_byte_timeout,
                Duration(std::chrono::milliseconds(1)), Duration(std::chrono::hours(24)));
    if (stream) {
      add_error(errors, "first_byte_timeout_ms", "given",
                "left out when stream is true: such a route has none");
    }
  }
  check_range(errors, "cost", cost, 1U, kClassUnitsMax);
  return errors;
}

}  // namespace weir::inline v0::gateway
