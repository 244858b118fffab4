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
#include "weir/policy/class_admission.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::gateway {

/// How the actor of a request is found: by the first kind in a list that the request contains.
/// Bearer tokens and API keys only distinguish clients; they are not verified.
///   kCertificate  subject of the client's certificate
///   kBearer       token of the Authorization header, hashed
///   kApiKey       value of [actors] api_key_header, hashed
///   kHeader       x-weir-actor, from trusted peers only
///   kAddress      the client's address (v6: the /64); behind NAT many users share one
enum class IdentityKind : std::uint8_t { kCertificate, kBearer, kApiKey, kHeader, kAddress };

WEIR_ENUM_NAMES(IdentityKind, "certificate", "bearer", "api_key", "header", "address")

/// Which bytes of a request count against the budgets of its actor and of the process.
///   kHeld       what the gateway itself now holds of the request and its response
///   kAnnounced  the whole request body, to the end of the request: for services that buffer bodies
enum class BytesCharged : std::uint8_t { kHeld, kAnnounced };
WEIR_ENUM_NAMES(BytesCharged, "held", "announced")

/// Which requests go to which upstream, and with which settings. The first match is used.
struct RouteConfig {
  std::string host;                  // "example.com", "*.example.com"; empty: any
  std::string path;                  // this path exactly
  std::string path_prefix;           // or every path below it; both empty: any
  std::vector<std::string> methods;  // empty: any
  std::string upstream;
  std::optional<Priority> priority;  // unset: from trusted peers' headers, else normal
  std::uint64_t max_body = 0;        // bytes; larger: 413; 0: no bound
  std::optional<std::uint64_t> buffer_request_max;  // unset: the server's, which is also the most
  BytesCharged bytes = BytesCharged::kHeld;
  std::uint64_t bytes_estimate = 1 << 20;  // if announced bytes count and Content-Length is missing
  std::optional<Duration> overall_timeout;  // unset: the upstream's; 0: none
  bool idempotent = false;                  // may be sent twice, whatever its method
  bool hedge = true;                        // its reads may be sent to a second endpoint
  std::uint32_t cost = 1;                   // units of the limit that one request takes
  std::vector<IdentityKind> identity;       // empty: as in [actors]

  bool operator==(const RouteConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
  /// Whether a request has the same class, cost and rules by either: not what is matched, nor what
  /// concerns the request alone (timeouts, whether it may be sent twice, or hedged).
  [[nodiscard]] bool treats_as(const RouteConfig& other) const {
    return upstream == other.upstream && priority == other.priority && cost == other.cost &&
           max_body == other.max_body && bytes == other.bytes &&
           bytes_estimate == other.bytes_estimate && identity == other.identity;
  }
};

inline constexpr std::uint64_t kBytesEstimateMax = 4398046511103;  // as [actors] bytes_max

namespace route_detail {

constexpr bool is_token(std::string_view text) noexcept {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  if (text.empty()) return false;
  for (const char c : text) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!alnum && kOther.find(c) == std::string_view::npos) return false;
  }
  return true;
}

constexpr bool is_host_pattern(std::string_view host) noexcept {
  if (host.starts_with("*.")) host.remove_prefix(2);
  return !host.empty() && host.find_first_of("*/ \t\r\n?#@") == std::string_view::npos;
}

}  // namespace route_detail

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
  for (const std::string& method : methods) {
    if (!route_detail::is_token(method)) add_error(errors, "methods", method, "an HTTP method");
  }
  if (upstream.empty()) add_error(errors, "upstream", "\"\"", "the name of an [[upstream]]");
  check_range(errors, "bytes_estimate", bytes_estimate, std::uint64_t{0}, kBytesEstimateMax);
  check_range(errors, "overall_timeout_ms", overall_timeout.value_or(Duration(0)), Duration(0),
              Duration(std::chrono::hours(24)));
  check_range(errors, "cost", cost, 1U, kClassUnitsMax);
  return errors;
}

}  // namespace weir::inline v0::gateway
