#include "counters.h"

namespace weir::inline v0::gateway {

void RequestTotals::add(const UpstreamCounters& more) noexcept {
  for (const Count& count : more.answered) answered += count.get();
  for (const Count& count : more.refused) refused += count.get();
  for (const Count& count : more.aborted) aborted += count.get();
}

void RequestTotals::add(const LoopCounters& more) noexcept {
  add(more.none);
  received += more.received.get();
  critical_shed += more.critical_shed.get();
}

}  // namespace weir::inline v0::gateway
