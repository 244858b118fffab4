#include "weir/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace weir::inline v0 {

void assert_failed(const char* condition, const char* file, int line) noexcept {
  static_cast<void>(std::fprintf(stderr, "%s:%d: WEIR_ASSERT(%s) failed\n", file, line, condition));
  std::abort();
}

}  // namespace weir::inline v0
