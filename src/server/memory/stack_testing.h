#pragma once

// How much of its stack a thread has touched, as the kernel counts it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weir::inline v0::inline server::testkit {

/// Resident bytes of the calling thread's stack; 0 if unknown.
inline std::uint64_t touched_stack_bytes() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &lowest, &size);
  ::pthread_attr_destroy(&attributes);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(size / page + 1);
  if (::mincore(lowest, size, resident.data()) != 0) return 0;
  const auto pages = std::count_if(resident.begin(), resident.end(),
                                   [](unsigned char flags) { return (flags & 1U) != 0; });
  return static_cast<std::uint64_t>(pages) * page;
}

}  // namespace weir::inline v0::inline server::testkit
