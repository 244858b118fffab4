#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/time.h>

#include "weir/base/time.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::grpc {

/// What one call of a HedgedChannel needs beside its method and request.
///
/// Thread-safety: a value.
struct HedgedCallOptions {
  Duration timeout{};  // zero: HedgedChannelConfig::timeout
  /// Of whoever waits for the answer: ServerContext::raw_deadline(). The earlier one holds.
  gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_REALTIME);
  std::vector<std::pair<std::string, std::string>> metadata{};
  Priority priority = Priority::kNormal;
  /// How often the caller has sent this call, with this one. Above 1 it is neither hedged nor
  /// repeated: the caller does that itself.
  std::uint32_t attempt = 1;
  /// The targets that may answer; empty: all. Those that hold a key, for instance.
  std::vector<std::string> among{};
  bool hedge = true;  // only a MethodKind::kRead ever is
};

/// How a call ended.
///
/// A status that the channel made itself has a message that begins with "weir: " and a word:
/// queue_full, closed, no_replica, deadline, too_large, bad_metadata, cancelled.
struct HedgedAnswer {
  ::grpc::Status status{};
  ::grpc::ByteBuffer response{};          // if the status is OK
  std::string replica{};                  // that answered; empty: none did
  std::uint32_t attempts = 0;             // that reached a replica, hedges included
  bool hedged = false;                    // a hedge was sent
  bool hedge_won = false;                 // and its answer is this one
  std::optional<Duration> retry_after{};  // what a replica that refuses asks for
};

/// Names a call that is under way.
using HedgedCallId = std::uint64_t;

}  // namespace weir::inline v0::grpc
