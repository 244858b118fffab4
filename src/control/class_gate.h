#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/control/admission_config.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/operator_state.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline control {

/// The units that one request took from a gate.
struct Seat {
  std::uint16_t units = 0;
  bool counted_critical_overflow = false;
};

/// What try_take() found.
enum class Take : std::uint8_t {
  kTaken,
  kClassCap,  // refused by the fixed cap of the class
  kLimit,     // the share of the limit is used up, or a waiter is in front: may wait
  kProcess,   // refused by max_concurrent, if this gate enforces it for the process
};

/// The class counts of one scope, and which classes have waiters, in one 64-bit word:
///
///   bits  0–13 critical · 14–27 high · 28–41 normal · 42–55 low · 56 high waits · 57 normal waits
///
/// Promises: cap and share are checked and the request is counted in one compare-exchange, so
/// neither is ever exceeded. A new request does not overtake a waiter of its own or a higher class.
/// Thread-safety: any member, any thread; set_rules() calls are serialised by the owner; waiter
/// bits are set and cleared under the waiting room's lock.
class ClassGate {
 public:
  /// Installs caps and shares for the limit in force. `process_max` > 0: this gate is the only one,
  /// and enforces max_concurrent itself.
  void set_rules(const ClassRules& rules, const RuleModes& modes, std::uint32_t limit,
                 std::uint32_t process_max) noexcept;

  struct Attempt {
    Take take = Take::kLimit;
    Take would = Take::kTaken;  // what rules in shadow mode would do
    Seat seat{};
    std::uint32_t in_flight = 0;  // sheddable units after taking
  };
  /// `modes`: those of the request. `overtake`: ignores waiters; only for the waiting room, for its
  /// first waiter.
  [[nodiscard]] Attempt try_take(const ClassRequest& request, RuleOverrides modes,
                                 bool overtake) noexcept;
  /// What try_take() would find for a new request, each rule separately; takes nothing.
  struct Look {
    Take cap = Take::kTaken;
    Take limit = Take::kTaken;  // in every mode; waiters in front count only if enforced
    RuleMode cap_mode = RuleMode::kEnforce;
    RuleMode limit_mode = RuleMode::kEnforce;
    std::uint32_t units = 0;  // what the request would take
    std::uint32_t in_class = 0;
    std::uint32_t class_cap = 0;  // 0: none
    std::uint32_t in_flight = 0;  // sheddable units
    std::uint32_t bound = 0;      // of the share of the request
  };
  [[nodiscard]] Look look(const ClassRequest& request, RuleOverrides modes) const noexcept;

  /// Returns true if there are waiters: the caller must then pump the waiting room.
  [[nodiscard]] bool give_back(const Seat& seat, Priority priority) noexcept;

  void set_waiting(bool high, bool normal) noexcept;

