#include "discovery/dns_source.h"

#include <utility>

namespace weir::inline v0::upstream {

DnsSource::DnsSource(std::string text, Target target, io::DnsResolver& resolver,
                     SourceTiming timing)
    : target_(std::move(target)),
      resolver_(resolver),
      published_(*this, std::move(text)),
      schedule_(timing, published_, [this] { look(); }) {}

void DnsSource::start(io::Loop& loop, EndpointSink& sink) {
  published_.attach(loop, sink);
  schedule_.start(loop);
}

void DnsSource::stop() noexcept {
  schedule_.stop();
  lookup_.cancel();
  published_.detach();
}

void DnsSource::look() {
  resolver_.find_addresses(lookup_, target_.host,
                           [this](const io::DnsAddresses& found) { on_found(found); });
}

void DnsSource::on_found(const io::DnsAddresses& found) {
  const auto decision = schedule_.ended(part_of(found.v4), part_of(found.v6));
  known_.apply(decision, found);
  const std::string failure = failure_of(found);
  using policy::DiscoveryReason;
  if (decision.reason == DiscoveryReason::kFailed) return published_.fail(failure);
  if (decision.reason == DiscoveryReason::kEmptyUnproven) {
    return published_.fail("the name has no addresses");
  }
  PublishedSet::List list;
  const std::size_t max = resolver_.config().records_max;
  list.cut = known_.v4_cut || known_.v6_cut || known_.v4.size() + known_.v6.size() > max;
  for (io::Address address : io::alternate_families(known_.v6, known_.v4, max)) {
    address.port = target_.port;
    DiscoveredEndpoint one;
    one.address.address = address;
    one.host = target_.host;
    list.endpoints.push_back(std::move(one));
  }
  published_.publish(std::move(list), failure);
}

}  // namespace weir::inline v0::upstream
