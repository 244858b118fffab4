#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/config/upstream_config.h"
#include "weir/io/address.h"

#include "upstream/endpoint.h"

namespace weir::inline v0 {

/// How long we wait for an upstream, as it stands now.
struct Patience {
  Duration connect{};
  Duration first_byte{};
  Duration overall{};
  Duration idle{};
};

/// One upstream as all loops share it: its endpoints, its bounds, its patience.
///
/// Thread-safety: any member, any thread. Lifetime: outlives every pool made for it.
class Upstream {
 public:
  /// `endpoints` are the resolved addresses of config.endpoints.
  Upstream(UpstreamConfig config, const std::vector<io::SocketName>& endpoints);
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  /// As it was at start; what may change since is in patience().
  [[nodiscard]] const UpstreamConfig& config() const noexcept { return config_; }
  [[nodiscard]] Patience patience() const noexcept;
  void set_patience(const Patience& patience) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return endpoints_.size(); }
  [[nodiscard]] Endpoint& at(std::size_t i) noexcept { return *endpoints_[i]; }
  [[nodiscard]] const Endpoint& at(std::size_t i) const noexcept { return *endpoints_[i]; }

  /// The index of the next endpoint in turn that is open; if none is, of the one that opens first.
  /// `turn` is the caller's own counter, so that loops do not share a line for it.
  [[nodiscard]] std::uint32_t choose(std::uint32_t& turn, TimePoint now) const noexcept;

  /// One more connection, if the bound allows it.
  [[nodiscard]] bool try_add_connection() noexcept;
  void drop_connection() noexcept { connections_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t connections() const noexcept {
    return connections_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool all_closed(TimePoint now) const noexcept;

 private:
  UpstreamConfig config_;
  std::atomic<Duration::rep> connect_ns_;
  std::atomic<Duration::rep> first_byte_ns_;
  std::atomic<Duration::rep> overall_ns_;
  std::atomic<Duration::rep> idle_ns_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<std::uint32_t> connections_{0};
};

}  // namespace weir::inline v0
