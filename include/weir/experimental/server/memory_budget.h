#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weir/experimental/server/server_config.h"

namespace weir::inline v0::inline server {

/// One holder of memory and the most it can hold.
struct MemoryAddend {
  std::string_view holder;
  std::uint64_t count = 0;
  std::uint64_t bytes_each = 0;
  std::string_view note;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return count * bytes_each; }
};

/// The most memory that a server of this configuration can hold, by holder. Kernel socket memory is
/// separate, because it is not charged to the process.
struct MemoryBudget {
  std::vector<MemoryAddend> addends;
  std::vector<MemoryAddend> kernel;

  [[nodiscard]] std::uint64_t total_bytes() const noexcept;
  [[nodiscard]] std::uint64_t kernel_bytes() const noexcept;
};

[[nodiscard]] MemoryBudget memory_budget(const ServerConfig& config);

/// The holder of what a process needs once, for any number of servers: code, libraries, allocator.
inline constexpr std::string_view kFixedHolder = "fixed";

/// The most memory that the TLS library may hold, as configured or as computed; 0 without TLS. A
/// program enforces it with install_tls_memory() (tls_memory.h). Without that it is only an
/// estimate from the measured memory per connection and per handshake.
[[nodiscard]] std::uint64_t tls_memory_bytes(const ServerConfig& config);

/// memory_budget(config).total_bytes(): the ceiling.
[[nodiscard]] std::uint64_t worst_case_bytes(const ServerConfig& config);

/// The six classic addends (read buffers, write slab, arenas, pending queue, connection handles,
/// backpressure list) with round sizes per place, for capacity planning.
[[nodiscard]] MemoryBudget paper_budget(const ServerConfig& config);

}  // namespace weir::inline v0::inline server
