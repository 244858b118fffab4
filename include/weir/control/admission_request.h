#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::control {

/// Which limit a request is held against: what one limit protects. Made by add_scope().
enum class ScopeId : std::uint16_t { kFirst = 0 };

/// Whom work is billed to, or which trusted node sent it: the keyed hash of a name, never the name
/// itself, so that a name of a megabyte costs no more than a short one. Make it with
/// AdmissionController::identify(). A default-made Identity is "nobody": the check is skipped.
struct Identity {
  Hash128 key{};
  std::string_view label;  // for the top-10 lists; cut at 40 bytes; read during the call only

  [[nodiscard]] bool present() const noexcept { return (key.low | key.high) != 0; }
};

/// One request as admission sees it.
struct AdmissionRequest {
  Priority priority = Priority::kNormal;
  ScopeId scope = ScopeId::kFirst;
  Identity peer{};          // a trusted node; not an actor
  Identity actor{};         // whom the work is billed to
  std::uint64_t bytes = 0;  // held for this request from the start
  std::uint32_t cost = 1;   // weight against the limit
  TimePoint deadline{};     // zero: none
  bool hedge = false;       // a second attempt: admitted last
};

/// How an admitted request ended, as the limiter must see it.
///   kOk        a latency sample
///   kIgnored   the client went away: no sample, unless it was slower than the baseline, which
///              counts as "at least this slow"
///   kOverload  the protected service said so (refused, timed out, 503): shrinks the limit
///   kError     failed for another reason: no sample
enum class Outcome : std::uint8_t { kOk, kIgnored, kOverload, kError };

}  // namespace weir::inline v0::control

namespace weir::inline v0 {
using control::AdmissionRequest;
using control::Identity;
using control::Outcome;
using control::ScopeId;
}  // namespace weir::inline v0
