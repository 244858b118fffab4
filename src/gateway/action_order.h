#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/base/time.h"

#include "override_table.h"

namespace weir::inline v0::gateway {

enum class ActionKind : std::uint8_t { kDrain, kUndrain, kShadow, kCap, kLog, kReload, kRemove };
WEIR_ENUM_NAMES(ActionKind, "drain", "undrain", "shadow", "cap", "log", "reload", "remove")
inline constexpr std::size_t kActionKinds = 7;

/// The action at a path: /actions/<name>, or /endpoints/<endpoint>/drain and …/undrain.
[[nodiscard]] std::optional<ActionKind> action_at(std::string_view path) noexcept;
/// The kind of override that an action makes; nullopt: none.
[[nodiscard]] std::optional<OverrideKind> override_of(ActionKind kind) noexcept;

/// What an operator asks for, as the request says it; nothing is looked up.
struct ActionOrder {
  ActionKind kind = ActionKind::kReload;
  std::string upstream{};
  std::string endpoint{};
  std::string rule{};
  std::string actor{};
  std::string id{};
  std::optional<std::uint32_t> route{};
  std::uint32_t limit = 0;
  Duration time{};  // as long as usual if nothing is said
  bool dry_run = false;
  bool force = false;
};

/// Reads the JSON object of an action. The error names the member and what is allowed; a member
/// that the action does not have is one, because to ignore it would do something else than was
/// asked for. Thread-safety: pure.
[[nodiscard]] Result<ActionOrder, std::string> action_order(std::string_view path,
                                                            std::string_view query,
                                                            std::string_view body);

}  // namespace weir::inline v0::gateway
