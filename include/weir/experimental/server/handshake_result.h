#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::server {

/// What became of a connection to a TLS listener before HTTP began.
enum class HandshakeResult : std::uint8_t {
  kFull,        // done
  kResumed,     // done, with a ticket of an earlier one
  kFailed,      // no common version, cipher, protocol; certificate not accepted; garbage
  kAborted,     // the client left
  kTimeout,     // the deadline came
  kNoSlot,      // the deadline came while it waited for a handshake slot
  kNotTls,      // it never spoke TLS
  kNoMemory,    // the TLS library's budget is used up
  kSacrificed,  // closed by us before its end: pressure, drain, shutdown
  kCount,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(HandshakeResult::kCount)>
    kHandshakeResultNames = {"full",    "resumed", "failed",    "aborted",   "timeout",
                             "no_slot", "not_tls", "no_memory", "sacrificed"};
[[nodiscard]] constexpr std::string_view name_of(HandshakeResult result) noexcept {
  return kHandshakeResultNames[static_cast<std::size_t>(result)];
}

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::HandshakeResult;
using server::kHandshakeResultNames;
using server::name_of;
}  // namespace weir::inline v0
