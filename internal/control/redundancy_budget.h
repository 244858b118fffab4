#pragma once

#include <atomic>
#include <cstdint>

#include "policy/redundancy_budget.h"

namespace weir::inline v0::inline control {

/// The redundancy budget of an upstream or of one destination, shared by loops: retries and hedges
/// take from it, each request deposits.
///
/// Promises: never below zero and never above the cap, under every interleaving; below the cap no
/// deposit, take or refund is lost. Over any series of n requests, takes minus refunds
/// <= n × deposit + cap. Starts full.
/// Thread-safety: any member, any thread, without a lock.
/// Cost: a compare-exchange; deposit() into a full budget only reads, so while nothing fails the
/// cache line is shared by all loops.
/// Lifetime: rules are set at construction and can be changed at any time by set_rules().
class alignas(64) RedundancyBudget {
 public:
  explicit RedundancyBudget(const policy::RedundancyBudgetRules& rules = {}) noexcept
      : rules_(pack(rules)), balance_(rules.cap_millitokens) {}

  /// Call once per request (not per attempt).
  void deposit() noexcept;
  /// Takes one token for a redundant attempt; false: it must not be made.
  [[nodiscard]] bool try_take() noexcept;
  /// Gives the token back: no byte of the attempt was written.
  void refund() noexcept;

  /// New rules hold from the next operation on; a balance above the new cap is cut by the next
  /// deposit.
  void set_rules(const policy::RedundancyBudgetRules& rules) noexcept {
    rules_.store(pack(rules), std::memory_order_relaxed);
  }
  /// Half of what it may hold is there, and more.
  [[nodiscard]] bool may_lend() const noexcept {
    return policy::may_borrow(balance_millitokens(), rules());
  }
  [[nodiscard]] std::uint32_t balance_millitokens() const noexcept {
    return balance_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] policy::RedundancyBudgetRules rules() const noexcept {
    const std::uint64_t packed = rules_.load(std::memory_order_relaxed);
    return {.deposit_millitokens = static_cast<std::uint32_t>(packed >> 32U),
            .cap_millitokens = static_cast<std::uint32_t>(packed)};
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t pack(
      const policy::RedundancyBudgetRules& rules) noexcept {
    return std::uint64_t{rules.deposit_millitokens} << 32U | rules.cap_millitokens;
  }

  std::atomic<std::uint64_t> rules_;
  std::atomic<std::uint32_t> balance_;
};

/// The two budgets that a redundant attempt is taken from. `destination` is that of the endpoint
/// whose attempt failed or is late, so that one bad endpoint cannot use up the retries of all
/// others: its own part, and half of what the shared budget may hold while nobody needs that. The
/// latter is for an endpoint that gets few requests because it is bad, and fails or delays most of
/// them: a tenth of so few is next to nothing.
struct RedundancyBudgets {
  RedundancyBudget& shared;
  RedundancyBudget& destination;
};

enum class BudgetVerdict : std::uint8_t { kTaken, kSharedEmpty, kDestinationEmpty };

/// One token, held by an attempt: taken from both budgets, from the shared one if the destination's
/// is empty and policy::may_borrow(), or from none; given back if the attempt
/// is dropped before its first byte was written.
///
/// Promises: spent() or the destructor ends it exactly once. Borrowing leaves at least half of the
/// shared budget, but for as many tokens as threads borrow at the same instant.
/// Thread-safety: none; one owner. Cost: two atomics. Lifetime: within that of the budgets.
class [[nodiscard]] RedundancyToken {
 public:
  /// An empty token: of an attempt that needs none.
  RedundancyToken() noexcept = default;
  RedundancyToken(RedundancyToken&& other) noexcept;
  RedundancyToken& operator=(RedundancyToken&& other) noexcept;
  RedundancyToken(const RedundancyToken&) = delete;
  RedundancyToken& operator=(const RedundancyToken&) = delete;
  ~RedundancyToken() { refund(); }

  /// Holds a token afterwards if and only if the verdict is kTaken. The token must be empty.
  [[nodiscard]] BudgetVerdict take(const RedundancyBudgets& from) noexcept;
  /// The first byte of the attempt was written: the token is used up.
  void spent() noexcept { shared_ = destination_ = nullptr; }
  [[nodiscard]] bool held() const noexcept { return shared_ != nullptr; }

 private:
  void refund() noexcept;

  RedundancyBudget* shared_ = nullptr;
  RedundancyBudget* destination_ = nullptr;  // none: borrowed
};

}  // namespace weir::inline v0::inline control
