#pragma once

#include <cstdint>

#include "weir/base/enum_names.h"

namespace weir::inline v0::inline policy {

/// What a rule does when its condition holds.
///   kOff      the rule is not evaluated
///   kShadow   the rule counts what it would refuse, and refuses nothing
///   kEnforce  the rule refuses
enum class RuleMode : std::uint8_t { kOff, kShadow, kEnforce };

WEIR_ENUM_NAMES(RuleMode, "off", "shadow", "enforce")

/// The rules that have a mode.
enum class Rule : std::uint8_t { kDeadline, kMemory, kPeer, kActor, kBytes, kClassCap, kLimit };

/// The modes of all rules in one word, so that a decision reads all of them at once.
struct alignas(8) RuleModes {
  RuleMode deadline = RuleMode::kEnforce;
  RuleMode memory = RuleMode::kEnforce;
  RuleMode peer = RuleMode::kEnforce;
  RuleMode actor = RuleMode::kEnforce;  // too_large by actor, actor_inflight, actor_bytes
  RuleMode bytes = RuleMode::kEnforce;  // too_large by process, bytes
  RuleMode class_cap = RuleMode::kEnforce;
  RuleMode limit = RuleMode::kEnforce;  // the scope's limit and max_concurrent

  bool operator==(const RuleModes&) const = default;
};

/// The modes that one request has in place of the configured ones; a rule without one inherits.
///
/// They decide whether this request is refused, never what it takes from others: a request that a
/// rule in shadow mode lets pass counts like any other, so requests under an enforced rule find
/// true numbers and stay within their bounds.
/// Thread-safety: a value. Cost: 2 bytes.
class RuleOverrides {
 public:
  constexpr void set(Rule rule, RuleMode mode) noexcept {
    const auto bits = static_cast<std::uint32_t>(mode) + 1U;
    bits_ = static_cast<std::uint16_t>((bits_ & ~(kMask << at(rule))) | (bits << at(rule)));
  }
  [[nodiscard]] constexpr bool any() const noexcept { return bits_ != 0; }
  [[nodiscard]] constexpr bool has(Rule rule) const noexcept { return field(rule) != 0; }
  /// The mode of this request.
  [[nodiscard]] constexpr RuleMode of(Rule rule, RuleMode inherited) const noexcept {
    return has(rule) ? static_cast<RuleMode>(field(rule) - 1U) : inherited;
  }
  [[nodiscard]] constexpr RuleModes over(const RuleModes& inherited) const noexcept {
    if (!any()) return inherited;
    return {.deadline = of(Rule::kDeadline, inherited.deadline),
            .memory = of(Rule::kMemory, inherited.memory),
            .peer = of(Rule::kPeer, inherited.peer),
            .actor = of(Rule::kActor, inherited.actor),
            .bytes = of(Rule::kBytes, inherited.bytes),
            .class_cap = of(Rule::kClassCap, inherited.class_cap),
            .limit = of(Rule::kLimit, inherited.limit)};
  }

  bool operator==(const RuleOverrides&) const = default;

 private:
  static constexpr std::uint32_t kMask = 3;
  [[nodiscard]] static constexpr std::uint32_t at(Rule rule) noexcept {
    return 2 * static_cast<std::uint32_t>(rule);
  }
  [[nodiscard]] constexpr std::uint32_t field(Rule rule) const noexcept {
    return (std::uint32_t{bits_} >> at(rule)) & kMask;
  }

  std::uint16_t bits_ = 0;  // two per rule: 0 inherits, otherwise the mode + 1
};

}  // namespace weir::inline v0::inline policy
