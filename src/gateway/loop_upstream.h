#pragma once

#include <cstdint>
#include <memory>

#include "weir/base/rng.h"
#include "weir/experimental/io/loop.h"

#include "counters.h"
#include "served_upstream.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream_memory.h"

namespace weir::inline v0::gateway {

/// One loop's part of an upstream: its dispatcher, its counters, and how many requests it has.
///
/// An upstream that left the configuration is left behind step by step: each loop reports when its
/// last request has finished; after the last loop's, every loop stops its dispatcher. Until then
/// health checks go on, and requests may connect and be sent again as before.
///
/// Thread-safety: its loop's thread. Lifetime: gone() before destruction.
class LoopUpstream {
 public:
  struct Setup {
    io::Loop& loop;
    std::uint32_t loop_index = 0;
    upstream::UpstreamMemory& memory;
    Rng rng;
  };
  LoopUpstream(std::shared_ptr<ServedUpstream> upstream, const Setup& setup)
      : served(std::move(upstream)),
        counters(*served->place.counters[setup.loop_index]),
        dispatcher({.loop = setup.loop,
                    .loop_index = setup.loop_index,
                    .upstream = served->upstream,
                    .memory = setup.memory,
                    .response_limits = served->response_limits,
                    .rng = setup.rng}) {}
  LoopUpstream(const LoopUpstream&) = delete;
  LoopUpstream& operator=(const LoopUpstream&) = delete;

  /// No request will be added: the next step towards gone(). Not from a request's own call stack.
  void leave_further() noexcept {
    if (requests == 0 && !reported_) {
      reported_ = true;
      served->busy_loops.fetch_sub(1);
    }
    if (served->busy_loops.load() == 0) stop();
  }
  /// Closes its connections, those in use after their request.
  void stop() noexcept {
    if (!stopping_) dispatcher.stop();
    stopping_ = true;
  }
  [[nodiscard]] bool gone() const noexcept {
    return requests == 0 && stopping_ && dispatcher.stopped();
  }

  const std::shared_ptr<ServedUpstream> served;
  UpstreamCounters& counters;
  upstream::Dispatcher dispatcher;
  std::uint32_t requests = 0;  // in progress

 private:
  bool reported_ = false;
  bool stopping_ = false;
};

}  // namespace weir::inline v0::gateway
