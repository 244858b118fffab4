#pragma once

#include "attempt.h"
#include "policy/send_again.h"
#include "recorder.h"
#include "replica_pool.h"

namespace weir::inline v0::sim {

/// How an attempt at a replica ended, as the gateway sees it.
[[nodiscard]] constexpr ReplicaEnd replica_end(const ReplicaCall& call, CallEnd end) noexcept {
  if (end == CallEnd::kOk) return ReplicaEnd::kOk;
  if (end == CallEnd::kTimedOut) return ReplicaEnd::kTimedOut;
  if (end == CallEnd::kFailed && call.error_answer) return ReplicaEnd::kBadAnswer;
  if (end == CallEnd::kFailed && call.turned_away) return ReplicaEnd::kConnectRefused;
  return ReplicaEnd::kLost;
}

[[nodiscard]] constexpr policy::AttemptFailure failure_of(ReplicaEnd end) noexcept {
  switch (end) {
    case ReplicaEnd::kConnectRefused:
      return policy::AttemptFailure::kConnectFailed;
    case ReplicaEnd::kTimedOut:
      return policy::AttemptFailure::kTimeout;
    case ReplicaEnd::kBadAnswer:
      return policy::AttemptFailure::kStatus;
    case ReplicaEnd::kCancelled:  // by the gateway, because the replica is silent
      return policy::AttemptFailure::kSilent;
    case ReplicaEnd::kOk:
    case ReplicaEnd::kBeaten:
    case ReplicaEnd::kLost:
      break;
  }
  return policy::AttemptFailure::kConnectionLost;
}

/// What it says about the load.
[[nodiscard]] constexpr Outcome outcome_of(ReplicaEnd end) noexcept {
  const bool late = end == ReplicaEnd::kTimedOut || end == ReplicaEnd::kConnectRefused;
  return late ? Outcome::kOverload : Outcome::kError;
}

}  // namespace weir::inline v0::sim
