#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::inline v0::io {

/// What the first bytes of a TLS connection are.
enum class ClientHelloStatus : std::uint8_t {
  kNeedMore,  // could become a ClientHello
  kReady,     // its first record is complete, or long enough to create a TLS object
  kNotTls,    // not a ClientHello
};

/// No TLS object is created before a ClientHello of up to this size is complete; of a longer one
/// (large tickets, many key shares), this many bytes must have arrived.
inline constexpr std::size_t kClientHelloStage = 2048;

/// Checks bytes that are staged before a TLS object is created: a peer that stops after half a
/// ClientHello costs only those bytes, not the 50 KB and more that a handshake holds.
///
/// Pure. Cost: reads nine bytes.
[[nodiscard]] ClientHelloStatus judge_client_hello(std::span<const std::byte> bytes) noexcept;

}  // namespace weir::inline v0::io
