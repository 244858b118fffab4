#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/policy/priority.h"

namespace weir::inline v0::policy {

/// How a request came in, as far as an answer is concerned.
enum class Transport : std::uint8_t {
  kDatagram,  // nobody was promised an answer
  kStream,    // somebody waits for one
};

/// What becomes of a request for which there is no room.
enum class ShedAction : std::uint8_t {
  kExecute,        // critical: never shed
  kDropSilently,   // count it and say nothing
  kReplyWithHint,  // refuse now, and say when to come back
};

[[nodiscard]] constexpr std::string_view name_of(ShedAction action) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"execute", "drop_silently",
                                                      "reply_with_hint"};
  return kNames[static_cast<std::size_t>(action)];
}

/// Promises: total and pure; the answer of critical is kExecute whatever the transport.
[[nodiscard]] constexpr ShedAction shed_action(Priority priority, Transport transport) noexcept {
  if (priority == Priority::kCritical) return ShedAction::kExecute;
  return transport == Transport::kDatagram ? ShedAction::kDropSilently : ShedAction::kReplyWithHint;
}

}  // namespace weir::inline v0::policy

namespace weir::inline v0 {
using policy::name_of;
using policy::shed_action;
using policy::ShedAction;
using policy::Transport;
}  // namespace weir::inline v0
