#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/control/waiter.h"
#include "weir/policy/class_admission.h"

#include "policy/fair_turns.h"
#include "policy/standing_line.h"

namespace weir::inline v0::inline control {

/// The waiters of one class, served by turns among actors, first come first served within each.
///
/// Thread-safety: none; the room's lock. Cost: O(1) per waiter, except for_each(); no allocation.
class WaitingLine {
 public:
  /// The flow that a waiter of this actor would join; zero: no actor.
  [[nodiscard]] policy::FlowId flow_for(std::uint64_t actor) const noexcept {
    return turns_.flow_for(actor);
  }
  [[nodiscard]] std::size_t ahead_of(policy::FlowId flow) const noexcept {
    return turns_.ahead_of(flow);
  }
  void push(Waiter& waiter, policy::FlowId flow, std::uint64_t actor) noexcept {
    waiter.flow_ = flow;
    flows_[flow].push_back(waiter);
    turns_.add(flow, actor, charge_of(waiter));
  }
  /// Takes a waiter out that is granted a unit (its flow is charged), or refused, or left.
  void remove(Waiter& waiter, bool granted) noexcept {
    flows_[waiter.flow_].remove(waiter);
    granted ? turns_.serve(waiter.flow_, charge_of(waiter)) : turns_.remove(waiter.flow_);
  }
  /// The waiter whose turn it is; nullptr if the line is empty.
  [[nodiscard]] Waiter* first() noexcept {
    if (empty()) return nullptr;
    const policy::FlowId flow =
        turns_.next([this](policy::FlowId id) { return charge_of(*flows_[id].front()); });
    return flows_[flow].front();
  }
  /// The newest waiter of the flow that has most, or more than half as many; nullptr if empty.
  [[nodiscard]] Waiter* newest_of_longest() const noexcept {
    return empty() ? nullptr : flows_[turns_.longest()].back();
  }

  /// Calls `visit(waiter)` for each; it may take that waiter out.
  template <class Visit>
  void for_each(Visit visit) const {
    turns_.for_each_flow([&](policy::FlowId id) {
      for (Waiter* waiter = flows_[id].front(); waiter != nullptr;) {
        Waiter* next = flows_[id].next(*waiter);
        visit(*waiter);
        waiter = next;
      }
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return turns_.size(); }
  [[nodiscard]] std::uint32_t size(policy::FlowId flow) const noexcept { return turns_.size(flow); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  policy::StandingLine standing;

 private:
  [[nodiscard]] static std::uint32_t charge_of(const Waiter& waiter) noexcept {
    return std::clamp(waiter.cost_, 1U, kClassUnitsMax);
  }

  policy::FairTurns turns_;
  std::array<IntrusiveList<Waiter, &Waiter::hook_>, policy::FairTurns::kFlows> flows_{};
};

}  // namespace weir::inline v0::inline control
