#include "weir/experimental/io/entropy.h"

#include <sys/random.h>

#include "weir/base/assert.h"

namespace weir::inline v0::io {

std::uint64_t random_seed() noexcept {
  std::uint64_t seed = 0;
  WEIR_ASSERT(::getrandom(&seed, sizeof seed, 0) == static_cast<long>(sizeof seed));
  return seed;
}

}  // namespace weir::inline v0::io
