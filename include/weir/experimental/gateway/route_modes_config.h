#pragma once

#include <optional>

#include "weir/policy/rule_modes.h"

namespace weir::inline v0::gateway {

/// The modes of the rules for the requests of one route; unset: as in [admission].
struct RouteModes {
  std::optional<RuleMode> deadline;
  std::optional<RuleMode> memory;
  std::optional<RuleMode> peer;
  std::optional<RuleMode> actor;
  std::optional<RuleMode> bytes;
  std::optional<RuleMode> class_cap;
  std::optional<RuleMode> limit;

  bool operator==(const RouteModes&) const = default;
  [[nodiscard]] RuleOverrides overrides() const noexcept;
};

inline RuleOverrides RouteModes::overrides() const noexcept {
  RuleOverrides out;
  const auto take = [&out](Rule rule, const std::optional<RuleMode>& mode) {
    if (mode) out.set(rule, *mode);
  };
  take(Rule::kDeadline, deadline);
  take(Rule::kMemory, memory);
  take(Rule::kPeer, peer);
  take(Rule::kActor, actor);
  take(Rule::kBytes, bytes);
  take(Rule::kClassCap, class_cap);
  take(Rule::kLimit, limit);
  return out;
}

}  // namespace weir::inline v0::gateway
