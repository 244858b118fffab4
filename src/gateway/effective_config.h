#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/experimental/config/weir_config.h"
#include "weir/policy/rule_modes.h"

#include "override_table.h"

namespace weir::inline v0::gateway {

/// A configuration with what overrides change of it: the modes of rules, here and in routes, and
/// the limits of upstreams. Drains and logs are not part of a configuration.
///
/// Promises: a valid configuration stays valid, if each override fits it (why_ended() is empty).
/// Thread-safety: pure.
[[nodiscard]] config::Config with_overrides(config::Config config,
                                            std::span<const Override> overrides);

/// Why an override has nothing to act on in this configuration: a sentence; empty if it has.
[[nodiscard]] std::string why_ended(const Override& one, const config::Config& config);

/// The mode of the rule with this name; nullptr: there is none.
[[nodiscard]] const RuleMode* mode_of(const RuleModes& modes, std::string_view rule) noexcept;
/// "deadline, memory, …".
[[nodiscard]] std::string rule_names();

/// What is logged by an override; nullptr: nothing.
[[nodiscard]] std::shared_ptr<LogFocus> focus_of(std::span<const Override> overrides) noexcept;
/// The endpoints of an upstream that overrides drain.
[[nodiscard]] std::vector<io::SocketName> drained_of(std::span<const Override> overrides,
                                                     std::string_view upstream);

}  // namespace weir::inline v0::gateway
