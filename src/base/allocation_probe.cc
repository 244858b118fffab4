#include "base/allocation_probe.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
constinit std::atomic<std::size_t> allocations{0};
}  // namespace

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::inline v0 {

std::size_t allocations_so_far() noexcept {
  return allocations.load(std::memory_order_relaxed);
}

}  // namespace weir::inline v0
