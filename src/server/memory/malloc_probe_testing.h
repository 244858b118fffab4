#pragma once

#include <cstddef>

namespace weir::inline v0::server {

/// How often this program has called malloc, calloc, realloc or aligned_alloc, from any library.
/// Zero, always, under a sanitizer, whose own allocator cannot be replaced.
[[nodiscard]] std::size_t mallocs_so_far() noexcept;
[[nodiscard]] bool mallocs_are_counted() noexcept;

}  // namespace weir::inline v0::server
