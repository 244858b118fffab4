#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/policy/hedge_config.h"

namespace weir::inline v0::grpc {

/// How often a method may be carried out for one call.
enum class MethodKind : std::uint8_t {
  kRead,        // twice at the same time does no harm: hedged, and sent again after a failure
  kIdempotent,  // twice, one after the other: sent again after a failure, never hedged
  kOther,       // once: sent again only if no server can have seen it
};
WEIR_ENUM_NAMES(MethodKind, "read", "idempotent", "other")

/// One line of the table of methods: "/package.Service/Method", or "/package.Service/*" for those
/// of the service that have no line of their own. A method without a line is kOther.
struct HedgedMethod {
  std::string path{};
  MethodKind kind = MethodKind::kRead;
  bool operator==(const HedgedMethod&) const = default;
};

class MethodTable;

/// The same as one table for server and clients: the idempotent methods of the server's table are
/// reads here, all others kOther.
[[nodiscard]] std::vector<HedgedMethod> hedged_methods(const MethodTable& table);

/// One server of the service, and a connection to it.
struct HedgedReplica {
  std::string target{};   // "192.0.2.1:443", "unix:/path": one address, as gRPC writes it
  bool draining = false;  // gets no new calls
  bool operator==(const HedgedReplica&) const = default;
};

/// Where a HedgedChannel sends calls, which of them may be hedged, and its bounds.
///
/// Thread-safety: a value. validate() returns all errors.
struct HedgedChannelConfig {
  static constexpr std::uint32_t kReplicasMax = 64;

  std::vector<HedgedReplica> replicas;
  std::vector<HedgedMethod> methods;
  /// When a read is hedged. The budget holds for hedges and repeated calls together. Losers always
  /// end at once, so `losers_per_finish` is not read.
  policy::HedgeConfig hedge;
  /// Whether the caller's own process is overloaded (AdmissionController::is_overloaded()): then
  /// nothing is hedged. Called under a lock of the channel; must not block or call the channel.
  std::function<bool()> overloaded;

  Duration timeout = std::chrono::seconds(10);  // of a call that has none of its own
  Duration connect_timeout = std::chrono::seconds(1);

  std::uint32_t max_in_flight = 1024;        // calls that are not answered yet
  std::uint32_t in_flight_per_replica = 64;  // attempts at one replica
  std::uint32_t queue_per_replica = 256;     // attempts that wait for one of those places
  std::uint32_t request_bytes_max = 4U << 20U;
  std::uint32_t response_bytes_max = 4U << 20U;
  std::uint32_t threads = 1;  // that handle completions and run callbacks

  [[nodiscard]] ConfigErrors validate() const;
};

/// The errors of a set of replicas alone.
[[nodiscard]] ConfigErrors validate(const std::vector<HedgedReplica>& replicas);

}  // namespace weir::inline v0::grpc
