#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"

namespace weir::inline v0::sim {

/// A value of a TOML file with its line: the input of the scenario reader, so that only
/// config_node.cc uses the TOML library.
struct ConfigNode {
  enum class Kind : std::uint8_t { kTable, kArray, kString, kInteger, kFloat, kBoolean, kOther };
  Kind kind = Kind::kTable;
  int line = 0;
  std::string text{};  // of a string
  std::int64_t integer = 0;
  double number = 0;  // of a float, and of an integer
  bool boolean = false;
  std::vector<std::pair<std::string, ConfigNode>> fields{};  // of a table, in order
  std::vector<ConfigNode> items{};                           // of an array

  [[nodiscard]] const ConfigNode* find(std::string_view key) const noexcept;
  [[nodiscard]] ConfigNode* find(std::string_view key) noexcept;
  /// As a person would write it, for error messages.
  [[nodiscard]] std::string printed() const;
};

[[nodiscard]] std::string_view name_of(ConfigNode::Kind kind) noexcept;

/// Parses TOML text; a syntax error includes its line. `file` is only a name.
[[nodiscard]] Result<ConfigNode, ConfigError> parse_config(std::string_view text,
                                                           const std::string& file);

/// Changes one value, as `--set a.b.c=value` does. In a list of tables the next part of the path is
/// the table's `name`, its index from 0, or `*` for all: `load.web.rate=2000`,
/// `service.*.admission.limit.policy=vegas`. Missing tables are created, except list members. The
/// value is parsed as TOML, or used as a string if that fails.
[[nodiscard]] Result<void, ConfigError> set_value(ConfigNode& root, std::string_view assignment);

}  // namespace weir::inline v0::sim
