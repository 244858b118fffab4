#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir::inline v0 {

/// An IPv4 or IPv6 address, without port. A v4-mapped v6 address (::ffff:a.b.c.d), as a dual-stack
/// listener reports it, is stored as a v4 address: see normalized().
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  // network order; the first 4 for v4, the rest zero
  bool v6 = false;

  bool operator==(const IpAddress&) const = default;

  /// The same address, v4 if it is v4-mapped.
  [[nodiscard]] IpAddress normalized() const noexcept;
};

/// Reads "192.0.2.1" or "2001:db8::1" (RFC 4291 text, with an embedded v4 tail too); no zone, no
/// leading zeros in v4, nothing around it.
[[nodiscard]] std::optional<IpAddress> parse_ip(std::string_view text) noexcept;

/// The text of an address in place: no allocation, 47 bytes.
class IpText {
 public:
  static constexpr std::size_t kBytesMax = 45;  // "::ffff:255.255.255.255" and eight groups fit
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  friend IpText text_of(const IpAddress& address) noexcept;
  void put(std::string_view text) noexcept;
  void put_v4(const std::uint8_t* bytes) noexcept;

  std::array<char, kBytesMax + 1> bytes_{};
  std::uint8_t size_ = 0;
};

/// The canonical text (RFC 5952); parse_ip() reads it back.
[[nodiscard]] IpText text_of(const IpAddress& address) noexcept;
[[nodiscard]] std::string to_string(const IpAddress& address);

/// Why a text is not a range.
enum class IpRangeFault : std::uint8_t {
  kBadAddress,
  kBadLength,  // not 0 to 32, or 0 to 128 for v6
  kHostBits,   // "10.1.2.3/8": may mean the address or 10.0.0.0/8
};

/// What parse_ip_range() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kIpRangeSyntax =
    "an address or a range like 10.0.0.0/8 or 2001:db8::/32, without bits after the prefix";

/// All addresses that begin with the first `bits` bits of `base`.
///
/// Promises: a v4 range contains only v4 and v4-mapped addresses, and a v6 range contains none of
/// them, so ::/0 does not contain v4 addresses. Thread-safety: a value. Cost of contains(): at most
/// 16 byte comparisons.
struct IpRange {
  IpAddress base;
  std::uint8_t bits = 0;

  bool operator==(const IpRange&) const = default;

  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;
};

/// Reads "10.0.0.0/8"; a bare address is the range of that one address.
[[nodiscard]] Result<IpRange, IpRangeFault> parse_ip_range(std::string_view text) noexcept;

[[nodiscard]] std::string to_string(const IpRange& range);

}  // namespace weir::inline v0
