#include "counters.h"

namespace weir::inline v0::gateway {

RequestTotals totals_of(const std::vector<std::unique_ptr<LoopCounters>>& loops) noexcept {
  RequestTotals totals;
  for (const auto& loop : loops) {
    for (const auto& upstream : loop->upstreams) {
      for (const Count& count : upstream->answered) totals.answered += count.get();
      for (const Count& count : upstream->refused) totals.refused += count.get();
      for (const Count& count : upstream->aborted) totals.aborted += count.get();
    }
  }
  for (const auto& loop : loops) {
    totals.received += loop->received.get();
    totals.critical_shed += loop->critical_shed.get();
  }
  return totals;
}

}  // namespace weir::inline v0::gateway
