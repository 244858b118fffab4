#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"

namespace weir::inline v0::gateway {

/// An answer that the gateway gives itself, instead of an upstream's.
struct RouteAnswer {
  std::string redirect;  // Location; {host} and {path} are those of the request, path with query
  std::uint32_t redirect_status = 307;  // a browser does not keep it, unlike 301 and 308
  std::uint32_t respond = 0;            // a status; 0: no such answer
  std::string respond_body;

  static constexpr std::size_t kBodyMax = 4096;

  bool operator==(const RouteAnswer&) const = default;
  [[nodiscard]] bool given() const noexcept { return !redirect.empty() || respond != 0; }
  [[nodiscard]] ConfigErrors validate() const;
};

namespace route_detail {

/// "https://…", or a path whose first segment the request cannot choose: "/{path}" could become
/// "//other.example/".
constexpr bool is_redirect_target(std::string_view text) noexcept {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t open = rest.find_first_of("{}");
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open);
    if (rest.starts_with("{host}") || rest.starts_with("{path}")) {
      rest.remove_prefix(6);
    } else {
      return false;
    }
  }
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) {
      const std::string_view host = text.substr(scheme.size());
      return !host.empty() && !host.starts_with('/') && !host.starts_with("{path}");
    }
  }
  return text.starts_with('/') && !text.starts_with("//") && !text.starts_with("/{") &&
         !text.starts_with("/\\");
}

}  // namespace route_detail

inline ConfigErrors RouteAnswer::validate() const {
  ConfigErrors errors;
  if (!redirect.empty() && !route_detail::is_redirect_target(redirect)) {
    add_error(errors, "redirect", redirect,
              "https://, http:// and a host, or a path, with {host} and {path} of the request: "
              "https://{host}{path}");
  }
  if (redirect_status != 301 && redirect_status != 302 && redirect_status != 303 &&
      redirect_status != 307 && redirect_status != 308) {
    add_error(errors, "redirect_status", std::to_string(redirect_status),
              "301, 302, 303, 307 or 308");
  }
  if (respond != 0) check_range(errors, "respond", respond, 200U, 599U);
  if (!respond_body.empty() && (respond == 0 || respond == 204 || respond == 304)) {
    add_error(errors, "respond_body", respond_body, "left out without respond, and with 204, 304");
  }
  if (respond_body.size() > kBodyMax) {
    add_error(errors, "respond_body", std::to_string(respond_body.size()) + " bytes",
              "at most " + std::to_string(kBodyMax));
  }
  if (!redirect.empty() && respond != 0) {
    add_error(errors, "respond", std::to_string(respond), "left out when redirect is given");
  }
  return errors;
}

}  // namespace weir::inline v0::gateway
