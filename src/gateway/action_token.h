#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.h"

namespace weir::inline v0::gateway {

/// The secret of whoever may act: 256 bits as 64 hex digits or 43 characters of base64url.
///
/// Thread-safety: a value.
class ActionToken {
 public:
  /// Reads a file of one line that only its owner, this user or root, may read or write. The error
  /// is a sentence that names the file, never its content.
  [[nodiscard]] static Result<ActionToken, std::string> read(const std::string& path);

  /// The time that it takes does not depend on how much of the text is right.
  [[nodiscard]] bool is(std::string_view text) const noexcept;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  explicit ActionToken(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace weir::inline v0::gateway
