#pragma once

#include <cstdint>

namespace weir::inline v0::io {

/// What OpenSSL holds of its budget.
struct TlsMemoryStats {
  std::uint64_t budget_bytes = 0;  // 0: not installed
  std::uint64_t taken_bytes = 0;   // used, or kept by threads for their next use
  std::uint64_t peak_bytes = 0;
  std::uint64_t refused = 0;  // allocations that got nothing
};

/// Puts a bound around everything OpenSSL allocates in this process.
///
/// Past the budget OpenSSL is told that there is no memory, and the handshake or write that asked
/// for it fails; nothing else does. Large pieces (a record buffer is over 16 KB, taken and given
/// back with every request) are kept by each thread for its next use, so that releasing buffers
/// costs next to nothing. A piece counts as what malloc makes of it, its own word included.
///
/// Promises: taken_bytes never exceeds the budget. Thread-safety: OpenSSL's, from any thread.
/// Cost: a few instructions beside malloc's; a shared counter is touched once per 64 KB.
///
/// False if OpenSSL has allocated already: call it first in main(). Cannot be undone.
[[nodiscard]] bool install_tls_memory(std::uint64_t budget_bytes) noexcept;

[[nodiscard]] TlsMemoryStats tls_memory_stats() noexcept;

/// Moves the budget; at once for what is allocated from now on. For tests, and for reloads that
/// raise it.
void set_tls_memory_budget(std::uint64_t budget_bytes) noexcept;

}  // namespace weir::inline v0::io
