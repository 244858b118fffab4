#include "route_edits.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "weir/base/ascii.h"

#include "path_reading.h"
#include "percent_code.h"

namespace weir::inline v0::gateway {
namespace {

std::string without_final_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::vector<RouteEdits::Field> fields_of(const std::vector<std::string>& texts) {
  std::vector<RouteEdits::Field> fields;
  for (const std::string& text : texts) {
    const FieldText field = split_field(text);
    fields.push_back({.name = to_lower(field.name), .value = std::string(field.value)});
  }
  return fields;
}

std::vector<std::string> names_of(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    names.push_back(to_lower(text));
    std::replace(names.back().begin(), names.back().end(), '_', '-');
  }
  return names;
}

/// One character of a path. A code of a reserved one ("%2F") is not the same as itself.
struct PathCharacter {
  char meant = 0;
  bool reserved_code = false;
  bool operator==(const PathCharacter&) const = default;
};

PathCharacter take_character(std::string_view& path) noexcept {
  const std::optional<char> code = percent_code(path);
  const char meant = code.value_or(path.front());
  path.remove_prefix(code ? 3 : 1);
  return {.meant = meant, .reserved_code = code && !is_unreserved(meant)};
}

/// How much of `path` spells `prefix`, which ends with a segment there; nullopt: it does not.
std::optional<std::size_t> size_of_prefix(std::string_view path, std::string_view prefix) noexcept {
  std::string_view rest = path;
  while (!prefix.empty()) {
    if (rest.empty() || take_character(rest) != take_character(prefix)) return std::nullopt;
  }
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  return path.size() - rest.size();
}

}  // namespace

RouteEdits::RouteEdits(const RouteConfig& config)
    : rewrites_path_(!config.rewrite.path.empty()),
      from_(without_final_slash(config.path.empty() ? config.path_prefix : config.path)),
      to_(without_final_slash(config.rewrite.path)),
      host_(config.rewrite.host),
      request_add_(fields_of(config.rewrite.request_add)),
      response_add_(fields_of(config.rewrite.response_add)),
      request_remove_(names_of(config.rewrite.request_remove)),
      response_remove_(names_of(config.rewrite.response_remove)) {}

bool RouteEdits::contains(const std::vector<std::string>& names, std::string_view name) noexcept {
  const auto same = [](char want, char have) {
    return want == (have == '_' ? '-' : to_lower(have));
  };
  return std::any_of(names.begin(), names.end(), [&](const std::string& one) {
    return std::equal(one.begin(), one.end(), name.begin(), name.end(), same);
  });
}

Result<std::string_view, GatewayRefusal> RouteEdits::path_for(std::string_view path,
                                                              std::span<char> out) const noexcept {
  if (!rewrites_path_ || !path.starts_with('/')) return path;  // "*" of OPTIONS stays
  const std::string_view named = path.substr(0, path.find('?'));
  const std::optional<std::size_t> from = size_of_prefix(named, from_);
  if (!from || !has_one_reading(named.substr(*from))) {
    return unexpected(GatewayRefusal::kAmbiguousPath);
  }
  const std::string_view rest = path.substr(*from);
  const bool slash = to_.empty() && !rest.starts_with('/');
  const std::size_t size = to_.size() + (slash ? 1 : 0) + rest.size();
  if (size > out.size()) return unexpected(GatewayRefusal::kHeadTooLarge);
  std::size_t at = to_.copy(out.data(), to_.size());
  if (slash) out[at++] = '/';
  std::memcpy(out.data() + at, rest.data(), rest.size());
  return std::string_view(out.data(), size);
}

}  // namespace weir::inline v0::gateway
