#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::inline server {

/// What became of a connection to a listener that requires a PROXY header.
enum class ProxyResult : std::uint8_t {
  kVersion1,    // the header announced the client's address
  kVersion2,    // the same
  kLocal,       // the proxy speaks for itself (LOCAL): the socket's address stays
  kUnknown,     // it does not say for whom it speaks (UNKNOWN, UNSPEC): no address is believed
  kUntrusted,   // closed at accept: the sender is no trusted proxy
  kMissing,     // closed: the first bytes are no PROXY header
  kTooLong,     // closed: more than 107 bytes, or more than 1024 bytes of fields in version 2
  kMalformed,   // closed: a PROXY header with an error
  kTimeout,     // closed: not complete at the deadline
  kAborted,     // the sender disconnected before its header was complete
  kSacrificed,  // closed by the server before that: pressure, drain, shutdown
  kCount,
};
WEIR_ENUM_NAMES(ProxyResult, "version_1", "version_2", "local", "unknown", "untrusted", "missing",
                "too_long", "malformed", "timeout", "aborted", "sacrificed")
static_assert(kProxyResultNames.size() == static_cast<std::size_t>(ProxyResult::kCount));

/// A connection that was closed because of its PROXY header, for a log.
struct ProxyRefusal {
  io::Address sender;  // the other end of the socket
  ProxyResult result = ProxyResult::kMissing;
  std::string_view why;  // of a malformed header: a constant
};

}  // namespace weir::inline v0::inline server
