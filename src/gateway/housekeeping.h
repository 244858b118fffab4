#pragma once

#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/memory_reader.h"
#include "weir/experimental/io/timer.h"

#include "core.h"
#include "discoveries.h"
#include "operator_log.h"
#include "upstream_watch.h"

namespace weir::inline v0::gateway {

/// Periodic work: closing measurement windows, reading memory usage, telling the upstreams their
/// limits, logging which of them cannot be reached.
///
/// Thread-safety: the loop's thread, except the constructor. Lifetime: stop() before destruction.
class Housekeeping {
 public:
  Housekeeping(GatewayCore& core, OperatorLog& log, Discoveries& discoveries, io::Loop& loop);
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  void start();
  void stop();

 private:
  void expire(TimePoint now);
  void read_memory(TimePoint now);

  GatewayCore& core_;
  UpstreamWatch watch_;
  Discoveries& discoveries_;
  io::Loop& loop_;
  const Duration memory_interval_;
  io::MemoryReader reader_;
  io::Timer expire_;
  io::Timer memory_;
};

}  // namespace weir::inline v0::gateway
