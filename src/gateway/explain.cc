#include "explain.h"

#include <array>
#include <cmath>

#include "weir/base/byte_size.h"
#include "weir/base/duration_text.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/memory_shedding.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::gateway {
namespace {

/// 750 as "0.75".
std::string as_share(std::uint32_t permille) {
  if (permille >= 1000) return "all";
  std::string text = std::to_string(1000 + permille).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return "0." + (text.empty() ? "0" : text);
}

std::string percent(double share) {
  const long tenths = std::lround(share * 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string of(std::uint64_t have, std::uint64_t bound) {
  return std::to_string(have) + " of " + std::to_string(bound);
}

std::string bytes_of(std::uint64_t have, std::uint64_t bound) {
  return to_human(ByteSize(have)) + " of " + to_human(ByteSize(bound));
}

std::string memory_words(const DecisionStep& step, Priority priority, const NumbersInForce& n) {
  const MemoryRules& rules = n.config.memory;
  std::string text = n.all.memory_readable ? percent(static_cast<double>(step.held) / 1e6) + " used"
                                           : "unreadable, counts as 0 %";
  text += "; low is shed above " + percent(rules.memory_pressure_threshold) + ", normal above " +
          percent(rules.memory_critical_threshold);
  if (!step.passes) {
    const double entered = priority == Priority::kLow ? rules.memory_pressure_threshold
                                                      : rules.memory_critical_threshold;
    text += "; " + std::string(name_of(priority)) + " is shed until it is at most " +
            percent(entered - rules.leave_margin);
  }
  if (priority == Priority::kLow && rules.low_priority_shed_ratio < 1) {
    text += "; share of low shed " + percent(rules.low_priority_shed_ratio);
  }
  return text;
}

std::string limit_words(const DecisionStep& step, const AdmissionRequest& request,
                        const NumbersInForce& n) {
  const std::uint32_t permille = n.config.classes.share_permille(request.priority, request.hedge);
  return of(step.held, step.bound) + " in flight (" + as_share(permille) + " of the limit " +
         std::to_string(n.scope.limit) + ", " + std::string(name_of(n.scope.limit_reason)) + "); " +
         of(n.all.in_flight, n.config.max_concurrent) + " over all; " +
         of(n.scope.waiting, n.config.waiting_max) + " waiting" +
         (n.scope.classes[index_of(request.priority)].standing ? ", the line stands" : "");
}

}  // namespace

int step_number(Reason check) noexcept {
  constexpr std::array<int, kReasonCount> kNumbers = {0, 1, 2, 3, 4, 5, 5, 5, 6, 7};
  return kNumbers[index_of(check)];
}

std::string words_of(const DecisionStep& step, const AdmissionRequest& request,
                     const NumbersInForce& numbers) {
  if (step.mode == RuleMode::kOff) return "not checked: the rule is off";
  switch (step.check) {
    case Reason::kAdmitted:
      break;
    case Reason::kDeadline:
      return step.applies ? to_string(request.deadline - numbers.now) + " left" : "none given";
    case Reason::kMemory:
      return memory_words(step, request.priority, numbers);
    case Reason::kTooLarge:
      return to_human(ByteSize(request.bytes)) + " asked for";
    case Reason::kPeerLimit:
      return step.applies ? of(step.held, step.bound) + " in flight or waiting"
                          : "not from a trusted peer";
    case Reason::kActorInflight:
      return step.applies ? of(step.held, step.bound) + " in flight" : "billed to nobody";
    case Reason::kActorBytes:
      return bytes_of(step.held, step.bound) + " held";
    case Reason::kBytes:
      return step.applies ? bytes_of(step.held, step.bound) + " held by all" : "no budget";
    case Reason::kClassLimit:
      return step.applies ? of(step.held, step.bound) + " in flight" : "no cap";
    case Reason::kOverload:
      return limit_words(step, request, numbers);
  }
  return {};
}

}  // namespace weir::inline v0::gateway
