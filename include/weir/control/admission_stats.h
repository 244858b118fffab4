#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.h"
#include "weir/policy/limit_policy.h"
#include "weir/policy/operator_state.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// Upper bounds of the waiting-time histogram, in milliseconds; the last bucket is open.
inline constexpr std::array<std::uint32_t, 7> kWaitBucketsMs = {1, 2, 5, 10, 20, 50, 100};

struct WaitHistogram {
  std::array<std::uint64_t, kWaitBucketsMs.size() + 1> buckets{};  // not cumulative
  std::uint64_t count = 0;
  Duration sum{};
};

struct ClassStats {
  std::uint32_t in_flight = 0;  // units
  std::uint32_t bound = 0;      // units up to which this class may fill the scope; 0 = unbounded
  std::uint32_t cap = 0;        // fixed cap, 0 = none
  std::uint64_t acquired = 0;   // admitted since start
  std::uint64_t shed = 0;       // refused since start, for any reason
  WaitHistogram waited;         // of those that waited and were admitted
  bool standing = false;        // its waiters have 10 ms: the line did not get empty by itself
};

/// The numbers that decide about a limit.
struct ScopeLoad {
  std::uint32_t limit = 0;
  std::uint32_t in_flight = 0;  // units, critical not counted
  std::uint32_t waiting = 0;
};

/// The state of one scope. Counters never decrease. The fields are read one after the other, so
/// they may differ by a few decisions.
struct ScopeStats {
  std::string_view name;
  std::array<ClassStats, kPriorityCount> classes{};
  std::array<std::uint64_t, kReasonCount> refused{};  // by reason
  std::array<std::array<std::uint64_t, kPriorityCount>, kReasonCount> refused_by_class{};
  std::array<std::uint64_t, kReasonCount> would_refuse{};  // rules in shadow mode
  std::uint64_t errors = 0;     // permits that ended with Outcome::kError since start
  std::uint64_t overloads = 0;  // with Outcome::kOverload
  std::uint64_t samples = 0;    // with a latency sample
  Duration latency_sum{};       // of the samples
  std::uint32_t in_flight = 0;  // units, critical not counted
  std::uint32_t waiting = 0;
  std::uint32_t limit = 0;
  std::uint32_t limit_min = 0;  // the effective minimum
  std::uint32_t limit_max = 0;
  double queue_estimate = 0;
  Duration latency_avg{};  // of the last window that had samples
  Duration baseline{};
  LimitReason limit_reason = LimitReason::kHold;
  double drain_per_second = 0;  // finished requests; 0 if unknown
  OperatorState state{};
  bool overloaded = false;
};

/// The whole controller.
struct AdmissionStats {
  std::uint64_t admitted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t critical_shed = 0;  // must stay 0
  std::uint32_t in_flight = 0;      // units over all scopes, critical not counted
  std::uint32_t streaming = 0;      // units
  std::uint64_t bytes = 0;          // held over all actors
  double memory_usage = 0;
  bool memory_readable = true;
  std::uint32_t actors = 0;  // entries in use
  std::uint32_t peers = 0;
};

/// One row of the top-10 lists.
struct BudgetRow {
  std::string label;  // up to 40 bytes of the name; empty for secrets
  std::uint64_t id = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;
};

}  // namespace weir::inline v0::inline control
