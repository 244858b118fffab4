#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/experimental/config/weir_config.h"

#include "counters.h"
#include "io/tls_context.h"
#include "served_upstream.h"
#include "upstream_room.h"

namespace weir::inline v0::gateway {

/// The upstreams in force, and those that left and whose requests are finishing.
///
/// A reload makes the next set, in which upstreams that stay are the same objects, and puts it in
/// force; each loop then takes it with the routes that belong to it. An upstream that is not in it
/// is destroyed when nobody uses it any more: its scope may then be used by another one, and what
/// it counted stays in the totals.
///
/// Promises: never more upstreams, connections and sessions than laid out at start, if objection()
/// was asked. Thread-safety: all members, any thread; made_for() and put_in_force(): the thread
/// that reloads. Cost: a lock; not for requests. Lifetime: outlives every set, and the controller
/// it.
class UpstreamTable {
 public:
  struct Setup {
    AdmissionController& controller;
    std::uint32_t loops = 1;
    std::uint32_t reserved = 0;  // connections of each, for critical requests
    Rng rng{0};
    upstream::UpstreamObserver* observer = nullptr;
    UpstreamRoom room;
    /// The last request of an upstream that left has finished. On any thread.
    std::function<void(const std::string& name)> on_gone{};
  };
  explicit UpstreamTable(Setup setup);
  UpstreamTable(const UpstreamTable&) = delete;
  UpstreamTable& operator=(const UpstreamTable&) = delete;
  ~UpstreamTable();

  [[nodiscard]] std::shared_ptr<const UpstreamSet> in_force() const;
  [[nodiscard]] const UpstreamRoom& room() const noexcept { return setup_.room; }

  struct Change {
    const config::Config& before;  // in force
    const config::Config& after;
  };
  /// Why there is no room for the upstreams of a configuration; empty if there is.
  [[nodiscard]] std::string objection(const Change& change) const;
  /// The set for a configuration. `tls` has one context per upstream, or none at all.
  [[nodiscard]] std::shared_ptr<const UpstreamSet> made_for(
      const Change& change, const std::vector<io::TlsContext::Ptr>& tls);
  void put_in_force(std::shared_ptr<const UpstreamSet> next);

  struct Leaving {
    std::string name;
    std::uint32_t connections = 0;
  };
  /// Those that left and still have requests or connections.
  [[nodiscard]] std::vector<Leaving> leaving() const;
  /// What all upstreams that there ever were have counted.
  [[nodiscard]] RequestTotals totals() const;

 private:
  [[nodiscard]] std::shared_ptr<ServedUpstream> make(const upstream::UpstreamConfig& config,
                                                     const config::Config& all,
                                                     io::TlsContext::Ptr tls);
  /// The place of that name if there is one, otherwise a new one. Under mutex_.
  [[nodiscard]] UpstreamPlace& place_for(const std::string& name, const LimitConfig& limit);
  void destroy(ServedUpstream* upstream);

  Setup setup_;
  mutable std::mutex mutex_;
  std::shared_ptr<const UpstreamSet> in_force_;         // under mutex_, as all below
  std::vector<ServedUpstream*> upstreams_;              // that exist
  std::vector<std::unique_ptr<UpstreamPlace>> places_;  // one or more of upstreams_ have each
  RequestTotals gone_;                                  // of places that are no more
};

}  // namespace weir::inline v0::gateway
