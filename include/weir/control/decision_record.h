#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/time.h"
#include "weir/control/admission_config.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// One check of a decision, and what it found.
struct DecisionStep {
  Reason check = Reason::kAdmitted;    // the reason with which it refuses
  RuleMode mode = RuleMode::kEnforce;  // only an enforced rule refuses; one that is off passes all
  bool applies = true;                 // false: no deadline, peer, actor, byte budget or class cap
  bool passes = true;
  // What is held, and the bound that this request must not exceed: requests, bytes, or units of
  // cost. Memory is in millionths; the deadline has neither.
  std::uint64_t held = 0;
  std::uint64_t bound = 0;
};

/// The result of AdmissionController::explain(): every step in order, and what enter() would do.
struct DecisionRecord {
  enum class Verdict : std::uint8_t { kAdmitted, kRefused, kWaits };

  [[nodiscard]] std::span<const DecisionStep> steps() const& noexcept {
    return {storage.data(), count};
  }
  std::span<const DecisionStep> steps() const&& = delete;  // it would point into a temporary
  void add(const DecisionStep& step) noexcept { storage[count++] = step; }

  Verdict verdict = Verdict::kAdmitted;
  Reason reason = Reason::kAdmitted;  // if refused; if it waits, what try_admit() would return
  Duration wait_max{};                // if it waits
  std::size_t count = 0;
  std::array<DecisionStep, kReasonCount> storage{};  // at most one step per reason
};

}  // namespace weir::inline v0::inline control
