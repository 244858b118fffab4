#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/io/loop.h"

#include "core.h"
#include "endpoint_log.h"
#include "io/dns_resolver.h"
#include "upstream/discovery/discovery.h"

namespace weir::inline v0::gateway {

/// The sources of all upstreams, and the DNS resolver that they share.
///
/// Thread-safety: the loop's thread, except the constructor. Lifetime: stop() on the loop's thread
/// before destruction.
class Discoveries {
 public:
  Discoveries(GatewayCore& core, EndpointLog& log, io::Loop& loop, Rng rng);
  Discoveries(const Discoveries&) = delete;
  Discoveries& operator=(const Discoveries&) = delete;

  /// Starts them, or changes them to those of another configuration with the same upstreams.
  void set(const config::Config& config);
  void stop() noexcept;
  /// Every source has answered, or has had its time to.
  [[nodiscard]] bool settled() const noexcept;
  /// Asks the sources of an upstream without any available endpoint to look again.
  void look() noexcept;
  [[nodiscard]] std::vector<upstream::SourceStatus> status(std::size_t upstream) const;

 private:
  [[nodiscard]] io::DnsResolver& resolver();

  GatewayCore& core_;
  io::Loop& loop_;
  const io::DnsConfig dns_;
  std::unique_ptr<io::DnsResolver> resolver_;
  std::vector<std::unique_ptr<upstream::Discovery>> all_;  // as core.upstreams
};

}  // namespace weir::inline v0::gateway
