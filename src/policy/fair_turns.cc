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
  if (waiters_ == 0) return ShuffleShard::first(actor);  // all are empty: the first of the hand
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
  WEIR_ASSERT(waiters_ > 0);
  if (lengths_used_ == 0) return id_of(*turns_.front());  // each has one
  return id_of(*by_length_[length_class(lengths_used_)].front());
}

void FairTurns::list_by_length(Flow& flow, std::uint32_t before) noexcept {
  const std::uint32_t count = flow.waiters;
  if (before > 1 && count > 1 && length_class(before) == length_class(count)) return;
  if (before > 1) {
    ByLength& list = by_length_[length_class(before)];
    list.remove(flow);
    if (list.empty()) lengths_used_ &= ~(1U << length_class(before));
  }
  if (count > 1) {
    by_length_[length_class(count)].push_back(flow);
    lengths_used_ |= 1U << length_class(count);
  }
}

void FairTurns::end_turn(Flow& flow) noexcept {
  turns_.remove(flow);
  turns_.push_back(flow);
  turn_begun_ = false;
}

}  // namespace weir::inline v0::inline policy
