#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rules.h"

namespace weir::inline v0::gateway {

/// The rules of a loop and how many of its requests still need them: a request needs its route
/// until its response's head is written, also after a reload.
///
/// Thread-safety: its loop's thread; counting needs no atomic operation.
struct UsedRules {
  std::shared_ptr<const Rules> rules;
  std::uint32_t requests = 0;
};

/// Counts one request. Movable, not copyable.
class RulesUse {
 public:
  RulesUse() = default;
  explicit RulesUse(UsedRules& used) noexcept : used_(&used) { ++used.requests; }
  RulesUse(RulesUse&& other) noexcept : used_(std::exchange(other.used_, nullptr)) {}
  RulesUse& operator=(RulesUse&& other) noexcept {
    std::swap(used_, other.used_);
    return *this;
  }
  ~RulesUse() {
    if (used_ != nullptr) --used_->requests;
  }

 private:
  UsedRules* used_ = nullptr;
};

}  // namespace weir::inline v0::gateway
