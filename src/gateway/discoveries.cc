#include "discoveries.h"

#include <algorithm>
#include <string>

namespace weir::inline v0::gateway {

Discoveries::Discoveries(GatewayCore& core, EndpointLog& log, io::Loop& loop, Rng rng)
    : core_(core), loop_(loop), dns_(core.config_in_force().dns) {
  for (std::size_t i = 0; i < core.upstreams.size(); ++i) {
    all_.push_back(std::make_unique<upstream::Discovery>(upstream::Discovery::Setup{
        .loop = loop,
        .upstream = *core.upstreams[i],
        .resolver = [this]() -> io::DnsResolver& { return resolver(); },
        .on_error = [&log, &name = core.names[i]](
                        const std::string& source,
                        const std::string& error) { log.on_source(name, source, error); },
        .rng = rng.fork()}));
  }
}

io::DnsResolver& Discoveries::resolver() {
  if (resolver_ == nullptr) resolver_ = std::make_unique<io::DnsResolver>(loop_, dns_);
  return *resolver_;
}

void Discoveries::set(const config::Config& config) {
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    const auto name = std::find(core_.names.begin(), core_.names.end(), upstream.name);
    if (name == core_.names.end()) continue;
    all_[static_cast<std::size_t>(name - core_.names.begin())]->set_sources(upstream.endpoints);
  }
}

void Discoveries::stop() noexcept {
  for (const auto& one : all_) one->stop();
  all_.clear();
  resolver_.reset();
}

bool Discoveries::settled() const noexcept {
  return std::all_of(all_.begin(), all_.end(), [](const auto& one) { return one->settled(); });
}

void Discoveries::look() noexcept {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (core_.upstreams[i]->all_failing()) all_[i]->refresh();
  }
}

std::vector<upstream::SourceStatus> Discoveries::status(std::size_t upstream) const {
  return upstream < all_.size() ? all_[upstream]->status() : std::vector<upstream::SourceStatus>{};
}

}  // namespace weir::inline v0::gateway
