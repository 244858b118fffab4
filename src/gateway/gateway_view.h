#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/server/memory_budget.h"
#include "weir/experimental/server/stats.h"

#include "admin_request.h"
#include "core.h"
#include "operator_log.h"
#include "recorder_files.h"

namespace weir::inline v0::gateway {

class LiveSampler;

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
  const RecorderFiles* recorder_files = nullptr;  // none: in memory only
  AdminActions* actions = nullptr;                // nullptr: nothing can be changed
  LiveSampler* live = nullptr;                    // nullptr: there is no admin endpoint
  std::string host_name;                          // of the machine
  config::Config config_at_start;
  MemoryBudget budget;
  std::int64_t started_unix_seconds = 0;
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> reloads_ok{0};
  std::atomic<std::uint64_t> reloads_refused{0};

  /// Keys that the last reload left to a restart.
  [[nodiscard]] std::vector<std::string> waiting_for_restart() const {
    const std::scoped_lock lock(mutex_);
    return waiting_for_restart_;
  }
  void set_waiting_for_restart(std::vector<std::string> keys) {
    const std::scoped_lock lock(mutex_);
    waiting_for_restart_ = std::move(keys);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> waiting_for_restart_;  // under mutex_
};

struct NamedPool {
  std::string_view name;
  PoolStats stats;
};
/// All bounded pools of the process, with their names in metrics and /pools.
[[nodiscard]] std::vector<NamedPool> pools_of(const GatewayView& view, const ServerStats& server);

}  // namespace weir::inline v0::gateway
