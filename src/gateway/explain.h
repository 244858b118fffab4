#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/admission_config.h"
#include "weir/control/admission_stats.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::gateway {

/// A request as the operator describes it, to see what would be decided.
struct DescribedRequest {
  Priority priority = Priority::kNormal;
  bool has_actor = false;
  bool has_peer = false;
  bool hedge = false;
  std::uint64_t bytes = 0;
  std::uint32_t cost = 1;
  std::optional<Duration> time_left;
};

/// The numbers in force now.
struct NumbersInForce {
  AdmissionConfig config;
  AdmissionStats all;
  ScopeStats scope;
  BudgetRow actor;
  BudgetRow peer;
};

/// One check and its result.
struct ExplainedStep {
  int number = 0;  // as in the table of reasons
  std::string check;
  std::string finding;  // the numbers, in words
  RuleMode mode = RuleMode::kEnforce;
  Reason refuses = Reason::kAdmitted;  // kAdmitted: it passes
};

enum class Verdict : std::uint8_t { kAdmitted, kWaits, kRefused };

struct Explanation {
  std::vector<ExplainedStep> steps;  // all of them, also those after the first refusal
  Verdict verdict = Verdict::kAdmitted;
  Reason reason = Reason::kAdmitted;
};

/// What admission would decide now, step by step, with the numbers that it would use.
///
/// Promises: admits nothing and counts nothing. The order is that of AdmissionController; under
/// load the numbers may change before a real request arrives.
[[nodiscard]] Explanation explain(const DescribedRequest& request, const NumbersInForce& numbers);

}  // namespace weir::inline v0::gateway
