#pragma once

#include <optional>

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "weir/base/time.h"

namespace weir::inline v0::grpc {

/// A time of ours as gRPC's alarms take it.
[[nodiscard]] inline gpr_timespec alarm_time(TimePoint when, TimePoint now) noexcept {
  const Duration left = when > now ? when - now : Duration::zero();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

/// Runs `what(whose)` soon on a thread of gRPC, never before this returns. May be called under a
/// lock. `alarm` must not be in use and must live until `what` has begun; it may be destroyed by
/// it.
template <class T, void (T::*what)()>
void run_soon(std::optional<::grpc::Alarm>& alarm, T& whose) {
  // The alarm keeps its function until it is destroyed: the pointer is all that it may own.
  alarm.emplace().Set(gpr_now(GPR_CLOCK_MONOTONIC), [&whose](bool) { (whose.*what)(); });
}

}  // namespace weir::inline v0::grpc
