#include "weir/base/duration_text.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace weir::inline v0 {
namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t ns;
};

constexpr std::array kTimeUnits = {
    // largest first
    TimeUnit{"h", 3'600'000'000'000}, TimeUnit{"m", 60'000'000'000}, TimeUnit{"s", 1'000'000'000},
    TimeUnit{"ms", 1'000'000},        TimeUnit{"us", 1'000},         TimeUnit{"ns", 1},
};

}  // namespace

Result<Duration, DurationFault> parse_duration(std::string_view text) noexcept {
  if (text.empty()) return unexpected(DurationFault::kEmpty);
  if (text.front() < '0' || text.front() > '9') return unexpected(DurationFault::kNotANumber);
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('.')) return unexpected(DurationFault::kNotWhole);
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return unexpected(DurationFault::kMissingUnit);
  for (const TimeUnit& unit : kTimeUnits) {
    if (text != unit.name) continue;
    if (fault != std::errc{} || number > Duration::max().count() / unit.ns) {
      return unexpected(DurationFault::kOverflow);
    }
    return Duration(number * unit.ns);
  }
  return unexpected(DurationFault::kUnknownUnit);
}

std::string to_string(Duration duration) {
  const std::int64_t ns = duration.count();
  if (ns == 0) return "0s";
  for (const TimeUnit& unit : kTimeUnits) {
    if (ns % unit.ns == 0) return std::to_string(ns / unit.ns).append(unit.name);
  }
  WEIR_UNREACHABLE();
}

}  // namespace weir::inline v0
