#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::inline v0::inline policy {

/// The arithmetic of the redundancy budget, which bounds retries and hedges together: each request
/// deposits a part of a token, each redundant attempt takes one token.
///
/// Balances are whole millitokens, so a deposit of 0.1 is exact and nothing is lost by rounding.
/// Over any series of n requests, redundant attempts <= n × deposit + cap.
struct RedundancyBudgetRules {
  std::uint32_t deposit_millitokens = 100;  // per request: 0.10
  std::uint32_t cap_millitokens = 100'000;  // held at most: 100 tokens; the burst
  bool operator==(const RedundancyBudgetRules&) const = default;
};

inline constexpr std::uint32_t kRedundancyToken = 1000;  // millitokens that one attempt costs

/// The rules for options: a share of the requests (0.10) and a number of tokens (100). Both are
/// clamped to what the arithmetic can hold: [0, 1] and [0, 1,000,000].
[[nodiscard]] constexpr RedundancyBudgetRules redundancy_budget_rules(
    double pct, std::uint32_t tokens_max) noexcept {
  const double share = pct >= 0 ? std::min(pct, 1.0) : 0.0;  // NaN: 0
  return {.deposit_millitokens = static_cast<std::uint32_t>(share * kRedundancyToken + 0.5),
          .cap_millitokens = std::min(tokens_max, 1'000'000U) * kRedundancyToken};
}

/// The balance after one request. Never above the cap; a balance above it (the cap was lowered) is
/// cut to it.
[[nodiscard]] constexpr std::uint32_t after_deposit(std::uint32_t balance,
                                                    const RedundancyBudgetRules& rules) noexcept {
  const std::uint64_t sum = std::uint64_t{balance} + rules.deposit_millitokens;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, rules.cap_millitokens));
}

/// The balance after one redundant attempt; nullopt: it is not allowed.
[[nodiscard]] constexpr std::optional<std::uint32_t> after_take(std::uint32_t balance) noexcept {
  if (balance < kRedundancyToken) return std::nullopt;
  return balance - kRedundancyToken;
}

/// Whether a shared budget has enough for a destination whose own part is used up: more than half.
[[nodiscard]] constexpr bool may_borrow(std::uint32_t shared_balance,
                                        const RedundancyBudgetRules& shared) noexcept {
  return shared_balance > shared.cap_millitokens / 2;
}

/// The balance after a token came back because no byte of its attempt was written.
[[nodiscard]] constexpr std::uint32_t after_refund(std::uint32_t balance,
                                                   const RedundancyBudgetRules& rules) noexcept {
  const std::uint64_t sum = std::uint64_t{balance} + kRedundancyToken;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, rules.cap_millitokens));
}

}  // namespace weir::inline v0::inline policy
