#pragma once

#include <memory>

#include "weir/base/time.h"

namespace weir::inline v0::grpc {

/// Keeps the threads of gRPC's callback API awake: without a completion for a second, each of them
/// sleeps for 100 ms at a time, and a call that arrives then waits as long. So every `period` a
/// call is made on a channel that goes nowhere; it fails at once, and its completion is what
/// counts.
///
/// One for the process: gRPC's threads are for all its servers and clients.
/// Cost: about 30 µs of CPU per period. Lifetime: beats as long as somebody holds it.
class Heartbeat {
 public:
  virtual ~Heartbeat() = default;
  /// The one of the process; it beats at least every `period`.
  [[nodiscard]] static std::shared_ptr<Heartbeat> share(Duration period);
  /// Whether somebody holds it.
  [[nodiscard]] static bool is_running() noexcept;
  /// Since the process started.
  [[nodiscard]] static std::uint64_t beats() noexcept;
};

}  // namespace weir::inline v0::grpc
