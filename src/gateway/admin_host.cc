#include "admin_host.h"

#include <algorithm>

#include "weir/base/ip_range.h"
#include "weir/experimental/http/field.h"

namespace weir::inline v0::gateway {
namespace {

/// `authority` without its port.
std::string_view host_in(std::string_view authority) noexcept {
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  const bool in_brackets = bracket != std::string_view::npos && colon < bracket;
  return in_brackets ? authority : authority.substr(0, colon);
}

bool is_ip(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const auto ip = parse_ip(bracketed ? host.substr(1, host.size() - 2) : host);
  return ip.has_value() && ip->v6 == bracketed;
}

}  // namespace

bool admin_host_allowed(std::string_view authority, std::span<const std::string> hosts) {
  if (authority.empty()) return true;
  const std::string_view host = host_in(authority);
  if (http::equals_ignore_case(host, "localhost") || is_ip(host)) return true;
  return std::any_of(hosts.begin(), hosts.end(), [host](const std::string& known) {
    return http::equals_ignore_case(host, known);
  });
}

}  // namespace weir::inline v0::gateway
