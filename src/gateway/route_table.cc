#include "gateway/route_table.h"

#include <algorithm>

#include "weir/base/assert.h"
#include "weir/http/field.h"

namespace weir::inline v0 {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::uint32_t bit_of(Method method) noexcept {
  return 1U << static_cast<unsigned>(method);
}

/// The bytes of `segment` up to "." and "..", with %2e read as a dot.
bool is_dots(std::string_view segment) noexcept {
  std::size_t dots = 0;
  while (!segment.empty()) {
    if (segment.front() == '.') {
      segment.remove_prefix(1);
    } else if (segment.size() >= 3 && segment[0] == '%' && segment[1] == '2' &&
               lower(segment[2]) == 'e') {
      segment.remove_prefix(3);
    } else {
      return false;
    }
    if (++dots > 2) return false;
  }
  return dots > 0;
}

}  // namespace

std::string_view host_of(std::string_view authority) noexcept {
  std::string_view host = authority;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool has_dot_segment(std::string_view path) noexcept {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    if (is_dots(path.substr(0, end))) return true;
    path.remove_prefix(end);
  }
  return false;
}

RouteTable::RouteTable(std::span<const RouteConfig> routes, std::span<const std::string> upstreams,
                       std::span<const IdentityKind> default_identity) {
  for (const RouteConfig& config : routes) {
    Entry entry;
    if (config.host.starts_with("*.")) {
      entry.host_kind = HostKind::kBelow;
      entry.host = lowered(std::string_view(config.host).substr(1));
    } else if (!config.host.empty()) {
      entry.host_kind = HostKind::kExact;
      entry.host = lowered(host_of(config.host));
    }
    if (!config.path.empty()) {
      entry.path_kind = PathKind::kExact;
      entry.path = config.path;
    } else if (config.path_prefix.size() > 1) {
      entry.path_kind = PathKind::kPrefix;
      entry.path = config.path_prefix;
      while (entry.path.ends_with('/')) entry.path.pop_back();
      if (entry.path.empty()) entry.path_kind = PathKind::kAny;
    }
    for (const std::string& token : config.methods) {
      const Method method = method_of(token);
      entry.methods |= bit_of(method);
      if (method == Method::kOther) entry.method_tokens.push_back(token);
    }
    const auto at = std::find(upstreams.begin(), upstreams.end(), config.upstream);
    WEIR_ASSERT(at != upstreams.end());
    const auto& identity = config.identity;
    entry.route = {.upstream = static_cast<std::uint16_t>(at - upstreams.begin()),
                   .index = static_cast<std::uint16_t>(entries_.size()),
                   .cost = config.cost,
                   .max_body = config.max_body,
                   .priority = config.priority,
                   .identity = identity.empty()
                                   ? std::vector<IdentityKind>(default_identity.begin(),
                                                               default_identity.end())
                                   : identity};
    entries_.push_back(std::move(entry));
  }
}

bool RouteTable::host_fits(const Entry& entry, std::string_view host) noexcept {
  switch (entry.host_kind) {
    case HostKind::kAny:
      return true;
    case HostKind::kExact:
      return equals_ignore_case(entry.host, host);
    case HostKind::kBelow:
      return host.size() > entry.host.size() &&
             equals_ignore_case(entry.host, host.substr(host.size() - entry.host.size()));
  }
  return false;
}

bool RouteTable::path_fits(const Entry& entry, std::string_view path) noexcept {
  switch (entry.path_kind) {
    case PathKind::kAny:
      return true;
    case PathKind::kExact:
      return path == entry.path;
    case PathKind::kPrefix:
      return path.starts_with(entry.path) &&
             (path.size() == entry.path.size() || path[entry.path.size()] == '/');
  }
  return false;
}

bool RouteTable::method_fits(const Entry& entry, const RequestMeta& meta, Method method) noexcept {
  if (entry.methods == 0) return true;
  if ((entry.methods & bit_of(method)) == 0) return false;
  if (method != Method::kOther) return true;
  return std::find(entry.method_tokens.begin(), entry.method_tokens.end(), meta.method) !=
         entry.method_tokens.end();
}

const Route* RouteTable::match(const RequestMeta& meta, Method method) const noexcept {
  const std::string_view host = host_of(meta.authority);
  const std::string_view path = meta.path.substr(0, meta.path.find('?'));
  std::optional<bool> dots;
  for (const Entry& entry : entries_) {
    if (!host_fits(entry, host) || !path_fits(entry, path)) continue;
    if (!method_fits(entry, meta, method)) continue;
    if (entry.path_kind != PathKind::kAny) {
      if (!dots) dots = has_dot_segment(path);
      if (*dots) continue;
    }
    return &entry.route;
  }
  return nullptr;
}

}  // namespace weir::inline v0
