#include "route_table.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/experimental/http/field.h"

#include "percent_code.h"

namespace weir::inline v0::gateway {
namespace {

std::uint32_t bit_of(http::Method method) noexcept {
  return 1U << static_cast<unsigned>(method);
}

/// Whether `segment` is "." or "..", with %2e read as a dot.
bool is_dots(std::string_view segment) noexcept {
  std::size_t dots = 0;
  while (!segment.empty()) {
    if (segment.front() == '.') {
      segment.remove_prefix(1);
    } else if (percent_code(segment) == '.') {
      segment.remove_prefix(3);
    } else {
      return false;
    }
    if (++dots > 2) return false;
  }
  return dots > 0;
}

bool is_unreserved(char c) noexcept {
  const char l = to_lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

/// Reads a path as RFC 3986 §6.2.2 compares it: "%72" is "r", "%2f" is "%2F". Otherwise a client
/// could choose its class, or what it is charged, by the spelling of a path.
class PathReader {
 public:
  explicit PathReader(std::string_view path) noexcept : rest_(path) {}

  [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
  char next() noexcept {
    if (digits_ > 0) {
      --digits_;
      const char digit = take(1);
      return digit >= 'a' && digit <= 'f' ? static_cast<char>(digit - 'a' + 'A') : digit;
    }
    const std::optional<char> meant = percent_code(rest_);
    if (!meant) return take(1);
    if (!is_unreserved(*meant)) {
      digits_ = 2;
      return take(1);
    }
    take(3);
    return *meant;
  }

 private:
  char take(std::size_t bytes) noexcept {
    const char first = rest_.front();
    rest_.remove_prefix(bytes);
    return first;
  }

  std::string_view rest_;
  int digits_ = 0;  // remaining digits of a code that stays encoded
};

std::string as_compared(std::string_view path) {
  std::string out;
  for (PathReader reader(path); !reader.done();) out += reader.next();
  return out;
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
      entry.host = to_lower(std::string_view(config.host).substr(1));
    } else if (!config.host.empty()) {
      entry.host_kind = HostKind::kExact;
      entry.host = to_lower(host_of(config.host));
    }
    if (!config.path.empty()) {
      entry.path_kind = PathKind::kExact;
      entry.path = as_compared(config.path);
    } else if (config.path_prefix.size() > 1) {
      entry.path_kind = PathKind::kPrefix;
      entry.path = as_compared(config.path_prefix);
      while (entry.path.ends_with('/')) entry.path.pop_back();
      if (entry.path.empty()) entry.path_kind = PathKind::kAny;
    }
    for (const std::string& token : config.methods) {
      const http::Method method = http::method_of(token);
      entry.methods |= bit_of(method);
      if (method == http::Method::kOther) entry.method_tokens.push_back(token);
    }
    const auto at = std::find(upstreams.begin(), upstreams.end(), config.upstream);
    WEIR_ASSERT(at != upstreams.end());
    entry.route = {.upstream = static_cast<std::uint16_t>(at - upstreams.begin()),
                   .index = static_cast<std::uint16_t>(entries_.size()),
                   .config = config};
    std::vector<IdentityKind>& identity = entry.route.config.identity;
    if (identity.empty()) identity.assign(default_identity.begin(), default_identity.end());
    entries_.push_back(std::move(entry));
  }
}

bool RouteTable::host_fits(const Entry& entry, std::string_view host) noexcept {
  switch (entry.host_kind) {
    case HostKind::kAny:
      return true;
    case HostKind::kExact:
      return http::equals_ignore_case(entry.host, host);
    case HostKind::kBelow:
      return host.size() > entry.host.size() &&
             http::equals_ignore_case(entry.host, host.substr(host.size() - entry.host.size()));
  }
  return false;
}

bool RouteTable::path_fits(const Entry& entry, std::string_view path) noexcept {
  if (entry.path_kind == PathKind::kAny) return true;
  PathReader reader(path);
  for (const char wanted : entry.path) {
    if (reader.done() || reader.next() != wanted) return false;
  }
  return reader.done() || (entry.path_kind == PathKind::kPrefix && reader.next() == '/');
}

bool RouteTable::method_fits(const Entry& entry, const http::RequestMeta& meta,
                             http::Method method) noexcept {
  if (entry.methods == 0) return true;
  if ((entry.methods & bit_of(method)) == 0) return false;
  if (method != http::Method::kOther) return true;
  return std::find(entry.method_tokens.begin(), entry.method_tokens.end(), meta.method) !=
         entry.method_tokens.end();
}

const Route* RouteTable::match(const http::RequestMeta& meta, http::Method method) const noexcept {
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

}  // namespace weir::inline v0::gateway
