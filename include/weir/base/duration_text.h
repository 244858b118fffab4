#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir::inline v0 {

/// Why a text is not a duration.
enum class DurationFault : std::uint8_t {
  kEmpty,
  kNotANumber,   // does not start with a digit: "x", "-1s"
  kNotWhole,     // "1.5s": write 1500ms
  kMissingUnit,  // "500"
  kUnknownUnit,  // also "1m30s": one number, one unit
  kOverflow,     // beyond 2^63 - 1 ns, about 292 years
};
WEIR_ENUM_NAMES(DurationFault, "empty", "not_a_number", "not_whole", "missing_unit", "unknown_unit",
                "overflow")

/// What parse_duration() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kDurationSyntax =
    "a whole number followed by ns, us, ms, s, m or h";

/// Reads digits, optional blanks, and one of ns, us, ms, s, m (minutes), h; nothing else. Never
/// negative. Units are case-sensitive and required, so that "M" cannot be misread.
[[nodiscard]] Result<Duration, DurationFault> parse_duration(std::string_view text) noexcept;

/// The shortest exact form: the largest unit that divides it ("90s", "1500ms", "2h"); "0s" for
/// zero. A negative duration has a leading minus, which parse_duration() does not read.
[[nodiscard]] std::string to_string(Duration duration);

}  // namespace weir::inline v0
