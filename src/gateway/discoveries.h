#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/io/loop.h"

#include "endpoint_log.h"
#include "io/dns_resolver.h"
#include "served_upstream.h"
#include "upstream/discovery/discovery.h"

namespace weir::inline v0::gateway {

/// The sources of all upstreams, and the DNS resolver that they share.
///
/// Thread-safety: the loop's thread, except the constructor. Lifetime: stop() on the loop's thread
/// before destruction.
class Discoveries {
 public:
  Discoveries(const io::DnsConfig& dns, EndpointLog& log, io::Loop& loop, Rng rng);
  Discoveries(const Discoveries&) = delete;
  Discoveries& operator=(const Discoveries&) = delete;

  /// Starts the sources of upstreams that have none yet.
  void add(const UpstreamSet& upstreams, const config::Config& config);
  /// Changes the sources to those of a configuration, and stops those of all other upstreams.
  void set(const UpstreamSet& upstreams, const config::Config& config);
  /// Stops the sources of all other upstreams.
  void keep(const UpstreamSet& upstreams);
  void stop() noexcept;
  /// Every source has answered, or has had its time to.
  [[nodiscard]] bool settled(const UpstreamSet& upstreams) const noexcept;
  /// Asks the sources of an upstream without any available endpoint to look again.
  void look() noexcept;
  [[nodiscard]] std::vector<upstream::SourceStatus> status(const ServedUpstream& upstream) const;

 private:
  struct One {
    std::shared_ptr<ServedUpstream> upstream;
    std::unique_ptr<upstream::Discovery> discovery;
  };
  [[nodiscard]] io::DnsResolver& resolver();
  [[nodiscard]] upstream::Discovery* find(const ServedUpstream& upstream) const noexcept;

  EndpointLog& log_;
  io::Loop& loop_;
  Rng rng_;
  const io::DnsConfig dns_;
  std::unique_ptr<io::DnsResolver> resolver_;
  std::vector<One> all_;
};

}  // namespace weir::inline v0::gateway
