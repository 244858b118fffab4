#include "memory/malloc_probe_testing.h"

#include <atomic>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_OWN_MALLOC 0
#endif
#endif
#ifndef WEIR_OWN_MALLOC
#define WEIR_OWN_MALLOC 1
#endif

namespace {
std::atomic<std::size_t> calls{0};
}

#if WEIR_OWN_MALLOC
extern "C" {
// glibc's own names for what these replace.
// NOLINTBEGIN(readability-identifier-naming)
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t nmemb, std::size_t size);
void* __libc_realloc(void* ptr, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
// NOLINTEND(readability-identifier-naming)

void* malloc(std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t nmemb, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(nmemb, size);
}
void* realloc(void* ptr, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(ptr, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}
#endif

namespace weir::inline v0::inline server {

std::size_t mallocs_so_far() noexcept {
  return calls.load(std::memory_order_relaxed);
}

bool mallocs_are_counted() noexcept {
  return WEIR_OWN_MALLOC != 0;
}

}  // namespace weir::inline v0::inline server
