#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/config/weir_config.h"
#include "weir/server/memory_budget.h"

namespace weir::inline v0 {

/// Everything that a gateway of this configuration can hold at most: the server's holders, then
/// its own.
[[nodiscard]] MemoryBudget gateway_budget(const Config& config);

/// The server configuration that a gateway really runs: it streams, so it needs no arenas.
[[nodiscard]] ServerConfig gateway_server_config(const Config& config);

/// What speaks against starting: the ceiling is above the stated memory_max, or above the limit of
/// the cgroup. Empty when nothing does. `cgroup_limit`: nothing when there is none.
[[nodiscard]] std::string budget_objection(const Config& config,
                                           std::optional<std::uint64_t> cgroup_limit);

/// The limit of the tightest cgroup around this process, if it has one.
[[nodiscard]] std::optional<std::uint64_t> own_cgroup_limit();

}  // namespace weir::inline v0
