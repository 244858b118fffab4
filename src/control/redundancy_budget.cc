#include "control/redundancy_budget.h"

#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::inline control {

void RedundancyBudget::deposit() noexcept {
  const policy::RedundancyBudgetRules rules = this->rules();
  std::uint32_t held = balance_.load(std::memory_order_relaxed);
  std::uint32_t next = policy::after_deposit(held, rules);
  while (next != held && !balance_.compare_exchange_weak(held, next, std::memory_order_relaxed)) {
    next = policy::after_deposit(held, rules);
  }
}

bool RedundancyBudget::try_take() noexcept {
  std::uint32_t held = balance_.load(std::memory_order_relaxed);
  std::optional<std::uint32_t> next = policy::after_take(held);
  while (next && !balance_.compare_exchange_weak(held, *next, std::memory_order_relaxed)) {
    next = policy::after_take(held);
  }
  return next.has_value();
}

void RedundancyBudget::refund() noexcept {
  const policy::RedundancyBudgetRules rules = this->rules();
  std::uint32_t held = balance_.load(std::memory_order_relaxed);
  while (!balance_.compare_exchange_weak(held, policy::after_refund(held, rules),
                                         std::memory_order_relaxed)) {
  }
}

RedundancyToken::RedundancyToken(RedundancyToken&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)),
      destination_(std::exchange(other.destination_, nullptr)) {}

RedundancyToken& RedundancyToken::operator=(RedundancyToken&& other) noexcept {
  if (this != &other) {
    refund();
    shared_ = std::exchange(other.shared_, nullptr);
    destination_ = std::exchange(other.destination_, nullptr);
  }
  return *this;
}

BudgetVerdict RedundancyToken::take(const RedundancyBudgets& from) noexcept {
  WEIR_ASSERT(!held());
  const bool own = from.destination.try_take();
  if (!own && !from.shared.may_lend()) return BudgetVerdict::kDestinationEmpty;
  if (!from.shared.try_take()) {
    if (own) from.destination.refund();
    return BudgetVerdict::kSharedEmpty;
  }
  shared_ = &from.shared;
  destination_ = own ? &from.destination : nullptr;
  return BudgetVerdict::kTaken;
}

void RedundancyToken::refund() noexcept {
  if (!held()) return;
  shared_->refund();
  if (destination_ != nullptr) destination_->refund();
  spent();
}

}  // namespace weir::inline v0::inline control
