#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/policy/priority.h"
#include "weir/policy/rule_modes.h"

namespace weir::inline v0::inline control {

/// The scope of a request: what one limit protects, usually one service. Made by add_scope().
enum class ScopeId : std::uint16_t { kFirst = 0 };

/// An actor or a peer: the keyed hash of its name, not the name itself, so a long name costs no
/// more than a short one. Make it with AdmissionController::identify(). A default-constructed
/// Identity means "none": its check is skipped.
struct Identity {
  Hash128 key{};
  std::string_view label;  // for the top-10 lists; cut at 40 bytes; read during the call only

  [[nodiscard]] bool present() const noexcept { return (key.low | key.high) != 0; }
};

/// One request as admission sees it.
struct AdmissionRequest {
  Priority priority = Priority::kNormal;
  ScopeId scope = ScopeId::kFirst;
  Identity peer{};           // a trusted node; not an actor
  Identity actor{};          // the party that the request is charged to
  std::uint64_t source = 0;  // without an actor: whose turn it is among those that wait; 0: unknown
  std::uint64_t bytes = 0;   // held for this request from the start
  std::uint32_t cost = 1;    // units of the limit that it takes
  TimePoint deadline{};      // zero: none
  bool hedge = false;        // a second attempt: admitted last
  std::uint16_t route = 0;   // the kind of request; 0: not known
  RuleOverrides modes{};     // in place of the configured ones
};

/// How an admitted request ended, for the limiter.
///   kOk        gives a latency sample
///   kIgnored   the client disconnected, or its own deadline passed: no sample, unless that
///              took longer than the baseline; then it counts as "at least this slow"
///   kOverload  the protected service was overloaded (refused, timed out, 503): shrinks the limit
///              if enough answers are like this and not all of one actor, route or endpoint
///   kError     the request failed for another reason: no sample
enum class Outcome : std::uint8_t { kOk, kIgnored, kOverload, kError };

}  // namespace weir::inline v0::inline control
