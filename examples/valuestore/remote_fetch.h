#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include <grpcpp/support/status.h>
#include <grpcpp/support/time.h>

#include "weir/base/result.h"
#include "weir/experimental/grpc/hedged_channel.h"

#include "examples/valuestore/valuestore.grpc.pb.h"
#include "node_options.h"
#include "value_key.h"

namespace valuestore {

/// Who waits for a read: until when, and whether still.
struct Caller {
  gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_REALTIME);
  std::function<bool()> is_gone = [] { return false; };
};

/// Waits for a result as long as the caller does. False: it is gone.
template <class T>
[[nodiscard]] bool wait_for(const std::future<T>& result, const Caller& caller) {
  while (result.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (caller.is_gone()) return false;
  }
  return true;
}

/// Reads of values from their owners, through Weir's hedging channel: an owner that is late is
/// overtaken by the other one. Only reads go this way; a write is never sent twice.
///
/// Thread-safety: any thread. fetch() blocks, for a second at most, and not beyond the caller's
/// deadline; it ends when the caller is gone.
class RemoteFetch {
 public:
  /// `overloaded`: this process sheds; then it hedges nothing. Aborts on options that cannot be.
  RemoteFetch(const NodeOptions& options, std::function<bool()> overloaded);

  /// From one of these nodes, the first being preferred by nothing but its speed.
  grpc::Status fetch(const std::vector<std::size_t>& nodes, const ValueKey& key,
                     const Caller& caller, StoredRecord& record);
  [[nodiscard]] weir::grpc::HedgedStats stats() const { return channel_->stats(); }
  void stop() { channel_->close(std::chrono::seconds(1)); }

 private:
  const NodeOptions& options_;
  std::unique_ptr<weir::grpc::HedgedChannel> channel_;
};

}  // namespace valuestore
