#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline policy {

/// Whether the sender of a request expects an answer.
enum class Transport : std::uint8_t {
  kDatagram,  // the sender does not expect an answer
  kStream,    // the sender expects an answer
};

/// What to do with a request that cannot be served now.
enum class ShedAction : std::uint8_t {
  kExecute,        // critical: never shed
  kDropSilently,   // count it and send no answer
  kReplyWithHint,  // refuse now, with a retry hint
};

WEIR_ENUM_NAMES(ShedAction, "execute", "drop_silently", "reply_with_hint")

/// Promises: total and pure; critical always gets kExecute, with any transport.
[[nodiscard]] constexpr ShedAction shed_action(Priority priority, Transport transport) noexcept {
  if (priority == Priority::kCritical) return ShedAction::kExecute;
  return transport == Transport::kDatagram ? ShedAction::kDropSilently : ShedAction::kReplyWithHint;
}

}  // namespace weir::inline v0::inline policy
