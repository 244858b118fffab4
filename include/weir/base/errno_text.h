#pragma once

#include <string>
#include <system_error>

namespace weir::inline v0 {

/// The kernel's text for this error, as part of a sentence: "no such file or directory".
/// Thread-safety: any. Cost: allocates; for messages to the operator.
[[nodiscard]] inline std::string errno_text(std::errc error) {
  std::string text = std::make_error_code(error).message();
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

}  // namespace weir::inline v0
