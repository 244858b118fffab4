#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/io/memory_reader.h"
#include "weir/experimental/server/memory_budget.h"

namespace weir::inline v0::gateway {

/// The most memory that a gateway of this configuration can hold: the server's holders, then its
/// own.
[[nodiscard]] MemoryBudget gateway_budget(const config::Config& config);

/// The most memory that OpenSSL may use: for clients, and for the endpoints of upstreams with TLS;
/// 0 without TLS. The program enforces it with set_tls_memory_budget().
[[nodiscard]] std::uint64_t gateway_tls_bytes(const config::Config& config);

/// The most file descriptors it can have open: clients, upstreams, admin, and a few others.
[[nodiscard]] std::uint64_t gateway_descriptors(const config::Config& config);

/// With fewer file descriptors it cannot start.
[[nodiscard]] std::uint64_t gateway_descriptors_min(const config::Config& config);

/// The server configuration that a gateway runs with: it streams bodies, so it needs no arenas.
[[nodiscard]] ServerConfig gateway_server_config(const config::Config& config);

/// Why the gateway must not start: the ceiling is above memory_max, or above the limit of the
/// cgroup. Empty if it may start. `cgroup_limit`: nullopt if there is none.
[[nodiscard]] std::string budget_objection(const config::Config& config,
                                           std::optional<std::uint64_t> cgroup_limit);

/// The smallest memory limit of this process's cgroup and its ancestors, if one has a limit.
[[nodiscard]] std::optional<std::uint64_t> own_cgroup_limit(const io::MemorySource& source = {});

/// One line per addend that is not 0: bytes, holder, count × bytes each, the options that set them.
[[nodiscard]] std::string to_table(const std::vector<MemoryAddend>& addends);

}  // namespace weir::inline v0::gateway
