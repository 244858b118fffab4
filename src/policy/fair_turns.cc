#include "policy/fair_turns.h"

#include <algorithm>
#include <bit>

#include "weir/base/assert.h"

namespace weir::inline v0::inline policy {
namespace {

std::size_t length_class(std::uint32_t waiters) noexcept {
  return static_cast<std::size_t>(std::bit_width(waiters)) - 1;
}

}  // namespace

FlowId FairTurns::flow_for(std::uint64_t actor) const noexcept {
  if (actor == 0) return kNoActor;
  const ShuffleShard::Hand hand = ShuffleShard::deal(actor);
  FlowId shortest = hand.front();
  for (const FlowId id : hand) {
    const Flow& flow = flows_[id];
    if (flow.waiters > 0 && flow.actor == actor) return id;
    if (flow.waiters < flows_[shortest].waiters) shortest = id;
  }
  return shortest;
}

std::size_t FairTurns::ahead_of(FlowId id) const noexcept {
  // Until the flow has had one turn more than it has waiters, each other flow has as many.
  const std::size_t mine = flows_[id].waiters;
  const std::size_t others = turns_.size() - (mine > 0 ? 1 : 0);
  return std::min(waiters_, mine + (mine + 1) * others);
}

FlowId FairTurns::longest() const noexcept {
  WEIR_ASSERT(lengths_used_ != 0);
  return id_of(*by_length_[length_class(lengths_used_)].front());
}

void FairTurns::set_waiters(Flow& flow, std::uint32_t count) noexcept {
  const std::uint32_t before = flow.waiters;
  flow.waiters = count;
  if (before != 0 && count != 0 && length_class(before) == length_class(count)) return;
  if (before != 0) {
    ByLength& list = by_length_[length_class(before)];
    list.remove(flow);
    if (list.empty()) lengths_used_ &= ~(1U << length_class(before));
  }
  if (count != 0) {
    by_length_[length_class(count)].push_back(flow);
    lengths_used_ |= 1U << length_class(count);
  }
}

void FairTurns::add(FlowId id, std::uint64_t actor, std::uint32_t cost) noexcept {
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

void FairTurns::remove(FlowId id) noexcept {
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

void FairTurns::serve(FlowId id, std::uint32_t cost) noexcept {
  flows_[id].credit -= std::min(flows_[id].credit, cost);
  remove(id);
}

void FairTurns::end_turn(Flow& flow) noexcept {
  turns_.remove(flow);
  turns_.push_back(flow);
  turn_begun_ = false;
}

}  // namespace weir::inline v0::inline policy
