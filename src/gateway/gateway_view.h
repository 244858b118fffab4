#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/server/memory_budget.h"
#include "weir/experimental/server/stats.h"

#include "admin_request.h"
#include "core.h"
#include "operator_log.h"

namespace weir::inline v0::gateway {

/// A running gateway as the admin pages see it, from another thread.
struct GatewayView {
  GatewayView(GatewayCore& gateway, OperatorLog& operators) : core(gateway), log(operators) {}

  [[nodiscard]] config::Config config() const { return core.config_in_force(); }
  [[nodiscard]] AdminConfig admin_config() const { return core.config_in_force().admin; }

  GatewayCore& core;
  OperatorLog& log;
  std::function<ServerStats()> server_stats;
  /// The sources of one upstream.
  std::function<std::vector<upstream::SourceStatus>(const ServedUpstream&)> sources;
  AdminActions* actions = nullptr;  // nullptr: nothing can be changed
  MemoryBudget budget;
  std::int64_t started_unix_seconds = 0;
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> reloads_ok{0};
  std::atomic<std::uint64_t> reloads_refused{0};
};

struct NamedPool {
  std::string_view name;
  PoolStats stats;
};
/// All bounded pools of the process, with their names in metrics and /pools.
[[nodiscard]] std::vector<NamedPool> pools_of(const GatewayView& view, const ServerStats& server);

}  // namespace weir::inline v0::gateway
