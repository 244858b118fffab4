#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weir/base/time.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

#include "policy/recording.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// The decisions of one scope, as far as a replay can use them.
///
/// A recording misses what ended before its first record and what had not ended at its last. So the
/// window goes from the first end to the last one less what nearly all requests take, and holds
/// every decision that was asked for inside of it.
struct RecordedLoad {
  Duration from{};  // of the recording
  Duration to{};
  Duration settle{};                                // the start of the window that is not compared
  std::vector<policy::RecordedDecision> decisions;  // asked for in the window, in order
  std::uint64_t left_out = 0;  // refused by rules that the simulator has no input for

  [[nodiscard]] Duration length() const noexcept { return to - from; }
};

/// Whether a replay can repeat this decision: admission made it, by what the record holds. Memory,
/// deadlines and the gateway's own rules refuse by what it does not hold.
[[nodiscard]] bool can_be_replayed(const policy::RecordedDecision& decision) noexcept;

[[nodiscard]] RecordedLoad load_of_scope(const policy::Recording& recording, std::uint16_t scope);

/// The arrivals of the window, for ArrivalKind::kTrace.
[[nodiscard]] LoadSpec trace_of(const RecordedLoad& load);

/// What happened to the requests of a part of a window.
struct LoadResult {
  using PerReason = std::array<std::array<std::uint64_t, kPriorityCount>, kReasonCount>;

  std::uint64_t asked = 0;
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t ok = 0;
  PerReason by_reason{};  // refusals by reason and class
  Duration p50{};         // of those that ended well, with the wait
  Duration p99{};
  std::uint32_t in_flight_max = 0;
  double seconds = 0;

  [[nodiscard]] double goodput() const noexcept {
    return seconds > 0 ? static_cast<double>(ok) / seconds : 0;
  }
};

/// Of the decisions asked for in [from, to).
[[nodiscard]] LoadResult result_of(const std::vector<policy::RecordedDecision>& decisions,
                                   Duration from, Duration to);

}  // namespace weir::inline v0::sim
