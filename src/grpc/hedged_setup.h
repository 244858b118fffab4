#pragma once

#include <string>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/time.h>

#include "weir/base/time.h"
#include "weir/control/outgoing_config.h"
#include "weir/experimental/grpc/hedged_call.h"
#include "weir/experimental/grpc/hedged_channel_config.h"

namespace weir::inline v0::grpc {

/// A configuration in the terms of gRPC and of queues, and what a call may not be.

/// A connection per replica, no retries of gRPC itself, reconnects after 0.1 to 2 s, and the sizes
/// of messages. `given` are the user's.
[[nodiscard]] ::grpc::ChannelArguments hedge_arguments(const HedgedChannelConfig& config,
                                                       ::grpc::ChannelArguments given);
/// The queue of each replica: a full one refuses, so that nothing that was accepted is dropped.
[[nodiscard]] control::OutgoingConfig hedge_queues(const HedgedChannelConfig& config);

/// OK, or why such a call cannot be sent.
[[nodiscard]] ::grpc::Status objection_to(const std::string& method,
                                          const ::grpc::ByteBuffer& request,
                                          const HedgedCallOptions& options,
                                          const HedgedChannelConfig& config);

/// The moment after this time, as gRPC wants it.
[[nodiscard]] gpr_timespec wire_time_in(Duration time);
/// Until the deadline of whoever waits for the answer; a day if there is none.
[[nodiscard]] Duration time_left(const HedgedCallOptions& options);

}  // namespace weir::inline v0::grpc
