#pragma once

#include <memory>

#include "weir/base/rng.h"
#include "weir/experimental/upstream/source_config.h"

#include "io/dns_resolver.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// The source for one entry of `endpoints`. A plain name ("api:8080") is looked up like
/// "dns:api:8080". `resolver` must outlive the source, which runs on the resolver's loop; `rng`
/// spreads the lookups in time.
[[nodiscard]] std::unique_ptr<EndpointSource> make_source(const SourceSpec& spec,
                                                          io::DnsResolver& resolver, Rng rng);

}  // namespace weir::inline v0::upstream
