#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::inline server {

/// The result of a TLS handshake on a listener.
enum class HandshakeResult : std::uint8_t {
  kFull,        // done
  kResumed,     // done, with a session ticket
  kFailed,      // no common version, cipher, protocol; certificate not accepted; garbage
  kAborted,     // the client disconnected
  kTimeout,     // not done at the deadline
  kNoSlot,      // no handshake slot was free until the deadline
  kNotTls,      // the client did not use TLS
  kNoMemory,    // the TLS library's budget is used up
  kSacrificed,  // closed by the server: pressure, drain, shutdown
  kCount,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(HandshakeResult::kCount)>
    kHandshakeResultNames = {"full",    "resumed", "failed",    "aborted",   "timeout",
                             "no_slot", "not_tls", "no_memory", "sacrificed"};
[[nodiscard]] constexpr std::string_view name_of(HandshakeResult result) noexcept {
  return kHandshakeResultNames[static_cast<std::size_t>(result)];
}

}  // namespace weir::inline v0::inline server
