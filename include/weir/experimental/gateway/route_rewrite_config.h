#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/config_check.h"
#include "weir/base/config_error.h"

namespace weir::inline v0::gateway {

/// A header field as a route's option names it: "name: value", or "name" alone.
struct FieldText {
  std::string_view name;
  std::string_view value{};  // without surrounding blanks
  bool has_value = false;
};

/// What a route changes in the heads of its requests and responses. Fields are removed first, then
/// added, so a field that is in both lists is replaced.
struct RouteRewrite {
  std::string path;  // replaces the path, or the prefix, that the route matches
  std::string host;
  std::vector<std::string> request_add;  // "name: value"
  std::vector<std::string> request_remove;
  std::vector<std::string> response_add;
  std::vector<std::string> response_remove;

  static constexpr std::size_t kFieldsMax = 16;        // of each list
  static constexpr std::size_t kAddedBytesMax = 2048;  // of each list

  bool operator==(const RouteRewrite&) const = default;
  [[nodiscard]] bool changes_requests() const noexcept {
    return !(path.empty() && host.empty() && request_add.empty() && request_remove.empty());
  }
  [[nodiscard]] ConfigErrors validate() const;
};

constexpr FieldText split_field(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {.name = text};
  std::string_view value = text.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  return {.name = text.substr(0, colon), .value = value, .has_value = true};
}

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

constexpr bool is_field_value(std::string_view value) noexcept {
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) return false;
  }
  return true;
}

/// Fields that frame a message, belong to one connection, or are the gateway's own.
inline bool is_ours(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "connection", "content-length",   "expect",  "host", "http2-settings", "keep-alive",
      "te",         "proxy-connection", "trailer", "via",  "upgrade",        "transfer-encoding"};
  const std::string lower = to_lower(name);
  for (const std::string_view one : kNames) {
    if (lower == one) return true;
  }
  return lower.starts_with("x-weir-");
}

/// A path that every server reads alike, without a query.
constexpr bool is_plain_target(std::string_view path) noexcept {
  if (path.empty() || path[0] != '/') return false;
  for (const char c : path) {
    if (c <= ' ' || c > '~' || c == '?' || c == '#' || c == '%' || c == ';' || c == '\\') {
      return false;
    }
  }
  for (const std::string_view odd : {"//", "/./", "/../"}) {
    if (path.find(odd) != std::string_view::npos) return false;
  }
  return !path.ends_with("/.") && !path.ends_with("/..");
}

constexpr bool is_authority(std::string_view host) noexcept {
  if (host.empty()) return false;
  for (const char c : host) {
    if (c <= ' ' || c > '~' || c == '/' || c == '?' || c == '#' || c == '@' || c == '*') {
      return false;
    }
  }
  return true;
}

inline void check_fields(ConfigErrors& errors, std::string_view key,
                         const std::vector<std::string>& fields, bool adds) {
  std::size_t bytes = 0;
  for (const std::string& text : fields) {
    const FieldText field = split_field(text);
    bytes += text.size();
    if (field.has_value != adds || !is_token(field.name) || !is_field_value(field.value)) {
      add_error(errors, std::string(key), text,
                adds ? "a field, \"name: value\"" : "the name of a field");
    } else if (is_ours(field.name)) {
      add_error(errors, std::string(key), text,
                "a field that the gateway does not write itself; host: see host_rewrite");
    }
  }
  if (fields.size() > RouteRewrite::kFieldsMax) {
    add_error(errors, std::string(key), std::to_string(fields.size()) + " fields",
              "at most " + std::to_string(RouteRewrite::kFieldsMax));
  }
  if (adds && bytes > RouteRewrite::kAddedBytesMax) {
    add_error(errors, std::string(key), std::to_string(bytes) + " bytes",
              "at most " + std::to_string(RouteRewrite::kAddedBytesMax) + " in total");
  }
}

}  // namespace route_detail

inline ConfigErrors RouteRewrite::validate() const {
  ConfigErrors errors;
  if (!path.empty() && !route_detail::is_plain_target(path)) {
    add_error(errors, "path_rewrite", path,
              "a path that starts with /, without query, codes, empty and dot segments");
  }
  if (!host.empty() && !route_detail::is_authority(host)) {
    add_error(errors, "host_rewrite", host, "a host name, with its port if it needs one");
  }
  route_detail::check_fields(errors, "request_headers_add", request_add, true);
  route_detail::check_fields(errors, "request_headers_remove", request_remove, false);
  route_detail::check_fields(errors, "response_headers_add", response_add, true);
  route_detail::check_fields(errors, "response_headers_remove", response_remove, false);
  return errors;
}

}  // namespace weir::inline v0::gateway
