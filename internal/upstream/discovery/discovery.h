#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/upstream/source_config.h"

#include "io/dns_resolver.h"
#include "policy/discovery_rules.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

class Upstream;

/// The sources of one upstream: keeps the upstream's set equal to what they list together.
///
/// Several sources may list the same address; the first of them decides its attributes. What the
/// operator wrote behind a source ("zone=b drain=true") holds for all of its endpoints.
///
/// Promises: an error of a source removes nothing. While a source has not answered for the first
/// time, the set stays as it is, for at most `patience`; so a changed list of sources never empties
/// a set that is in use. Sources that are in the old and the new list go on undisturbed.
/// Thread-safety: the loop's thread. Cost: not for requests; allocates.
/// Lifetime: stop() on the loop's thread before destruction.
class Discovery final : private EndpointSink {
 public:
  struct Setup {
    io::Loop& loop;
    Upstream& upstream;
    /// Called when the first name must be resolved.
    std::function<io::DnsResolver&()> resolver;
    /// A source failed (or, with an empty text, works again).
    std::function<void(const std::string& source, const std::string& error)> on_error;
    Rng rng;
    policy::DiscoveryTimes times{};
    Duration patience = std::chrono::seconds(3);
  };
  explicit Discovery(Setup setup);
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;
  ~Discovery();

  /// Starts, or changes, the list of sources.
  void set_sources(const std::vector<SourceSpec>& specs);
  void stop() noexcept;

  /// Every source has answered or failed once, or `patience` is over.
  [[nodiscard]] bool settled() const noexcept;
  /// Asks every source to look again soon.
  void refresh() noexcept;
  [[nodiscard]] std::vector<SourceStatus> status() const;

 private:
  struct Entry {
    SourceSpec spec;
    std::unique_ptr<EndpointSource> source;  // nullptr: an address
    std::vector<DiscoveredEndpoint> list;
    bool started = false;
    bool known = false;   // `list` is an answer
    bool failed = false;  // the last lookup
  };

  void on_endpoints(const EndpointSource& from, std::vector<DiscoveredEndpoint> all) override;
  void on_source_error(const EndpointSource& from, const std::string& text) override;
  void on_patience(TimePoint now);
  [[nodiscard]] Entry make_entry(const SourceSpec& spec);
  [[nodiscard]] Entry& entry_of(const EndpointSource& source);
  void publish();

  const Setup setup_;
  Rng rng_;
  std::vector<Entry> entries_;
  std::vector<DiscoveredEndpoint> last_;
  bool published_ = false;
  io::Timer patience_;
};

}  // namespace weir::inline v0::upstream
