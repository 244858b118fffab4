#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "weir/base/enum_names.h"
#include "weir/policy/outgoing_state.h"

#include "policy/endpoint_health.h"

namespace weir::inline v0::inline policy {

/// What a choice sees of one endpoint. Built by the accessor from shared values, by value, so a
/// choice of two reads two endpoints and no more.
struct ReplicaView {
  Openness openness = Openness::kOpen;
  OutgoingState queue = OutgoingState::kHealthy;  // of those who wait for a connection to it
  std::uint32_t in_flight = 0;                    // attempts of all loops
  std::uint32_t in_flight_max = 0;                // share_max(); 0: no bound
  double score_ns = 1;  // projected_ns(); only power of two choices reads it
  double weight = 1;    // configured × return_ratio(); positive
};

/// The sums over all endpoints of an upstream that a choice needs. The tick that merges the values
/// of the loops computes it; it may be some 10 ms old.
struct Cohort {
  std::uint32_t endpoints = 0;    // not draining by the operator
  std::uint32_t open = 0;         // kOpen or kTrial
  std::uint32_t returning = 0;    // of them, with a ramp
  std::uint32_t overflowing = 0;  // of them, with a queue in overflow or saturated
  double open_weight = 0;         // sum of their effective weights
  double weight_max = 1;          // the largest effective weight
};

/// Fewer than half of the endpoints are open: those that are ejected for bad answers, latency or
/// checks are used again, since to push all load on the rest would overload it. Endpoints whose
/// connects fail stay out: they cannot help.
[[nodiscard]] constexpr bool in_panic(const Cohort& cohort) noexcept {
  return 2 * cohort.open < cohort.endpoints;
}

/// The ramp applies while at most half of the open endpoints are returning. Otherwise there is
/// nobody to protect them with, and their weights would only distort the choice.
[[nodiscard]] constexpr bool ramp_applies(const Cohort& cohort) noexcept {
  return 2 * cohort.returning <= cohort.open;
}

/// The queues to all open endpoints are in overflow or saturated: requests come faster than
/// connections can take them, wherever they are sent. One endpoint with a healthy queue is enough
/// for the others' to say nothing about the upstream.
[[nodiscard]] constexpr bool queues_overflow(const Cohort& cohort) noexcept {
  return cohort.open > 0 && cohort.overflowing >= cohort.open;
}

/// How many attempts one endpoint may hold: ceil(1.5 × limit × weight ÷ weight of all open
/// endpoints), at least 1; with equal weights ceil(1.5 × limit ÷ open). `weight` is the effective
/// one, so slow return lowers the share of an endpoint, and the others get it. 0 (no bound) without
/// a limit, if at most one endpoint is open, and in panic: the limit itself is the bound then.
/// Loops that count in flight together should take their place with one compare-and-add against it.
/// Promises: the shares of all open endpoints together are at least 1.5 × limit.
[[nodiscard]] inline std::uint32_t share_max(std::uint32_t limit, double weight,
                                             const Cohort& cohort) noexcept {
  if (limit == 0 || cohort.open <= 1 || in_panic(cohort) || cohort.open_weight <= 0) return 0;
  const double share = std::ceil(1.5 * limit * weight / cohort.open_weight);
  return static_cast<std::uint32_t>(std::clamp(share, 1.0, 4294967295.0));
}

inline constexpr std::uint32_t kNoReplica = std::numeric_limits<std::uint32_t>::max();

/// How a choice went; a label of metrics.
enum class ChoiceReason : std::uint8_t {
  kChosen,      // the configured rule, among open endpoints
  kOnlyOne,     // only one endpoint could be used
  kSpilled,     // the own zone had no room
  kPanic,       // too few endpoints are open
  kRepeated,    // one that was tried: no other is open
  kLastResort,  // a suspect or hung one: there is no other
  // no endpoint:
  kEmptySet,  // the set has no endpoint
  kAllOut,    // all are draining, or their connects fail
  kAllFull,   // open endpoints exist, and each holds its share, or its queue is saturated
  kAllTried,  // open endpoints exist, all were tried, and a second try is not wanted
};
WEIR_ENUM_NAMES(ChoiceReason, "chosen", "only_one", "spilled", "panic", "repeated", "last_resort",
                "empty_set", "all_out", "all_full", "all_tried")
inline constexpr std::size_t kChoiceReasonCount = kChoiceReasonNames.size();

struct Choice {
  std::uint32_t index = kNoReplica;
  ChoiceReason reason = ChoiceReason::kEmptySet;
  [[nodiscard]] constexpr bool found() const noexcept { return index != kNoReplica; }
};

}  // namespace weir::inline v0::inline policy
