#pragma once

#include <optional>
#include <string>

#include "weir/base/result.h"
#include "weir/experimental/gateway/gateway_config.h"

#include "jwt.h"
#include "key_table.h"

namespace weir::inline v0::gateway {

/// What the files of [actors] contain.
struct IdentityFiles {
  JwtRules jwt;                  // without keys if tokens are not verified
  std::optional<KeyTable> keys;  // none: every API key is an actor

  bool operator==(const IdentityFiles&) const = default;
};

/// Reads them; the error is a sentence with the option, the file and the reason.
///
/// Thread-safety: a function; reads files.
[[nodiscard]] Result<IdentityFiles, std::string> read_identity_files(const ActorsConfig& config);

}  // namespace weir::inline v0::gateway
