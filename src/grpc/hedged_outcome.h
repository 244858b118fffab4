#pragma once

#include <map>
#include <optional>

#include <grpcpp/support/status.h>
#include <grpcpp/support/string_ref.h>

#include "control/latency_tracker.h"
#include "policy/hedge_decision.h"
#include "policy/send_again.h"

namespace weir::inline v0::grpc {

using TrailingMetadata = std::multimap<::grpc::string_ref, ::grpc::string_ref>;

/// What trailing metadata says about another attempt.
struct ReplyHints {
  /// grpc-retry-pushback-ms; a negative or malformed one means no other attempt.
  std::optional<policy::Pushback> pushback{};
  bool refused_by_weir = false;  // x-weir-reason: refused before the handler saw it
};
[[nodiscard]] ReplyHints hints_of(const TrailingMetadata& trailing);

/// How an attempt ended, in the words of the executor.
struct HedgedOutcome {
  bool answered = false;                                  // otherwise it failed
  policy::AnswerKind answer = policy::AnswerKind::kGood;  // if it answered
  policy::FailedAttempt failed{};                         // if it failed
  control::AttemptEnd latency = control::AttemptEnd::kAnswered;
  bool overload = false;       // the replica has too much to do
  bool not_processed = false;  // and did nothing for this call
  bool bad = false;            // it counts against the replica's health
};

/// What a status means for the race. RESOURCE_EXHAUSTED is overload only if a pushback or a reason
/// says so: gRPC gives it for messages and metadata that are too large, too. INVALID_ARGUMENT and
/// the like are answers, which every replica would give; INTERNAL, UNKNOWN, DATA_LOSS and ABORTED
/// are failures, which another replica may not have.
///
/// `written`: the call's headers were sent, so the replica may have seen it. Before, UNAVAILABLE
/// means that there was no connection. Promises: total; processed is kNo only for what was not
/// written. Thread-safety: pure.
[[nodiscard]] HedgedOutcome outcome_of(::grpc::StatusCode code, bool written,
                                       const ReplyHints& hints);

}  // namespace weir::inline v0::grpc
