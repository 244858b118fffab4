#pragma once

#include <cstddef>

namespace weir::inline v0::inline server {

/// How often this program has called malloc, calloc, realloc or aligned_alloc, from any library.
/// Always 0 under a sanitizer, whose allocator cannot be replaced.
[[nodiscard]] std::size_t mallocs_so_far() noexcept;
[[nodiscard]] bool mallocs_are_counted() noexcept;

}  // namespace weir::inline v0::inline server
