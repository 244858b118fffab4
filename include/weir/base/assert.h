#pragma once

/// WEIR_ASSERT(condition): a broken promise inside Weir ends the process, in release too.
///
/// Promises: the condition is evaluated exactly once; a false one prints file, line and text to
/// stderr and aborts. Never use it on input: bad input is a value (see result.h).
/// Cost: one predictable branch.

namespace weir::inline v0 {

[[noreturn]] void assert_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace weir::inline v0

#define WEIR_ASSERT(condition)                         \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::weir::assert_failed(#condition, __FILE__, __LINE__))

#define WEIR_UNREACHABLE() ::weir::assert_failed("unreachable", __FILE__, __LINE__)
