#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <grpcpp/support/status.h>

#include "weir/base/result.h"
#include "weir/experimental/grpc/hedged_channel.h"

#include "examples/valuestore/valuestore.grpc.pb.h"
#include "node_options.h"
#include "value_key.h"

namespace valuestore {

/// Reads of values from their owners, through Weir's hedging channel: an owner that is late is
/// overtaken by the other one. Only reads go this way; a write is never sent twice.
///
/// Thread-safety: any thread. fetch() blocks, for a second at most.
class RemoteFetch {
 public:
  /// `overloaded`: this process sheds; then it hedges nothing. Aborts on options that cannot be.
  RemoteFetch(const NodeOptions& options, std::function<bool()> overloaded);

  /// From one of these nodes, the first being preferred by nothing but its speed.
  grpc::Status fetch(const std::vector<std::size_t>& nodes, const ValueKey& key,
                     StoredRecord& record);
  [[nodiscard]] weir::grpc::HedgedStats stats() const { return channel_->stats(); }
  void stop() { channel_->close(std::chrono::seconds(1)); }

 private:
  const NodeOptions& options_;
  std::unique_ptr<weir::grpc::HedgedChannel> channel_;
};

}  // namespace valuestore
