#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

[[nodiscard]] constexpr std::string_view name_of(ShedAction action) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"execute", "drop_silently",
                                                      "reply_with_hint"};
  return kNames[static_cast<std::size_t>(action)];
}

/// Promises: total and pure; critical always gets kExecute, with any transport.
[[nodiscard]] constexpr ShedAction shed_action(Priority priority, Transport transport) noexcept {
  if (priority == Priority::kCritical) return ShedAction::kExecute;
  return transport == Transport::kDatagram ? ShedAction::kDropSilently : ShedAction::kReplyWithHint;
}

}  // namespace weir::inline v0::inline policy
