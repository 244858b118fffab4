#include "route_edits.h"

#include <algorithm>
#include <cstring>

#include "weir/base/ascii.h"

#include "path_reading.h"

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
  const std::string_view plain = path.substr(0, path.find('?'));
  if (!is_plain_path(plain) || !plain.starts_with(from_)) {
    return unexpected(GatewayRefusal::kAmbiguousPath);
  }
  const std::string_view rest = path.substr(from_.size());
  const bool slash = to_.empty() && !rest.starts_with('/');
  const std::size_t size = to_.size() + (slash ? 1 : 0) + rest.size();
  if (size > out.size()) return unexpected(GatewayRefusal::kHeadTooLarge);
  std::size_t at = to_.copy(out.data(), to_.size());
  if (slash) out[at++] = '/';
  std::memcpy(out.data() + at, rest.data(), rest.size());
  return std::string_view(out.data(), size);
}

}  // namespace weir::inline v0::gateway
