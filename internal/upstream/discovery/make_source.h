#pragma once

#include <memory>

#include "weir/base/rng.h"
#include "weir/experimental/upstream/source_config.h"

#include "io/dns_resolver.h"
#include "policy/discovery_rules.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// When sources look things up again.
struct SourceTiming {
  Rng rng{0};  // spreads the lookups in time
  policy::DiscoveryTimes times;
};

/// The endpoint of a source that is an address: "127.0.0.1:80", "unix:/path".
[[nodiscard]] DiscoveredEndpoint endpoint_at(const SourceSpec& spec);

/// The source for one entry of `endpoints`. A plain name ("api:8080") is looked up like
/// "dns:api:8080". `resolver` must outlive the source, which runs on the resolver's loop.
[[nodiscard]] std::unique_ptr<EndpointSource> make_source(const SourceSpec& spec,
                                                          io::DnsResolver& resolver,
                                                          SourceTiming timing);

}  // namespace weir::inline v0::upstream
