#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"

namespace weir::inline v0::inline server {

/// The result of a TLS handshake on a listener.
enum class HandshakeResult : std::uint8_t {
  kFull,        // done
  kResumed,     // done, with a session ticket
  kFailed,      // no common version, cipher, protocol; certificate not accepted; garbage
  kAborted,     // the client disconnected
  kTimeout,     // not done at the deadline
  kStalled,     // waited for its client too long while others waited for its slot
  kNoSlot,      // no handshake slot was free until the deadline, or the queue for them was full
  kNotTls,      // the client did not use TLS
  kNoMemory,    // the TLS library's budget is used up
  kSacrificed,  // closed by the server: pressure, drain, shutdown
  kCount,
};
WEIR_ENUM_NAMES(HandshakeResult, "full", "resumed", "failed", "aborted", "timeout", "stalled",
                "no_slot", "not_tls", "no_memory", "sacrificed")
static_assert(kHandshakeResultNames.size() == static_cast<std::size_t>(HandshakeResult::kCount));

}  // namespace weir::inline v0::inline server
