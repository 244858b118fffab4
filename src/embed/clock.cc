#include "weir/embed/clock.h"

#include <chrono>
#include <random>

namespace weir::inline v0::embed {

TimePoint now() noexcept {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace weir::inline v0::embed
