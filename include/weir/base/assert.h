#pragma once

/// WEIR_ASSERT(condition): a bug inside Weir ends the process, also in release builds.
///
/// Promises: the condition is evaluated exactly once. If it is false, file, line and text are
/// printed to stderr and the process aborts. Do not use it on input: bad input is a value
/// (result.h).
/// Cost: one predictable branch.

namespace weir::inline v0 {

[[noreturn]] void assert_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace weir::inline v0

#define WEIR_ASSERT(condition)                         \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::weir::assert_failed(#condition, __FILE__, __LINE__))

#define WEIR_UNREACHABLE() ::weir::assert_failed("unreachable", __FILE__, __LINE__)
