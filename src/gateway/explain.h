#pragma once

#include <string>

#include "weir/base/time.h"
#include "weir/control/admission_config.h"
#include "weir/control/admission_request.h"
#include "weir/control/admission_stats.h"
#include "weir/control/decision_record.h"

namespace weir::inline v0::gateway {

/// Numbers that the text of an explanation mentions in addition to the steps, at one instant.
struct NumbersInForce {
  AdmissionConfig config;
  AdmissionStats all;
  ScopeStats scope;
  TimePoint now{};
};

/// The position of a check in the order of decisions, 1 to 7.
[[nodiscard]] int step_number(Reason check) noexcept;

/// The result of a step of AdmissionController::explain(), as text for an operator.
[[nodiscard]] std::string words_of(const DecisionStep& step, const AdmissionRequest& request,
                                   const NumbersInForce& numbers);

}  // namespace weir::inline v0::gateway
