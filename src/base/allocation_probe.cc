#include "base/allocation_probe.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_THREAD__)
#define WEIR_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef WEIR_COUNTS_ALLOCATIONS
#define WEIR_COUNTS_ALLOCATIONS 1
#endif

namespace {
constinit std::atomic<std::size_t> allocations{0};
}  // namespace

#if WEIR_COUNTS_ALLOCATIONS
void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
#endif

namespace weir::inline v0 {

std::size_t allocations_so_far() noexcept {
  return allocations.load(std::memory_order_relaxed);
}

bool allocations_are_counted() noexcept {
  return WEIR_COUNTS_ALLOCATIONS != 0;
}

}  // namespace weir::inline v0
