#pragma once

#include <cstddef>

namespace weir::inline v0 {

/// How often this program has called operator new. For tests that hold code to "nothing after
/// start": list src/base/allocation_probe.cc among the test sources and compare two readings.
/// Aligned new is not counted, and nothing is under the thread sanitizer, whose own operator new
/// cannot be replaced: there, allocations_are_counted() is false and the reading stays 0.
/// Thread-safety: any thread; the count is of all threads.
[[nodiscard]] std::size_t allocations_so_far() noexcept;
[[nodiscard]] bool allocations_are_counted() noexcept;

}  // namespace weir::inline v0
