#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/config_error.h"
#include "weir/base/time.h"

namespace weir::inline v0 {

/// Adds an error unless low ≤ value ≤ high. NaN is never inside a range.
void check_range(ConfigErrors& errors, std::string_view key, double value, double low, double high);
void check_range(ConfigErrors& errors, std::string_view key, std::uint64_t value, std::uint64_t low,
                 std::uint64_t high);
void check_range(ConfigErrors& errors, std::string_view key, Duration value, Duration low,
                 Duration high);

/// The same for any unsigned integer type; avoids ambiguity between the overloads above.
template <std::unsigned_integral T>
void check_range(ConfigErrors& errors, std::string_view key, T value, T low, T high) {
  check_range(errors, key, std::uint64_t{value}, std::uint64_t{low}, std::uint64_t{high});
}

/// Adds an error with free text for rules between two values: "below critical_watermark (0.95)".
void add_error(ConfigErrors& errors, std::string_view key, std::string value, std::string allowed);

/// Appends the errors of a nested struct, each key with a prefix.
void append_errors(ConfigErrors& errors, std::string_view prefix, ConfigErrors inner);

}  // namespace weir::inline v0
