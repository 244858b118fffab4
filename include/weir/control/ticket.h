#pragma once

#include <cstdint>
#include <utility>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/control/permit.h"

namespace weir::inline v0::inline control {

/// The first part of an admission in two parts: a request that passed checks 1 to 6 and has not
/// asked for its place yet, for example because its body is still being received.
///
/// It holds the count of its actor and peer, and its bytes, but no unit of the limit: however long
/// it lasts, it takes nothing from other requests. AdmissionController::enter() makes a permit of
/// it, or a waiter, or refuses it. The cap of the class is checked again there, with the limit in
/// one atomic step, and so is the deadline.
///
/// Promises: as Permit, exactly what was taken is given back, once, whether it is used, destroyed,
/// or the rules changed meanwhile. One that is destroyed counts neither as admitted nor as refused.
/// Thread-safety: one owner at a time, on any thread. Cost: 72 bytes; no allocation.
/// Lifetime: the controller must outlive it (it asserts that); so must its scope.
class [[nodiscard]] Ticket {
 public:
  Ticket() noexcept = default;
  Ticket(Ticket&& other) noexcept = default;
  Ticket& operator=(Ticket&& other) noexcept {
    if (this != &other) {
      holdings_.drop_holdings();
      holdings_ = std::move(other.holdings_);
      ask_ = other.ask_;
    }
    return *this;
  }
  ~Ticket() { holdings_.drop_holdings(); }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(holdings_); }

  /// As those of Permit.
  [[nodiscard]] Result<void, Reason> try_grow(std::uint64_t bytes) noexcept {
    return holdings_.try_grow(bytes);
  }
  void shrink(std::uint64_t bytes) noexcept { holdings_.shrink(bytes); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return holdings_.bytes(); }
  [[nodiscard]] Priority priority() const noexcept { return holdings_.priority(); }
  [[nodiscard]] ScopeId scope() const noexcept { return holdings_.scope(); }

 private:
  friend class AdmissionController;

  /// What is needed of the request for the second part.
  struct Ask {
    TimePoint deadline{};
    std::uint64_t turns = 0;  // whose turns it uses in the waiting room; 0: of nobody in particular
    std::uint32_t cost = 1;
    bool hedge = false;
  };

  Permit holdings_;  // without units
  Ask ask_;
};

}  // namespace weir::inline v0::inline control
