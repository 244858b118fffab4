#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::inline v0::io {

/// What the first bytes of a connection that should speak TLS are.
enum class ClientHelloStatus : std::uint8_t {
  kNeedMore,  // could become one
  kReady,     // its first record is whole, or so much is there that a TLS object is earned
  kNotTls,    // no ClientHello
};

/// A ClientHello up to here is waited for without a TLS object; of a longer one (large tickets,
/// many key shares) this much must have come.
inline constexpr std::size_t kClientHelloStage = 2048;

/// Judges bytes that are staged before a TLS object is made: a peer that sends half a ClientHello
/// and waits costs those bytes, not the 50 KB and more that a handshake holds.
///
/// Pure. Cost: looks at nine bytes.
[[nodiscard]] ClientHelloStatus judge_client_hello(std::span<const std::byte> bytes) noexcept;

}  // namespace weir::inline v0::io
