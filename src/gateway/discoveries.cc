#include "discoveries.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::inline v0::gateway {

Discoveries::Discoveries(const io::DnsConfig& dns, EndpointLog& log, io::Loop& loop, Rng rng)
    : log_(log), loop_(loop), rng_(rng), dns_(dns) {}

io::DnsResolver& Discoveries::resolver() {
  if (resolver_ == nullptr) resolver_ = std::make_unique<io::DnsResolver>(loop_, dns_);
  return *resolver_;
}

upstream::Discovery* Discoveries::find(const ServedUpstream& upstream) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const One& one) { return one.upstream.get() == &upstream; });
  return found == all_.end() ? nullptr : found->discovery.get();
}

void Discoveries::add(const UpstreamSet& upstreams, const config::Config& config) {
  for (std::size_t i = 0; i < upstreams.all.size(); ++i) {
    const std::shared_ptr<ServedUpstream>& upstream = upstreams.all[i];
    if (find(*upstream) != nullptr) continue;
    all_.push_back({upstream, std::make_unique<upstream::Discovery>(upstream::Discovery::Setup{
                                  .loop = loop_,
                                  .upstream = upstream->upstream,
                                  .resolver = [this]() -> io::DnsResolver& { return resolver(); },
                                  .on_error =
                                      [this, &name = upstream->name()](const std::string& source,
                                                                       const std::string& error) {
                                        log_.on_source(name, source, error);
                                      },
                                  .rng = rng_.fork()})});
    all_.back().discovery->set_sources(config.upstreams[i].endpoints);
  }
}

void Discoveries::set(const UpstreamSet& upstreams, const config::Config& config) {
  keep(upstreams);
  for (std::size_t i = 0; i < upstreams.all.size(); ++i) {
    upstream::Discovery* const known = find(*upstreams.all[i]);
    if (known != nullptr) known->set_sources(config.upstreams[i].endpoints);
  }
  add(upstreams, config);
}

void Discoveries::keep(const UpstreamSet& upstreams) {
  std::erase_if(all_, [&](const One& one) {
    if (upstreams.has(*one.upstream)) return false;
    one.discovery->stop();
    return true;
  });
}

void Discoveries::stop() noexcept {
  for (const One& one : all_) one.discovery->stop();
  all_.clear();
  resolver_.reset();
}

bool Discoveries::settled(const UpstreamSet& upstreams) const noexcept {
  return std::all_of(upstreams.all.begin(), upstreams.all.end(), [this](const auto& upstream) {
    const upstream::Discovery* const one = find(*upstream);
    return one == nullptr || one->settled();
  });
}

void Discoveries::look() noexcept {
  for (const One& one : all_) {
    if (one.upstream->upstream.all_failing()) one.discovery->refresh();
  }
}

std::vector<upstream::SourceStatus> Discoveries::status(const ServedUpstream& upstream) const {
  const upstream::Discovery* const one = find(upstream);
  return one != nullptr ? one->status() : std::vector<upstream::SourceStatus>{};
}

}  // namespace weir::inline v0::gateway
