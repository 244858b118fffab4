#include "weir/base/striped_counter.h"

namespace weir::inline v0 {

std::size_t claim_stripe() noexcept {
  static constinit std::atomic<std::size_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace weir::inline v0
