#include "discovery/srv_source.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::upstream {
namespace {

/// "api.example" of "_http._tcp.api.example".
std::string without_service(const std::string& name) {
  const std::size_t first = name.find('.');
  const std::size_t second = name.find('.', first + 1);
  return name.substr(second + 1);
}

/// What to do with the addresses of a target. It has no count of empty answers: a target without
/// addresses keeps what it had, until the SRV record itself is gone.
policy::DiscoveryRules::Decision decide(const io::DnsAddresses& found) noexcept {
  using policy::SetAction;
  const auto action = [](const io::DnsResult& own, const io::DnsResult& other) {
    if (own) return SetAction::kReplace;
    const bool gone = own.error() == io::DnsError::kNoRecords && other;
    return gone ? SetAction::kClear : SetAction::kKeep;
  };
  policy::DiscoveryRules::Decision decision;
  decision.actions = {action(found.v4, found.v6), action(found.v6, found.v4)};
  return decision;
}

/// Keeps the services of the lowest priority that have a port.
void keep_lowest(std::vector<io::DnsService>& services) {
  std::erase_if(services, [](const io::DnsService& one) { return one.port == 0; });
  const auto lowest = std::min_element(
      services.begin(), services.end(),
      [](const io::DnsService& a, const io::DnsService& b) { return a.priority < b.priority; });
  if (lowest == services.end()) return;
  const std::uint16_t priority = lowest->priority;
  std::erase_if(services, [&](const io::DnsService& one) { return one.priority != priority; });
}

}  // namespace

SrvSource::SrvSource(std::string text, std::string name, io::DnsResolver& resolver,
                     SourceTiming timing)
    : name_(std::move(name)),
      host_(without_service(name_)),
      resolver_(resolver),
      published_(*this, std::move(text)),
      schedule_(timing, published_, [this] { look(); }) {}

void SrvSource::start(io::Loop& loop, EndpointSink& sink) {
  published_.attach(loop, sink);
  schedule_.start(loop);
}

void SrvSource::stop() noexcept {
  schedule_.stop();
  lookup_.cancel();
  lookups_.clear();
  published_.detach();
}

void SrvSource::look() {
  resolver_.find_services(lookup_, name_,
                          [this](io::DnsResult found) { on_services(std::move(found)); });
}

void SrvSource::on_services(io::DnsResult found) {
  if (found) keep_lowest(found->services);
  if (found && !found->services.empty()) {
    services_ = std::move(found->services);
    services_cut_ = found->cut;
    ttl_ = found->ttl;
    return find_targets();
  }
  const io::DnsError error = found ? io::DnsError::kNoRecords : found.error();
  const auto part = part_of(unexpected(error));
  const auto decision = schedule_.ended(part, part);
  if (decision.reason == policy::DiscoveryReason::kEmptyConfirmed) {
    services_.clear();
    known_.clear();
    return published_.publish({});
  }
  const bool empty = decision.reason == policy::DiscoveryReason::kEmptyUnproven;
  published_.fail(empty ? "the name has no services" : "SRV: " + std::string(name_of(error)));
}

void SrvSource::find_targets() {
  std::map<std::string, KnownAddresses> still;
  for (const io::DnsService& service : services_) still[service.host];
  for (auto& [host, addresses] : still) {
    if (const auto old = known_.find(host); old != known_.end()) addresses = std::move(old->second);
  }
  known_ = std::move(still);
  failure_.clear();
  lookups_.clear();
  missing_ = known_.size();
  for (const auto& entry : known_) {
    const std::string& host = entry.first;
    // The final dot: the target is a whole name, it is not searched for.
    resolver_.find_addresses(
        lookups_.emplace_back(), host + '.',
        [this, &host](const io::DnsAddresses& found) { on_target(host, found); });
  }
}

void SrvSource::on_target(const std::string& host, const io::DnsAddresses& found) {
  known_[host].apply(decide(found), found);
  if (found.v4) ttl_ = std::min(ttl_, found.v4->ttl);
  if (found.v6) ttl_ = std::min(ttl_, found.v6->ttl);
  std::string failed = failure_of(found);
  if (!found.v4 && !found.v6 && failed.empty()) failed = "it has no addresses";
  if (!failed.empty()) failure_ += (failure_.empty() ? "" : "; ") + host + ": " + failed;
  if (--missing_ == 0) on_all_targets();
}

void SrvSource::on_all_targets() {
  using policy::LookupOutcome;
  PublishedSet::List list = compile();
  const LookupSchedule::Part services{.outcome = LookupOutcome::kRecords, .ttl = ttl_};
  const LookupSchedule::Part failed{.outcome = LookupOutcome::kFailed, .ttl = {}};
  const bool usable = !list.endpoints.empty();
  const auto decision =
      schedule_.ended(usable ? services : failed, failure_.empty() ? services : failed);
  if (decision.reason == policy::DiscoveryReason::kFailed) return published_.fail(failure_);
  published_.publish(std::move(list), failure_);
}

/// The first address of each target, then the second of each, and so on, up to the bound.
PublishedSet::List SrvSource::compile() const {
  const std::size_t max = resolver_.config().records_max;
  PublishedSet::List list;
  list.cut = services_cut_;
  std::vector<std::vector<io::Address>> addresses;
  std::size_t longest = 0;
  for (const io::DnsService& service : services_) {
    const KnownAddresses& known = known_.at(service.host);
    addresses.push_back(io::alternate_families(known.v6, known.v4, max));
    longest = std::max(longest, addresses.back().size());
    list.cut = list.cut || known.v4_cut || known.v6_cut;
  }
  const auto has = [&list](const io::Address& address) {
    return std::any_of(
        list.endpoints.begin(), list.endpoints.end(),
        [&](const DiscoveredEndpoint& one) { return one.address.address == address; });
  };
  for (std::size_t i = 0; i < longest; ++i) {
    for (std::size_t s = 0; s < services_.size(); ++s) {
      if (i >= addresses[s].size()) continue;
      DiscoveredEndpoint one;
      one.address.address = addresses[s][i];
      one.address.address.port = services_[s].port;
      one.host = host_;
      one.weight = std::max<std::uint32_t>(services_[s].weight, 1);
      if (has(one.address.address)) continue;
      list.cut = list.cut || list.endpoints.size() == max;
      if (list.endpoints.size() < max) list.endpoints.push_back(std::move(one));
    }
  }
  return list;
}

}  // namespace weir::inline v0::upstream
