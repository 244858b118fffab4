#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::inline v0 {

/// The secret key of a SipHash. Drawn once at start from the system's randomness, never published.
struct SipKey {
  std::uint64_t k0 = 0;  // first eight bytes, little-endian
  std::uint64_t k1 = 0;
};

struct Hash128 {
  std::uint64_t low = 0;  // first eight bytes of the digest, little-endian
  std::uint64_t high = 0;

  bool operator==(const Hash128&) const = default;
};

/// SipHash-2-4: a keyed hash for names that clients choose (actors, paths, headers). A client that
/// does not know the key cannot cause collisions. The 128-bit form is for tables that store the
/// hash instead of the name.
///
/// Promises: equal to the reference function, on either byte order. Thread-safety: pure.
/// Cost: four times a mutex pair for 32 bytes; no allocation.
[[nodiscard]] std::uint64_t siphash64(SipKey key, std::span<const std::byte> data) noexcept;
[[nodiscard]] Hash128 siphash128(SipKey key, std::span<const std::byte> data) noexcept;

[[nodiscard]] inline std::uint64_t siphash64(SipKey key, std::string_view text) noexcept {
  return siphash64(key, std::as_bytes(std::span(text.data(), text.size())));
}
[[nodiscard]] inline Hash128 siphash128(SipKey key, std::string_view text) noexcept {
  return siphash128(key, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace weir::inline v0
