#pragma once

#include <string>
#include <vector>

namespace weir::inline v0 {

/// One error in a configuration, in the operator's terms. The layer that validates sets key, value
/// and allowed; the reader of the file adds file and line.
struct ConfigError {
  std::string key{};      // "admission.limit.initial"
  std::string value{};    // what was given, printed
  std::string allowed{};  // "1 to 16383", "below critical_watermark (0.95)"
  std::string file{};     // empty when the value did not come from a file
  int line = 0;           // 1-based; 0 when unknown

  bool operator==(const ConfigError&) const = default;
};

/// All errors found, not only the first, so that an operator can fix them at once. Empty means
/// valid.
using ConfigErrors = std::vector<ConfigError>;

}  // namespace weir::inline v0