  [[nodiscard]] ClassCounts counts() const noexcept;
  [[nodiscard]] std::uint32_t sheddable() const noexcept {
    return unpack(word_.load(std::memory_order_relaxed)).sheddable();
  }
  /// The number of units up to which a class may fill the scope.
  [[nodiscard]] std::uint32_t bound(Priority priority) const noexcept {
    return bounds_[index_of(priority)].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t cap(Priority priority) const noexcept {
    return caps_[index_of(priority)].load(std::memory_order_relaxed);
  }
  [[nodiscard]] OperatorState state() const noexcept;

 private:
  static constexpr std::uint32_t kBits = 14;
  static constexpr std::uint64_t kMask = kClassUnitsMax;
  static constexpr std::uint64_t kHighWaits = std::uint64_t{1} << 56U;
  static constexpr std::uint64_t kNormalWaits = std::uint64_t{1} << 57U;
  static constexpr std::uint64_t kAnyWaits = kHighWaits | kNormalWaits;

  [[nodiscard]] static constexpr std::uint32_t shift_of(Priority p) noexcept {
    return kBits * static_cast<std::uint32_t>(p);
  }
  [[nodiscard]] static constexpr ClassCounts unpack(std::uint64_t word) noexcept {
    return {{static_cast<std::uint32_t>(word & kMask),
             static_cast<std::uint32_t>((word >> kBits) & kMask),
             static_cast<std::uint32_t>((word >> (2 * kBits)) & kMask),
             static_cast<std::uint32_t>((word >> (3 * kBits)) & kMask)}};
  }
  [[nodiscard]] static constexpr std::size_t bound_index(const ClassRequest& r) noexcept {
    return index_of(r.priority) + (r.hedge ? kPriorityCount : 0);
  }
  /// The bits of the waiters that a new request of this kind must not overtake.
  [[nodiscard]] static constexpr std::uint64_t in_front(const ClassRequest& r) noexcept {
    return r.priority == Priority::kHigh && !r.hedge ? kHighWaits : kAnyWaits;
  }
  /// The numbers that one request is checked against.
  struct Rules {
    ClassRequest charged;  // with the cost that is charged
    std::uint32_t bound = 0;
    std::uint32_t cap = 0;
    std::uint32_t process_max = 0;
  };
  /// Which rules are asked.
  struct Asked {
    bool cap = true;
    bool limit = true;
  };
  struct Modes {
    RuleMode cap = RuleMode::kEnforce;
    RuleMode limit = RuleMode::kEnforce;
  };
  [[nodiscard]] Rules rules_for(const ClassRequest& request) const noexcept;
  /// The decision as a pure function of the word and the rules.
  [[nodiscard]] static Take judge(std::uint64_t word, const Rules& rules, Asked asked,
                                  bool overtake) noexcept;
  [[nodiscard]] Attempt take(const Rules& rules, Modes modes, bool overtake) noexcept;
  [[nodiscard]] Attempt take_critical(std::uint32_t cost) noexcept;
  [[nodiscard]] Attempt take_unenforced(const ClassRequest& request, RuleOverrides overrides,
                                        bool overtake) noexcept;
  [[nodiscard]] Modes modes_for(RuleOverrides overrides) const noexcept;

  alignas(64) std::atomic<std::uint64_t> word_{0};
  std::atomic<std::uint32_t> critical_overflow_{0};

  // Read by every decision; written only by reconfiguration and limit changes.
  // First half: requests; second half: hedges of that class.
  alignas(64) std::array<std::atomic<std::uint32_t>, 2 * kPriorityCount> bounds_{};
  std::array<std::atomic<std::uint32_t>, kPriorityCount> caps_{};
  std::atomic<std::uint32_t> process_max_{0};
  std::atomic<bool> enforced_{true};  // both rules are enforced: the common, fast path
  std::atomic<RuleMode> cap_mode_{RuleMode::kEnforce};
  std::atomic<RuleMode> limit_mode_{RuleMode::kEnforce};
};

// Always inline: returning a struct through memory costs more than the take itself, and constant
// modes make the common path short.

[[gnu::always_inline]] inline ClassGate::Rules ClassGate::rules_for(
    const ClassRequest& request) const noexcept {
  Rules rules{.charged = request,
              .bound = bounds_[bound_index(request)].load(std::memory_order_relaxed),
              .cap = caps_[index_of(request.priority)].load(std::memory_order_relaxed),
              .process_max = process_max_.load(std::memory_order_relaxed)};
  rules.charged.cost = charged_cost(request.cost, rules.bound, rules.cap);
  if (rules.process_max != 0) rules.charged.cost = std::min(rules.charged.cost, rules.process_max);
  return rules;
}

[[gnu::always_inline]] inline Take ClassGate::judge(std::uint64_t word, const Rules& rules,
                                                    Asked asked, bool overtake) noexcept {
  const ClassCounts counts = unpack(word);
  if (asked.cap && over_class_cap(counts, rules.charged, rules.cap)) return Take::kClassCap;
  if (!asked.limit) return Take::kTaken;
  if (over_bound(counts, rules.charged, rules.bound)) return Take::kLimit;
  const bool over_process =
      rules.process_max != 0 && over_bound(counts, rules.charged, rules.process_max);
  if (over_process) return Take::kProcess;
  const bool behind = !overtake && (word & in_front(rules.charged)) != 0;
  return behind ? Take::kLimit : Take::kTaken;
}

[[gnu::always_inline]] inline ClassGate::Attempt ClassGate::take(const Rules& rules, Modes modes,
                                                                 bool overtake) noexcept {
  const auto asked = [modes](RuleMode mode) {
    return Asked{.cap = modes.cap == mode, .limit = modes.limit == mode};
  };
  const std::uint32_t cost = rules.charged.cost;
  const Priority priority = rules.charged.priority;
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const Take found = judge(word, rules, asked(RuleMode::kEnforce), overtake);
    if (found != Take::kTaken) return {.take = found};
    const ClassCounts counts = unpack(word);
    const Take would = judge(word, rules, asked(RuleMode::kShadow), true);
    const std::uint32_t in_flight = counts.sheddable() + cost;
    const bool bounded = modes.limit == RuleMode::kEnforce;
    if (!bounded && counts.of(priority) + cost > kClassUnitsMax) {
      // Above what the word can count, it passes uncounted.
      return {.take = Take::kTaken, .would = would, .in_flight = in_flight};
    }
    const std::uint64_t next = word + (std::uint64_t{cost} << shift_of(priority));
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
      return {.take = Take::kTaken,
              .would = would,
              .seat = {.units = static_cast<std::uint16_t>(cost)},
              .in_flight = in_flight};
    }
  }
}

[[gnu::always_inline]] inline ClassGate::Attempt ClassGate::try_take(const ClassRequest& request,
                                                                     RuleOverrides modes,
                                                                     bool overtake) noexcept {
  if (request.priority == Priority::kCritical) return take_critical(request.cost);
  if (!enforced_.load(std::memory_order_relaxed) || modes.any()) {
    return take_unenforced(request, modes, overtake);
  }
  return take(rules_for(request), {}, overtake);
}

inline ClassCounts ClassGate::counts() const noexcept {
  ClassCounts counts = unpack(word_.load(std::memory_order_relaxed));
  counts.units[0] += critical_overflow_.load(std::memory_order_relaxed);
  return counts;
}

inline void ClassGate::set_waiting(bool high, bool normal) noexcept {
  const std::uint64_t bits = (high ? kHighWaits : 0) | (normal ? kNormalWaits : 0);
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  while ((word & kAnyWaits) != bits &&
         !word_.compare_exchange_weak(word, (word & ~kAnyWaits) | bits, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
  }
}

inline bool ClassGate::give_back(const Seat& seat, Priority priority) noexcept {
  if (seat.units == 0) return false;
  if (seat.counted_critical_overflow) {
    critical_overflow_.fetch_sub(seat.units, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t before =
      word_.fetch_sub(std::uint64_t{seat.units} << shift_of(priority), std::memory_order_acq_rel);
  WEIR_ASSERT(((before >> shift_of(priority)) & kMask) >= seat.units);
  return (before & kAnyWaits) != 0;
}

}  // namespace weir::inline v0::inline control
