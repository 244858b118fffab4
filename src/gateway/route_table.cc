#include "route_table.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/experimental/http/field.h"

namespace weir::inline v0::gateway {
namespace {

std::uint32_t bit_of(http::Method method) noexcept {
  return 1U << static_cast<unsigned>(method);
}

std::string as_read(std::string_view path, const PathReading& reading) {
  std::string out(path);
  out.resize(read_path(path, reading, out).size());
  return out;
}

bool treat_alike(const Route* one, const Route* other) noexcept {
  if (one == nullptr || other == nullptr) return one == other;
  return one->config.treats_as(other->config);
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

RouteTable::Entry RouteTable::entry_of(const RouteConfig& config) {
  Entry entry;
  if (config.host.starts_with("*.")) {
    entry.host_kind = HostKind::kBelow;
    entry.host = to_lower(std::string_view(config.host).substr(1));
  } else if (!config.host.empty()) {
    entry.host_kind = HostKind::kExact;
    entry.host = to_lower(host_of(config.host));
  }
  const bool grpc_method = config.grpc.find('/') != std::string::npos;
  const bool exact = !config.path.empty() || grpc_method;
  const std::string path = !config.grpc.empty() ? "/" + config.grpc
                           : exact              ? config.path
                                                : config.path_prefix;
  if (path.size() > (exact ? 0U : 1U))
    entry.path_kind = exact ? PathKind::kExact : PathKind::kPrefix;
  for (std::size_t i = 0; i < kPathReadings.size(); ++i) {
    std::string& read = entry.paths[i] = as_read(path, kPathReadings[i]);
    while (!exact && read.ends_with('/')) read.pop_back();
  }
  for (const std::string& token : config.methods) {
    const http::Method method = http::method_of(token);
    entry.methods |= bit_of(method);
    if (method == http::Method::kOther) entry.method_tokens.push_back(token);
  }
  for (const std::string& text : config.headers) {
    const FieldText field = split_field(text);
    entry.headers.push_back({.id = http::field_id(field.name),
                             .name = std::string(field.name),
                             .value = std::string(field.value),
                             .any_value = !field.has_value});
  }
  return entry;
}

RouteTable::RouteTable(std::span<const RouteConfig> routes, std::span<const std::string> upstreams,
                       std::span<const IdentityKind> default_identity) {
  // Classes by the order of the routes to an upstream.
  const auto next_class = [this](const std::string& upstream) {
    const auto before = std::count_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.route.config.upstream == upstream;
    });
    return static_cast<upstream::ReadClass>(
        std::min<std::ptrdiff_t>(before, upstream::kReadClassesMax - 1));
  };
  for (const RouteConfig& config : routes) {
    Entry entry = entry_of(config);
    const auto at = std::find(upstreams.begin(), upstreams.end(), config.upstream);
    WEIR_ASSERT(at != upstreams.end() || config.answer.given());
    entry.route = {.upstream = static_cast<std::uint16_t>(at - upstreams.begin()),
                   .index = static_cast<std::uint16_t>(entries_.size()),
                   .reads = next_class(config.upstream),
                   .config = config,
                   .modes = config.modes.overrides(),
                   .edits = RouteEdits(config)};
    std::vector<IdentityKind>& identity = entry.route.config.identity;
    if (identity.empty()) identity.assign(default_identity.begin(), default_identity.end());
    entries_.push_back(std::move(entry));
  }
  paths_matter_ = std::any_of(entries_.begin(), entries_.end(),
                              [](const Entry& e) { return e.path_kind != PathKind::kAny; });
}

bool RouteTable::header_fits(const HeaderRule& rule, const http::HeaderList& headers) noexcept {
  if (rule.id != http::FieldId::kOther && !headers.has(rule.id)) return false;
  return std::any_of(headers.begin(), headers.end(), [&](const http::HeaderView& field) {
    return field.id == rule.id && http::equals_ignore_case(field.name, rule.name) &&
           (rule.any_value || field.value == rule.value);
  });
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

bool RouteTable::path_fits(const Entry& entry, std::string_view path,
                           std::size_t reading) noexcept {
  if (entry.path_kind == PathKind::kAny) return true;
  const std::string& wanted = entry.paths[reading];
  if (!path.starts_with(wanted)) return false;
  if (path.size() == wanted.size()) return true;
  return entry.path_kind == PathKind::kPrefix && path[wanted.size()] == '/';
}

bool RouteTable::method_fits(const Entry& entry, const http::RequestMeta& meta,
                             http::Method method) noexcept {
  if (entry.methods == 0) return true;
  if ((entry.methods & bit_of(method)) == 0) return false;
  if (method != http::Method::kOther) return true;
  return std::find(entry.method_tokens.begin(), entry.method_tokens.end(), meta.method) !=
         entry.method_tokens.end();
}

const Route* RouteTable::first_match(const Asked& asked, std::string_view path,
                                     std::size_t reading) const noexcept {
  const std::string_view host = host_of(asked.meta.authority);
  for (const Entry& entry : entries_) {
    const std::optional<Scheme>& scheme = entry.route.config.scheme;
    if (scheme.value_or(asked.scheme) == asked.scheme && host_fits(entry, host) &&
        path_fits(entry, path, reading) && method_fits(entry, asked.meta, asked.method) &&
        std::all_of(entry.headers.begin(), entry.headers.end(),
                    [&](const HeaderRule& rule) { return header_fits(rule, asked.headers); })) {
      return &entry.route;
    }
  }
  return nullptr;
}

RouteTable::Match RouteTable::match(const Asked& asked, std::span<char> scratch) const noexcept {
  const std::string_view path = asked.meta.path.substr(0, asked.meta.path.find('?'));
  if (is_plain_path(path)) return {first_match(asked, path, 0)};
  if (path.size() > scratch.size()) return {};  // longer than the server accepts
  const auto read_as = [&](std::size_t i) {
    return first_match(asked, read_path(path, kPathReadings[i], scratch), i);
  };
  const Route* const route = read_as(0);
  if (route == nullptr || !paths_matter_) return {route};
  for (std::size_t i = 1; i < kPathReadings.size(); ++i) {
    if (!treat_alike(route, read_as(i))) return {route, true};
  }
  return {route};
}

}  // namespace weir::inline v0::gateway
