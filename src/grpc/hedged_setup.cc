#include "hedged_setup.h"

#include <algorithm>

#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

namespace weir::inline v0::grpc {
namespace {

constexpr int kReconnectFirstMs = 100;
constexpr int kReconnectMaxMs = 2000;
constexpr Duration kLongest = std::chrono::hours(24);

bool is_key(const std::string& key) {
  const grpc_slice slice = grpc_slice_from_static_buffer(key.data(), key.size());
  const bool reserved = key.starts_with("grpc-") || key.starts_with("x-weir-attempt") ||
                        key.starts_with("x-weir-priority");
  return grpc_header_key_is_legal(slice) != 0 && !reserved;
}

bool is_value(const std::string& key, const std::string& value) {
  if (key.ends_with("-bin")) return true;
  const grpc_slice slice = grpc_slice_from_static_buffer(value.data(), value.size());
  return grpc_header_nonbin_value_is_legal(slice) != 0;
}

}  // namespace

::grpc::ChannelArguments hedge_arguments(const HedgedChannelConfig& config,
                                         ::grpc::ChannelArguments given) {
  using std::chrono::milliseconds;
  given.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  given.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  given.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  given.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  // How long one attempt to connect may take, whatever its name says.
  given.SetInt(
      GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
      static_cast<int>(std::chrono::duration_cast<milliseconds>(config.connect_timeout).count()));
  given.SetMaxSendMessageSize(static_cast<int>(config.request_bytes_max));
  given.SetMaxReceiveMessageSize(static_cast<int>(config.response_bytes_max));
  return given;
}

control::OutgoingConfig hedge_queues(const HedgedChannelConfig& config) {
  control::OutgoingConfig queues;
  queues.queue_size = config.queue_per_replica;
  queues.overflow_size = 0;
  queues.critical_size = config.queue_per_replica;
  queues.in_flight_max = config.in_flight_per_replica;
  // Items are the bound, not bytes.
  const std::uint64_t items =
      std::uint64_t{config.queue_per_replica} + config.in_flight_per_replica;
  queues.destination_bytes_max = ByteSize(items * config.request_bytes_max);
  queues.total_bytes_max =
      ByteSize(queues.destination_bytes_max.bytes() * HedgedChannelConfig::kReplicasMax);
  return queues;
}

::grpc::Status objection_to(const std::string& method, const ::grpc::ByteBuffer& request,
                            const HedgedCallOptions& options, const HedgedChannelConfig& config) {
  if (!method.starts_with('/')) {
    return {::grpc::StatusCode::INVALID_ARGUMENT, "weir: a method is /package.Service/Method"};
  }
  if (!request.Valid()) {
    return {::grpc::StatusCode::INVALID_ARGUMENT, "weir: the request has no message"};
  }
  if (request.Length() > config.request_bytes_max) {
    return {::grpc::StatusCode::RESOURCE_EXHAUSTED,
            "weir: too_large: the request has " + std::to_string(request.Length()) +
                " bytes, request_bytes_max is " + std::to_string(config.request_bytes_max)};
  }
  for (const auto& [key, value] : options.metadata) {
    if (is_key(key) && is_value(key, value)) continue;
    return {::grpc::StatusCode::INVALID_ARGUMENT,
            "weir: bad_metadata: \"" + key + "\" or its value cannot be sent"};
  }
  return ::grpc::Status::OK;
}

gpr_timespec wire_time_in(Duration time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

Duration time_left(const HedgedCallOptions& options) {
  const gpr_clock_type clock = options.deadline.clock_type;
  if (gpr_time_cmp(options.deadline, gpr_inf_future(clock)) == 0) return kLongest;
  const gpr_timespec left = gpr_time_sub(options.deadline, gpr_now(clock));
  const Duration exact = std::chrono::seconds(std::clamp<std::int64_t>(left.tv_sec, -1, 86'400)) +
                         std::chrono::nanoseconds(left.tv_nsec);
  return std::clamp(exact, Duration(0), kLongest);
}

}  // namespace weir::inline v0::grpc
