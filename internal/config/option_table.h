#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/experimental/config/weir_config.h"

#include "config/option_codec.h"
#include "config/option_kind.h"
#include "config/raw_config.h"

namespace weir::inline v0::config {

/// A row of options.def bound to its field in an Owner: Config, UpstreamConfig or RouteConfig.
template <class Owner>
struct Option {
  OptionRow row;
  Refusal (*assign)(Owner& owner, const RawValue& value, const OptionRow& row);
  /// The TOML literal of the field; empty for an option that is not set.
  std::string (*print)(const Owner& owner, const OptionRow& row);
  /// Copies the field from another owner.
  void (*copy)(Owner& to, const Owner& from);
  /// The allowed words; empty unless it is a Choice.
  Words (*choices)(const Owner& owner);
};

[[nodiscard]] std::span<const Option<Config>> config_options() noexcept;
[[nodiscard]] std::span<const Option<upstream::UpstreamConfig>> upstream_options() noexcept;
[[nodiscard]] std::span<const Option<gateway::RouteConfig>> route_options() noexcept;

/// The tables inside of one [[upstream]], which are written [upstream.tls].
[[nodiscard]] std::span<const std::string_view> upstream_tables() noexcept;

/// The plain sections, in the order of the table.
[[nodiscard]] std::span<const std::string_view> plain_sections() noexcept;

/// The option with that section and name; nullptr if there is none.
template <class Owner>
[[nodiscard]] const Option<Owner>* find_option(std::span<const Option<Owner>> options,
                                               std::string_view section,
                                               std::string_view name) noexcept {
  for (const Option<Owner>& option : options) {
    if (option.row.name == name && option.row.section == section) return &option;
  }
  return nullptr;
}

/// The key of an option inside of its [[section]]: "connect_timeout_ms", "tls.ca".
[[nodiscard]] std::string key_inside(const OptionRow& row);

/// "1 to 16383 requests", "one of off, on"; empty if anything is allowed.
template <class Owner>
[[nodiscard]] std::string allowed_text(const Option<Owner>& option, const Owner& owner) {
  const Words words = option.choices(owner);
  std::string text = words.empty() ? range_text(option.row) : one_of(words);
  if (!option.row.unit.empty()) text += (text.empty() ? "" : " ") + std::string(option.row.unit);
  return text;
}

/// WEIR_ADMISSION_LIMIT_MIN_LIMIT; the section is omitted if the name begins with it.
[[nodiscard]] std::string environment_name(const OptionRow& row);

/// Older or shorter names of variables, and the key that each sets.
struct EnvironmentAlias {
  std::string_view variable;
  std::string_view section;
  std::string_view name;
};
[[nodiscard]] std::span<const EnvironmentAlias> environment_aliases() noexcept;

/// docs/reference/options.md, generated from the table; a test compares it with the file.
[[nodiscard]] std::string options_reference();

/// The file's key for a field in an error of a layer's validate(): ("admission", "class_cap_high")
/// is "priority.high_limit". For an unknown field it is owner.field.
[[nodiscard]] std::string key_of_field(std::string_view owner, std::string_view field);

}  // namespace weir::inline v0::config
