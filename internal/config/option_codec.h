#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ip_range.h"
#include "weir/base/net_address.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/upstream/upstream_config.h"

#include "config/option_kind.h"
#include "config/raw_config.h"

namespace weir::inline v0::config {

/// What was expected, for ConfigError::allowed; nullopt if the value was accepted.
using Refusal = std::optional<std::string>;

// assign(field, value, row) sets the field, if the value is of the row's kind and in its range;
// otherwise the field does not change. print(field, row) returns the TOML literal that assigns it.

Refusal assign(bool& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::uint32_t& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::uint64_t& field, const RawValue& value, const OptionRow& row);
Refusal assign(double& field, const RawValue& value, const OptionRow& row);
Refusal assign(Duration& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::string& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::vector<std::string>& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::optional<NetAddress>& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::vector<upstream::SourceSpec>& field, const RawValue& value,
               const OptionRow& row);
Refusal assign(std::vector<IpRange>& field, const RawValue& value, const OptionRow& row);
Refusal assign(std::vector<gateway::IdentityKind>& field, const RawValue& value,
               const OptionRow& row);
Refusal assign(std::vector<gateway::UpgradeProtocol>& field, const RawValue& value,
               const OptionRow& row);

[[nodiscard]] std::string print(bool field, const OptionRow& row);
[[nodiscard]] std::string print(std::uint32_t field, const OptionRow& row);
[[nodiscard]] std::string print(std::uint64_t field, const OptionRow& row);
[[nodiscard]] std::string print(double field, const OptionRow& row);
[[nodiscard]] std::string print(Duration field, const OptionRow& row);
[[nodiscard]] std::string print(const std::string& field, const OptionRow& row);
[[nodiscard]] std::string print(const std::vector<std::string>& field, const OptionRow& row);
[[nodiscard]] std::string print(const std::optional<NetAddress>& field, const OptionRow& row);
[[nodiscard]] std::string print(const std::vector<upstream::SourceSpec>& field,
                                const OptionRow& row);
[[nodiscard]] std::string print(const std::vector<IpRange>& field, const OptionRow& row);
[[nodiscard]] std::string print(const std::vector<gateway::IdentityKind>& field,
                                const OptionRow& row);
[[nodiscard]] std::string print(const std::vector<gateway::UpgradeProtocol>& field,
                                const OptionRow& row);

// Enums with names (WEIR_ENUM_NAMES).

using Words = std::span<const std::string_view>;
template <class T>
concept WordEnum = requires(T t) {
  names_of(t);
};

/// "one of a, b, c"
[[nodiscard]] std::string one_of(Words words);
/// The index of the value's word; a refusal if it is none of them.
[[nodiscard]] Refusal find_word(std::size_t& index, const RawValue& value, Words words);

template <WordEnum T>
Refusal assign(T& field, const RawValue& value, const OptionRow&) {
  std::size_t index = 0;
  Refusal refusal = find_word(index, value, names_of(field));
  if (!refusal) field = static_cast<T>(index);
  return refusal;
}
template <WordEnum T>
[[nodiscard]] std::string print(T field, const OptionRow&) {
  return quoted_text(name_of(field));
}

// Optional options: printed as an empty text while not set.

template <class T>
Refusal assign(std::optional<T>& field, const RawValue& value, const OptionRow& row) {
  T given = field.value_or(T{});
  Refusal refusal = assign(given, value, row);
  if (!refusal) field = given;
  return refusal;
}
template <class T>
[[nodiscard]] std::string print(const std::optional<T>& field, const OptionRow& row) {
  return field ? print(*field, row) : std::string();
}

// The words allowed for a field, for the documents; empty for other fields.

template <class T>
constexpr Words choices_of(const T&) noexcept {
  if constexpr (WordEnum<T>) return names_of(T{});
  return {};
}
inline Words choices_of(const std::vector<gateway::IdentityKind>&) noexcept {
  return names_of(gateway::IdentityKind{});
}
inline Words choices_of(const std::vector<gateway::UpgradeProtocol>&) noexcept {
  return names_of(gateway::UpgradeProtocol{});
}
template <class T>
constexpr Words choices_of(const std::optional<T>&) noexcept {
  return choices_of(T{});
}
inline Words choices_of(const std::optional<NetAddress>&) noexcept {
  return {};
}

/// The range of a row as text: "1 to 16383", "10ms to 60s"; empty if it has none.
[[nodiscard]] std::string range_text(const OptionRow& row);

/// Converts the text of an environment variable for this kind of option: numbers are parsed, lists
/// are split at commas.
[[nodiscard]] RawValue raw_from_text(std::string_view text, const OptionRow& row);

}  // namespace weir::inline v0::config
