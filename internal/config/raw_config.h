#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/base/config_error.h"

namespace weir::inline v0::config {

/// A kind of value that no option accepts: a date, a table inside a list.
struct RawOther {
  std::string_view what;
  bool operator==(const RawOther&) const = default;
};

/// A value as given in the file or in the environment, before it is matched to an option.
struct RawValue {
  using List = std::vector<RawValue>;
  std::variant<bool, std::int64_t, double, std::string, List, RawOther> data;

  bool operator==(const RawValue&) const = default;
};

/// `key = value` of one section. index: which of several [[section]] it is in, or in a table of;
/// -1 for a plain [section].
struct RawEntry {
  std::string section;
  int index = -1;
  std::string name;
  RawValue value;
  int line = 0;
};

/// A [section] or [[section]] in the file, with or without entries.
struct RawSection {
  std::string name;
  int index = -1;
  int line = 0;
  bool repeated = false;  // [[section]]
};

/// A file that is parsed but not interpreted. If it has syntax errors, it has nothing else.
struct RawConfig {
  std::vector<RawSection> sections;
  std::vector<RawEntry> entries;
  ConfigErrors syntax;
};

/// The value as an error message shows it: TOML, shortened to about 60 characters.
[[nodiscard]] std::string to_text(const RawValue& value);

/// A string as a TOML literal, quotes and escapes included.
[[nodiscard]] std::string quoted_text(std::string_view text);

}  // namespace weir::inline v0::config
