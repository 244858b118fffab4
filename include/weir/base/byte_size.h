#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

namespace weir::inline v0 {

/// A number of bytes.
///
/// Promises: arithmetic saturates (at the largest value, or at 0 for a difference), so a sum that
/// overflows may be too large, but never too small.
class ByteSize {
 public:
  constexpr ByteSize() noexcept = default;
  constexpr explicit ByteSize(std::uint64_t bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] static constexpr ByteSize max() noexcept {
    return ByteSize(std::numeric_limits<std::uint64_t>::max());
  }

  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return bytes_; }
  auto operator<=>(const ByteSize&) const = default;  // NOLINT(modernize-use-nullptr): no pointer

  constexpr ByteSize& operator+=(ByteSize other) noexcept {
    bytes_ = bytes_ > max().bytes_ - other.bytes_ ? max().bytes_ : bytes_ + other.bytes_;
    return *this;
  }
  constexpr ByteSize& operator-=(ByteSize other) noexcept {
    bytes_ = bytes_ > other.bytes_ ? bytes_ - other.bytes_ : 0;
    return *this;
  }
  constexpr ByteSize& operator*=(std::uint64_t count) noexcept {
    bytes_ = count != 0 && bytes_ > max().bytes_ / count ? max().bytes_ : bytes_ * count;
    return *this;
  }
  friend constexpr ByteSize operator+(ByteSize a, ByteSize b) noexcept { return a += b; }
  friend constexpr ByteSize operator-(ByteSize a, ByteSize b) noexcept { return a -= b; }
  friend constexpr ByteSize operator*(ByteSize a, std::uint64_t count) noexcept {
    return a *= count;
  }

 private:
  std::uint64_t bytes_ = 0;
};

[[nodiscard]] constexpr ByteSize kib(std::uint64_t n) noexcept {
  return ByteSize(std::uint64_t{1} << 10U) * n;
}
[[nodiscard]] constexpr ByteSize mib(std::uint64_t n) noexcept {
  return ByteSize(std::uint64_t{1} << 20U) * n;
}
[[nodiscard]] constexpr ByteSize gib(std::uint64_t n) noexcept {
  return ByteSize(std::uint64_t{1} << 30U) * n;
}

/// Why a text is not a byte size.
enum class ByteSizeFault : std::uint8_t {
  kEmpty,
  kNotANumber,   // does not start with a digit: "x", "-1", "+1"
  kNotWhole,     // "1.5GiB": write the smaller unit
  kUnknownUnit,  // also "4K", which may mean 1000 or 1024: write kB or KiB
  kOverflow,     // 2^64 bytes or more
};
WEIR_ENUM_NAMES(ByteSizeFault, "empty", "not_a_number", "not_whole", "unknown_unit", "overflow")

/// What parse_byte_size() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kByteSizeSyntax =
    "a whole number of B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)";

/// Reads digits, optional blanks, optional unit, nothing else. A bare number is bytes. KiB, MiB,
/// GiB, TiB are powers of 1024; kB, MB, GB, TB powers of 1000; case does not matter.
[[nodiscard]] Result<ByteSize, ByteSizeFault> parse_byte_size(std::string_view text) noexcept;

/// Exact and readable by parse_byte_size(): the largest binary unit that divides it ("4GiB",
/// "1536KiB"), else bytes ("1000B").
[[nodiscard]] std::string to_string(ByteSize size);

/// A short text for people: one decimal, rounded half up ("1.5 GiB"); whole below 1 KiB ("17 B").
[[nodiscard]] std::string to_human(ByteSize size);

}  // namespace weir::inline v0
