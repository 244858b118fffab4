#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "live/live_sampler.h"

namespace weir::inline v0::gateway {

using LiveJson = nlohmann::ordered_json;

/// A measured number, with three significant digits and no more text than needed.
[[nodiscard]] LiveJson number(double value);

/// The text of a JSON value; invalid UTF-8 in names is replaced.
[[nodiscard]] std::string json_text(const LiveJson& json);

/// A verdict as /live and /diagnose show it.
[[nodiscard]] LiveJson verdict_json(const LiveUpstream& upstream);

/// "HEALTHY", "PRESSURED" or "OVERLOADED".
[[nodiscard]] std::string_view state_text(OperatorState state) noexcept;

}  // namespace weir::inline v0::gateway
