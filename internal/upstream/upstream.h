#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/bounded_count.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/upstream/upstream_config.h"

#include "io/shared_blocks.h"
#include "upstream/endpoint.h"

namespace weir::inline v0::upstream {

/// The timeouts of an upstream that are in force now.
struct UpstreamTimeouts {
  Duration connect{};
  Duration first_byte{};
  Duration inactivity{};  // a body without progress in either direction
  Duration overall{};     // 0: none
  Duration idle{};

  bool operator==(const UpstreamTimeouts&) const = default;
};

/// The timeouts of a configuration.
[[nodiscard]] UpstreamTimeouts timeouts_of(const UpstreamConfig& config) noexcept;

class UpstreamPool;

/// One upstream, shared by all loops: its endpoints, bounds and timeouts.
///
/// Thread-safety: any member, any thread. Lifetime: outlives every pool made for it.
class Upstream {
 public:
  /// `endpoints` are the resolved addresses of config.endpoints. `reserved` of
  /// config.max_connections, at most a quarter, are kept for critical requests.
  Upstream(UpstreamConfig config, const std::vector<io::SocketName>& endpoints,
           std::uint32_t reserved = 0);
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  /// As at start; the timeouts in force are in timeouts().
  [[nodiscard]] const UpstreamConfig& config() const noexcept { return config_; }
  [[nodiscard]] UpstreamTimeouts timeouts() const noexcept;
  void set_timeouts(const UpstreamTimeouts& timeouts) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return endpoints_.size(); }
  [[nodiscard]] Endpoint& at(std::size_t i) noexcept { return *endpoints_[i]; }
  [[nodiscard]] const Endpoint& at(std::size_t i) const noexcept { return *endpoints_[i]; }

  /// The index of the next available endpoint in turn; if all are ejected, of the one available
  /// first. `turn` is the caller's own counter, so that loops do not share its cache line.
  [[nodiscard]] std::uint32_t choose(std::uint32_t& turn, TimePoint now) const noexcept;

  /// Counts one more connection, if the bound allows it.
  [[nodiscard]] bool try_add_connection(io::Access access) noexcept;
  /// Critical requests hold reserved connections: a connection that becomes idle is closed, not
  /// kept, so that the next critical request finds room.
  [[nodiscard]] bool reserve_in_use() const noexcept {
    return connections() > config_.max_connections - reserved_;
  }
  /// Counts one fewer and wakes the pools that are blocked on a connection.
  void drop_connection() noexcept;
  [[nodiscard]] std::uint32_t connections() const noexcept { return connections_.held(); }
  [[nodiscard]] bool all_ejected(TimePoint now) const noexcept;
  [[nodiscard]] bool all_failing() const noexcept;

  // ---- the bound is shared by all loops; each loop keeps its own idle connections
  void add_pool(UpstreamPool& pool);
  void remove_pool(UpstreamPool& pool) noexcept;
  /// Idle connections on all loops.
  [[nodiscard]] std::uint32_t idle() const noexcept;
  /// Exchanges on all loops that are blocked on one of those.
  [[nodiscard]] std::uint32_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  void add_waiting(std::int32_t change) noexcept;
  /// Asks each other loop to close an idle connection.
  void ask_for_idle(const UpstreamPool& asker) noexcept;

 private:
  UpstreamConfig config_;
  std::atomic<Duration::rep> connect_ns_{0};
  std::atomic<Duration::rep> first_byte_ns_{0};
  std::atomic<Duration::rep> inactivity_ns_{0};
  std::atomic<Duration::rep> overall_ns_{0};
  std::atomic<Duration::rep> idle_ns_{0};
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  const std::uint32_t reserved_;
  BoundedCount<std::uint32_t> connections_;
  std::atomic<std::uint32_t> waiting_{0};
  std::mutex pools_mutex_;
  std::vector<UpstreamPool*> pools_;  // under pools_mutex_
};

}  // namespace weir::inline v0::upstream
