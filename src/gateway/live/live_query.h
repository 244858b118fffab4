#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

namespace weir::inline v0::gateway {

enum class LiveView : std::uint8_t { kNow, kRefusals, kLimit, kReplicas, kMemory, kConfig, kNone };
WEIR_ENUM_NAMES(LiveView, "now", "refusals", "limit", "replicas", "memory", "config", "none")

enum class ReplicaSort : std::uint8_t { kWorst, kName, kP99, kInFlight };
WEIR_ENUM_NAMES(ReplicaSort, "worst", "name", "p99", "in_flight")

/// What a watcher of /live wants to see.
struct LiveQuery {
  static constexpr std::size_t kRowsMax = 100;
  static constexpr std::size_t kFilterMax = 100;

  LiveView view = LiveView::kNow;
  std::string upstream{};  // empty: the worst one
  ReplicaSort sort = ReplicaSort::kWorst;
  std::string filter{};
  bool bad = false;
  std::size_t from = 0;
  std::size_t rows = 50;
  std::optional<std::uint64_t> last_id{};  // the second that the client has seen
};

/// Reads the parameters; the error names the one that cannot be used and what it may be.
[[nodiscard]] Result<LiveQuery, std::string> read_live_query(std::string_view query,
                                                             std::string_view last_event_id);

}  // namespace weir::inline v0::gateway
