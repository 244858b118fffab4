#include "weir/base/byte_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "weir/base/ascii.h"

namespace weir::inline v0 {
namespace {

struct SizeUnit {
  std::string_view lower_name;
  std::uint64_t bytes;
};

constexpr std::array kSizeUnits = {
    SizeUnit{"", 1},
    SizeUnit{"b", 1},
    SizeUnit{"kb", 1'000},
    SizeUnit{"mb", 1'000'000},
    SizeUnit{"gb", 1'000'000'000},
    SizeUnit{"tb", 1'000'000'000'000},
    SizeUnit{"kib", std::uint64_t{1} << 10U},
    SizeUnit{"mib", std::uint64_t{1} << 20U},
    SizeUnit{"gib", std::uint64_t{1} << 30U},
    SizeUnit{"tib", std::uint64_t{1} << 40U},
};

constexpr std::array<std::string_view, 5> kBinaryNames = {"B", "KiB", "MiB", "GiB", "TiB"};

bool same_ignoring_case(std::string_view text, std::string_view lower_name) {
  return std::equal(text.begin(), text.end(), lower_name.begin(), lower_name.end(),
                    [](char a, char b) { return to_lower(a) == b; });
}

}  // namespace

Result<ByteSize, ByteSizeFault> parse_byte_size(std::string_view text) noexcept {
  if (text.empty()) return unexpected(ByteSizeFault::kEmpty);
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc::invalid_argument) return unexpected(ByteSizeFault::kNotANumber);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('.')) return unexpected(ByteSizeFault::kNotWhole);
  while (text.size() > 1 && text.starts_with(' ')) text.remove_prefix(1);
  for (const SizeUnit& unit : kSizeUnits) {
    if (!same_ignoring_case(text, unit.lower_name)) continue;
    // After the unit check: for "99999999999999999999 apples" the error is the unit.
    if (fault != std::errc{}) return unexpected(ByteSizeFault::kOverflow);
    if (number > ByteSize::max().bytes() / unit.bytes) return unexpected(ByteSizeFault::kOverflow);
    return ByteSize(number * unit.bytes);
  }
  return unexpected(ByteSizeFault::kUnknownUnit);
}

std::string to_string(ByteSize size) {
  std::uint64_t number = size.bytes();
  std::size_t unit = 0;
  while (number != 0 && number % 1024 == 0 && unit + 1 < kBinaryNames.size()) {
    number /= 1024;
    ++unit;
  }
  return std::to_string(number).append(kBinaryNames[unit]);
}

std::string to_human(ByteSize size) {
  if (size < kib(1)) return std::to_string(size.bytes()) + " B";
  std::size_t unit = 1;
  std::uint64_t unit_bytes = 1024;
  // A value that would round to 1024.0 of a unit is 1.0 of the next.
  while (unit + 1 < kBinaryNames.size() && size.bytes() >= unit_bytes * 1024 - (unit_bytes / 20)) {
    ++unit;
    unit_bytes *= 1024;
  }
  std::uint64_t whole = size.bytes() / unit_bytes;
  std::uint64_t tenths = ((size.bytes() % unit_bytes) * 10 + unit_bytes / 2) / unit_bytes;
  if (tenths == 10) {
    ++whole;
    tenths = 0;
  }
  return (std::to_string(whole) + '.' + std::to_string(tenths) + ' ').append(kBinaryNames[unit]);
}

}  // namespace weir::inline v0
