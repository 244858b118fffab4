#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/intrusive_list.h"

#include "policy/shuffle_shard.h"

namespace weir::inline v0::inline policy {

/// A queue of the waiters of one actor, or of several when there are more actors than queues.
using FlowId = std::uint8_t;

/// Decides whose turn it is among the flows of a line: deficit round robin by cost.
///
/// Each flow in turn may spend a quantum, the largest cost seen since the line was empty, and what
/// it did not spend the last time. So a flow that always has waiters gets its equal part of the
/// cost served, however many waiters it has, and one with few is served within one round.
///
/// An actor is dealt a hand of eight of the 128 flows. It joins the flow of its hand that it owns;
/// else it owns an empty one; else it joins the shortest. So while there are few actors, each has
/// one flow of its own, and when there are many they share. Waiters without an actor share one
/// flow, which alone is first come, first served.
///
/// Promises, for flows that have waiters all the time: of the cost that two of them got between two
/// instants, one exceeds the other by less than 3 × the largest cost; each is served at least once
/// per round. longest() has more than half as many waiters as any other flow.
/// Thread-safety: none; the owner serialises. Cost: O(1) per call, no allocation; 9 KB.
class FairTurns {
 public:
  static constexpr FlowId kNoActor = ShuffleShard::kQueues;
  static constexpr std::size_t kFlows = ShuffleShard::kQueues + 1;

  /// The flow that a waiter of this actor would join; zero: no actor.
  [[nodiscard]] FlowId flow_for(std::uint64_t actor) const noexcept;

  void add(FlowId id, std::uint64_t actor, std::uint32_t cost) noexcept {
    Flow& flow = flows_[id];
    if (flow.waiters == 0) {
      flow.actor = actor;
      flow.credit = 0;
      turns_.push_back(flow);
    }
    set_waiters(flow, flow.waiters + 1);
    ++waiters_;
    quantum_ = std::max(quantum_, cost);
  }
  /// Takes one waiter out without charging its flow: it was refused or left.
  void remove(FlowId id) noexcept {
    Flow& flow = flows_[id];
    WEIR_ASSERT(flow.waiters > 0);
    set_waiters(flow, flow.waiters - 1);
    --waiters_;
    if (flow.waiters == 0) {
      if (turns_.front() == &flow) turn_begun_ = false;
      turns_.remove(flow);
    }
    if (waiters_ == 0) quantum_ = 1;
  }
  /// Takes one waiter out and charges its flow.
  void serve(FlowId id, std::uint32_t cost) noexcept {
    flows_[id].credit -= std::min(flows_[id].credit, cost);
    remove(id);
  }

  /// The flow whose turn it is, until serve() or remove() changes that. There must be a waiter.
  /// `first_cost(id)` is the cost of the first waiter of a flow.
  template <class FirstCost>
  [[nodiscard]] FlowId next(FirstCost first_cost) noexcept {
    for (;;) {
      Flow& flow = *turns_.front();
      if (!turn_begun_) flow.credit += quantum_;
      turn_begun_ = true;
      const FlowId id = id_of(flow);
      if (first_cost(id) <= flow.credit) return id;
      end_turn(flow);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return waiters_; }
  [[nodiscard]] std::uint32_t size(FlowId id) const noexcept { return flows_[id].waiters; }
  /// How many waiters may be served before one that joins this flow now.
  [[nodiscard]] std::size_t ahead_of(FlowId id) const noexcept;
  /// A flow with the most waiters, or more than half as many. There must be a waiter.
  [[nodiscard]] FlowId longest() const noexcept;
  /// Calls `visit(id)` for each flow that has waiters; it may take waiters of that flow out.
  template <class Visit>
  void for_each_flow(Visit visit) const {
    for (const Flow* flow = turns_.front(); flow != nullptr;) {
      const Flow* next = turns_.next(*flow);
      visit(id_of(*flow));
      flow = next;
    }
  }

 private:
  struct Flow {
    ListHook<Flow> turn;
    ListHook<Flow> length;
    std::uint64_t actor = 0;  // who owns it; zero: nobody
    std::uint32_t waiters = 0;
    std::uint32_t credit = 0;
  };
  using ByLength = IntrusiveList<Flow, &Flow::length>;
  static constexpr std::size_t kLengths = 32;  // list i: 2^i to 2^(i+1) - 1 waiters, at least 2

  [[nodiscard]] FlowId id_of(const Flow& flow) const noexcept {
    return static_cast<FlowId>(&flow - flows_.data());
  }
  void end_turn(Flow& flow) noexcept;
  void set_waiters(Flow& flow, std::uint32_t count) noexcept {
    const std::uint32_t before = std::exchange(flow.waiters, count);
    if ((before | count) > 1) list_by_length(flow, before);
  }
  void list_by_length(Flow& flow, std::uint32_t before) noexcept;

  std::array<Flow, kFlows> flows_{};
  IntrusiveList<Flow, &Flow::turn> turns_;  // the flows that have waiters; the first has its turn
  std::array<ByLength, kLengths> by_length_{};
  std::uint32_t lengths_used_ = 0;  // bit i: list i is not empty
  std::uint32_t quantum_ = 1;
  std::size_t waiters_ = 0;
  bool turn_begun_ = false;  // the first flow has its quantum
};

}  // namespace weir::inline v0::inline policy
