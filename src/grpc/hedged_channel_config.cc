#include "weir/experimental/grpc/hedged_channel_config.h"

#include <algorithm>
#include <set>

#include "weir/base/config_check.h"

namespace weir::inline v0::grpc {
namespace {

constexpr std::uint32_t kCallsMax = 100'000;
constexpr std::uint32_t kMessageMax = 1U << 30U;
constexpr std::size_t kTextMax = 255;

/// "/package.Service/Method" or "/package.Service/*"
bool is_method_path(const std::string& path) {
  const std::size_t second = path.find('/', 1);
  const bool visible = std::all_of(path.begin(), path.end(), [](char c) { return c > 0x20; });
  return visible && path.size() <= kTextMax && path.front() == '/' && second != std::string::npos &&
         second > 1 && second + 1 < path.size() && path.find('/', second + 1) == std::string::npos;
}

void check_methods(ConfigErrors& errors, const std::vector<HedgedMethod>& methods) {
  std::set<std::string> seen;
  for (const HedgedMethod& method : methods) {
    if (method.path.empty() || !is_method_path(method.path)) {
      add_error(errors, "methods", method.path, "/package.Service/Method or /package.Service/*");
    } else if (!seen.insert(method.path).second) {
      add_error(errors, "methods", method.path, "each method once");
    }
  }
}

}  // namespace

ConfigErrors validate(const std::vector<HedgedReplica>& replicas) {
  ConfigErrors errors;
  check_range(errors, "replicas", std::uint64_t{replicas.size()}, std::uint64_t{1},
              std::uint64_t{HedgedChannelConfig::kReplicasMax});
  std::set<std::string> seen;
  for (const HedgedReplica& replica : replicas) {
    if (replica.target.empty() || replica.target.size() > kTextMax) {
      add_error(errors, "replicas", replica.target, "HOST:PORT or unix:PATH, 1 to 255 characters");
    } else if (!seen.insert(replica.target).second) {
      add_error(errors, "replicas", replica.target, "each target once");
    }
  }
  return errors;
}

ConfigErrors HedgedChannelConfig::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  ConfigErrors errors = grpc::validate(replicas);
  check_methods(errors, methods);
  append_errors(errors, "hedge.", hedge.validate());
  check_range(errors, "timeout", timeout, Duration(milliseconds(1)), Duration(hours(24)));
  check_range(errors, "connect_timeout", connect_timeout, Duration(milliseconds(100)),
              Duration(std::chrono::seconds(60)));
  check_range(errors, "max_in_flight", max_in_flight, 1U, kCallsMax);
  check_range(errors, "in_flight_per_replica", in_flight_per_replica, 1U, kCallsMax);
  check_range(errors, "queue_per_replica", queue_per_replica, 1U, kCallsMax);
  check_range(errors, "request_bytes_max", request_bytes_max, 1U, kMessageMax);
  check_range(errors, "response_bytes_max", response_bytes_max, 1U, kMessageMax);
  check_range(errors, "threads", threads, 1U, 16U);
  return errors;
}

}  // namespace weir::inline v0::grpc
