#include "config/option_table.h"

#include <algorithm>
#include <array>

namespace weir::inline v0::config {
namespace {

// Makes an Option<Owner> from a row. Captureless lambdas, so that the table is constant data.
// NOLINTBEGIN(bugprone-macro-parentheses): `owner` is a type, `member` a path of members
#define WEIR_BOUND(owner, section, name, kind, member, low, high, unit, apply, help)          \
  Option<owner>{                                                                              \
      OptionRow{section, name, OptionKind::k##kind, static_cast<double>(low),                 \
                static_cast<double>(high), unit, OptionApply::k##apply, help, #member},       \
      [](owner& o, const RawValue& v, const OptionRow& r) { return assign(o.member, v, r); }, \
      [](const owner& o, const OptionRow& r) { return print(o.member, r); },                  \
      [](owner& to, const owner& from) { to.member = from.member; },                          \
      [](const owner& o) { return choices_of(o.member); }},

constexpr std::array kConfigOptions = {
#define WEIR_OPTION(section, name, kind, field, low, high, unit, apply, help) \
  WEIR_BOUND(Config, section, name, kind, field, low, high, unit, apply, help)
#include "options.def"
};

constexpr std::array kUpstreamOptions = {
#define WEIR_UPSTREAM_OPTION(section, name, kind, field, low, high, unit, apply, help) \
  WEIR_BOUND(upstream::UpstreamConfig, section, name, kind, field, low, high, unit, apply, help)
#include "options.def"
};

constexpr std::array kRouteOptions = {
#define WEIR_ROUTE_OPTION(name, kind, field, low, high, unit, apply, help) \
  WEIR_BOUND(gateway::RouteConfig, "route", name, kind, field, low, high, unit, apply, help)
#include "options.def"
};

#undef WEIR_BOUND
// NOLINTEND(bugprone-macro-parentheses)

constexpr std::array kPlainSections = [] {
  std::array<std::string_view, 32> found{};
  std::size_t count = 0;
  for (const auto& option : kConfigOptions) {
    const auto end = found.begin() + count;
    if (std::find(found.begin(), end, option.row.section) == end)
      found[count++] = option.row.section;
  }
  return found;
}();

constexpr std::array kAliases = {
    EnvironmentAlias{"WEIR_PER_ACTOR_INFLIGHT_MAX", "actors", "inflight_max"},
    EnvironmentAlias{"WEIR_PER_ACTOR_BYTES_MAX", "actors", "bytes_max"},
};

/// Fields whose option has a different name.
struct FieldAlias {
  std::string_view owner;
  std::string_view field;
  std::string_view key;
};
constexpr std::array kFieldAliases = {
    FieldAlias{"admission", "class_cap_high", "priority.high_limit"},
    FieldAlias{"admission", "class_cap_normal", "priority.normal_limit"},
    FieldAlias{"admission", "class_cap_low", "priority.low_limit"},
    FieldAlias{"server", "listen", "listen.addresses"},
};

/// "admission.limit.min_limit" -> "min_limit".
std::string_view last_part(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

}  // namespace

std::span<const Option<Config>> config_options() noexcept {
  return kConfigOptions;
}
std::span<const Option<upstream::UpstreamConfig>> upstream_options() noexcept {
  return kUpstreamOptions;
}
std::span<const Option<gateway::RouteConfig>> route_options() noexcept {
  return kRouteOptions;
}

std::span<const std::string_view> upstream_tables() noexcept {
  static constexpr std::array<std::string_view, 2> kTables = {"upstream.tls", "upstream.health"};
  return kTables;
}

std::span<const std::string_view> plain_sections() noexcept {
  const auto end = std::find(kPlainSections.begin(), kPlainSections.end(), std::string_view());
  return {kPlainSections.begin(), end};
}

std::string key_inside(const OptionRow& row) {
  const std::size_t dot = row.section.find('.');
  if (dot == std::string_view::npos) return std::string(row.name);
  return std::string(row.section.substr(dot + 1)) + "." + std::string(row.name);
}

std::string environment_name(const OptionRow& row) {
  std::string text = "WEIR_";
  if (!row.name.starts_with(row.section)) text += std::string(row.section) + "_";
  text += row.name;
  for (char& c : text) {
    if (c == '.') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::span<const EnvironmentAlias> environment_aliases() noexcept {
  return kAliases;
}

std::string key_of_field(std::string_view owner, std::string_view field) {
  const std::string_view name = last_part(field);
  for (const FieldAlias& alias : kFieldAliases) {
    if (alias.owner == owner && alias.field == name) return std::string(alias.key);
  }
  const Option<Config>* loose = nullptr;
  for (const Option<Config>& option : kConfigOptions) {
    if (option.row.name != name) continue;
    if (option.row.field.substr(0, option.row.field.find('.')) != owner) continue;
    loose = &option;
    // Prefer admission.streams_max over a nested struct's field of the same name.
    const bool nested = field.find('.') != std::string_view::npos;
    if (nested == (option.row.section.find('.') != std::string_view::npos)) break;
  }
  if (loose != nullptr) return loose->row.key();
  return std::string(owner) + "." + std::string(field);
}

}  // namespace weir::inline v0::config
