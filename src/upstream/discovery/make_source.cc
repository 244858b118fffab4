#include "upstream/discovery/make_source.h"

#include <utility>
#include <vector>

#include "weir/experimental/io/resolve.h"

#include "discovery/dns_source.h"
#include "discovery/file_source.h"
#include "discovery/srv_source.h"
#include "discovery/static_source.h"

namespace weir::inline v0::upstream {

DiscoveredEndpoint endpoint_at(const SourceSpec& spec) {
  DiscoveredEndpoint one;
  one.address = io::resolve(spec.address)->front();  // of an address or a path: itself
  if (spec.address.kind == NetAddressKind::kIp) one.host = to_string(spec.address.ip);
  return one;
}

std::unique_ptr<EndpointSource> make_source(const SourceSpec& spec, io::DnsResolver& resolver,
                                            SourceTiming timing) {
  switch (spec.kind) {
    case SourceKind::kSrv:
      return std::make_unique<SrvSource>(spec.source(), spec.text, resolver, timing);
    case SourceKind::kFile:
      return std::make_unique<FileSource>(spec.source(), spec.text);
    case SourceKind::kAddress:
    case SourceKind::kDns:
      break;
  }
  if (spec.address.kind != NetAddressKind::kName) {
    return std::make_unique<StaticSource>(spec.source(), std::vector{endpoint_at(spec)});
  }
  return std::make_unique<DnsSource>(
      spec.source(), DnsSource::Target{.host = spec.address.text, .port = spec.address.port},
      resolver, timing);
}

}  // namespace weir::inline v0::upstream
