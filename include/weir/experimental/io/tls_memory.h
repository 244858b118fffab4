#pragma once

#include <cstdint>

namespace weir::inline v0::io {

/// How much of its budget OpenSSL uses.
struct TlsMemoryStats {
  std::uint64_t budget_bytes = 0;  // 0: not installed
  std::uint64_t taken_bytes = 0;   // used, or kept by threads for reuse
  std::uint64_t peak_bytes = 0;
  std::uint64_t refused = 0;  // allocations that failed
};

/// Bounds all memory that OpenSSL allocates in this process.
///
/// If the budget is used up, an allocation of OpenSSL fails, and only the handshake or write that
/// needed it fails with it. Each thread keeps large freed buffers for reuse (a record buffer is
/// over 16 KB and is allocated and freed with every request), so that releasing buffers costs
/// almost nothing. An allocation counts with the size that malloc uses for it, including malloc's
/// own word.
///
/// Promises: taken_bytes never exceeds the budget. Thread-safety: OpenSSL's, from any thread.
/// Cost: a few instructions more than malloc; a shared counter is touched once per 64 KB.
///
/// False if OpenSSL has already allocated memory: call it first in main(). It cannot be undone.
[[nodiscard]] bool install_tls_memory(std::uint64_t budget_bytes) noexcept;

[[nodiscard]] TlsMemoryStats tls_memory_stats() noexcept;

/// Changes the budget for allocations from now on. For tests, and for reloads that raise it.
void set_tls_memory_budget(std::uint64_t budget_bytes) noexcept;

}  // namespace weir::inline v0::io
