#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/control/admission_controller.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/io/line_writer.h"

#include "counters.h"
#include "decision_recorder.h"
#include "override_table.h"
#include "rules.h"
#include "upstream/upstream_memory.h"
#include "upstream_room.h"
#include "upstream_table.h"

namespace weir::inline v0::gateway {

/// Bytes that a log buffers before it drops lines.
inline constexpr std::size_t kLogBufferBytes = std::size_t{256} * 1024;

/// The sizes computed from a configuration; the budget uses the same ones.
struct GatewaySizes {
  explicit GatewaySizes(const config::Config& config) noexcept;
  /// The request heads that a configuration needs with this number of scopes.
  [[nodiscard]] static std::uint32_t heads_for(const config::Config& config,
                                               std::uint32_t scopes) noexcept;

  UpstreamRoom room;                // for the upstreams, those that reloads add included
  std::uint32_t proxied = 0;        // per loop: requests in progress
  std::uint32_t reserved = 0;       // of the places, buffers and regions, for critical requests
  std::uint32_t request_heads = 0;  // of all loops
  std::size_t request_head_bytes = 0;
  std::uint32_t tunnels = 0;              // of all loops; each has a piece of a body to its end
  std::uint32_t request_bodies = 0;       // of all loops, those of tunnels included
  std::size_t request_body_bytes = 0;     // a piece of a body
  std::uint32_t request_buffers = 0;      // of all loops
  std::size_t request_buffer_bytes = 0;   // a piece of a body that is received first
  std::uint64_t buffer_request_max = 0;   // longer bodies are forwarded as they come
  std::uint32_t response_regions = 0;     // of all loops
  std::size_t response_region_bytes = 0;  // a response head, or a piece of a body
  std::size_t session_bytes = 0;
  std::uint32_t token_cache = 0;     // per loop: verified tokens
  std::uint32_t slow_body_rate = 0;  // bytes/s: slower uploads are ended when places are needed
};

/// What all loops of a gateway share: admission, the upstreams, their memory, the logs.
///
/// Thread-safety: each member's own.
/// Lifetime: outlives every loop's part.
struct GatewayCore {
  struct Parts {
    EventSink* events = nullptr;
    upstream::UpstreamObserver* observer = nullptr;
    io::LineWriter* access_log = nullptr;
    std::vector<io::TlsContext::Ptr> tls{};  // of each upstream; none: no upstream has TLS
    std::function<void(const std::string&)> on_upstream_gone{};  // UpstreamTable::Setup::on_gone
  };
  /// Upstreams with addresses only have their endpoints at once; sources are started by
  /// Discoveries.
  GatewayCore(const config::Config& configured, std::uint32_t loops, Rng seed, const Parts& parts);
  GatewayCore(const GatewayCore&) = delete;
  GatewayCore& operator=(const GatewayCore&) = delete;

  [[nodiscard]] static upstream::UpstreamMemory::Shape memory_shape(const GatewaySizes& sizes,
                                                                    std::uint32_t loops) noexcept;
  /// Of all loops and of all upstreams that there ever were.
  [[nodiscard]] RequestTotals totals() const;

  /// The configuration in force: live options as changed, the others as at start. From any thread.
  [[nodiscard]] config::Config config_in_force() const {
    const std::scoped_lock lock(config_mutex_);
    return config_;
  }
  void set_config(config::Config now) {
    const std::scoped_lock lock(config_mutex_);
    config_ = std::move(now);
  }
  /// The overrides in force; with_overrides() of both is what the gateway does. From any thread.
  [[nodiscard]] std::vector<Override> overrides() const {
    const std::scoped_lock lock(config_mutex_);
    return overrides_;
  }
  void set_overrides(std::vector<Override> now) {
    const std::scoped_lock lock(config_mutex_);
    overrides_ = std::move(now);
  }

  const GatewaySizes sizes;
  Rng rng;
  AdmissionController controller;
  upstream::UpstreamMemory memory;
  UpstreamTable upstreams;
  std::vector<std::unique_ptr<LoopCounters>> counters;  // by loop
  io::LineWriter* access_log;
  DecisionRecorder recorder;

 private:
  mutable std::mutex config_mutex_;
  config::Config config_;            // under config_mutex_
  std::vector<Override> overrides_;  // under config_mutex_
};

}  // namespace weir::inline v0::gateway
