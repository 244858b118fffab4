#include "hedged_outcome.h"

#include <charconv>
#include <string_view>

namespace weir::inline v0::grpc {
namespace {

using policy::AttemptFailure;
using policy::Processed;

policy::Pushback parse_pushback(std::string_view text) {
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  constexpr std::int64_t kMost = 24LL * 3600 * 1000;
  const bool number = !text.empty() && error == std::errc() && end == text.data() + text.size();
  if (!number || ms < 0 || ms > kMost) return {.stop = true, .wait = {}};
  return {.stop = false, .wait = std::chrono::milliseconds(ms)};
}

HedgedOutcome answered(policy::AnswerKind kind) {
  return {.answered = true, .answer = kind};
}

HedgedOutcome refused(const ReplyHints& hints) {
  HedgedOutcome outcome = answered(policy::AnswerKind::kTryLater);
  outcome.latency = control::AttemptEnd::kFailed;
  outcome.overload = true;
  outcome.not_processed = hints.refused_by_weir;
  return outcome;
}

HedgedOutcome failed(AttemptFailure failure, Processed processed, const ReplyHints& hints) {
  HedgedOutcome outcome;
  outcome.failed = {.failure = failure,
                    .processed = processed,
                    .written = true,
                    .reused = false,
                    .pushback = hints.pushback};
  outcome.latency = failure == AttemptFailure::kTimeout ? control::AttemptEnd::kTimedOut
                                                        : control::AttemptEnd::kFailed;
  outcome.bad = true;
  return outcome;
}

}  // namespace

ReplyHints hints_of(const TrailingMetadata& trailing) {
  ReplyHints hints;
  const auto [first, last] = trailing.equal_range("grpc-retry-pushback-ms");
  for (auto it = first; it != last; ++it) {
    hints.pushback = parse_pushback({it->second.data(), it->second.size()});
  }
  hints.refused_by_weir = trailing.find("x-weir-reason") != trailing.end();
  return hints;
}

HedgedOutcome outcome_of(::grpc::StatusCode code, bool written, const ReplyHints& hints) {
  if (code == ::grpc::StatusCode::OK) return answered(policy::AnswerKind::kGood);
  if (!written && code == ::grpc::StatusCode::UNAVAILABLE && !hints.pushback) {
    HedgedOutcome outcome = failed(AttemptFailure::kConnectFailed, Processed::kNo, {});
    outcome.failed.written = false;
    outcome.bad = false;  // its connection says so itself
    return outcome;
  }
  const bool explained = hints.pushback || hints.refused_by_weir;
  switch (code) {
    case ::grpc::StatusCode::NOT_FOUND:
      return answered(policy::AnswerKind::kAbsent);
    case ::grpc::StatusCode::RESOURCE_EXHAUSTED:
      return explained ? refused(hints) : answered(policy::AnswerKind::kGood);
    case ::grpc::StatusCode::UNAVAILABLE:
      if (explained) return refused(hints);
      return failed(AttemptFailure::kConnectionLost, Processed::kMaybe, hints);
    case ::grpc::StatusCode::DEADLINE_EXCEEDED:
      return failed(AttemptFailure::kTimeout, Processed::kMaybe, hints);
    case ::grpc::StatusCode::CANCELLED:
      return failed(AttemptFailure::kStreamReset, Processed::kMaybe, hints);
    case ::grpc::StatusCode::INTERNAL:
    case ::grpc::StatusCode::UNKNOWN:
    case ::grpc::StatusCode::DATA_LOSS:
    case ::grpc::StatusCode::ABORTED:
      return failed(AttemptFailure::kBadResponse, Processed::kYes, hints);
    default:
      return answered(policy::AnswerKind::kGood);
  }
}

}  // namespace weir::inline v0::grpc
