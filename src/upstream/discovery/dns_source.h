#pragma once

#include <cstdint>
#include <string>

#include "discovery/dns_addresses.h"
#include "discovery/lookup_schedule.h"
#include "discovery/published_set.h"
#include "io/dns_resolver.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// The A and AAAA records of a name, looked up again when their TTL ends: DiscoveryRules says when
/// and what changes. The families alternate, IPv6 first.
class DnsSource final : public EndpointSource {
 public:
  struct Target {
    std::string host;
    std::uint16_t port = 0;
  };
  DnsSource(std::string text, Target target, io::DnsResolver& resolver, SourceTiming timing);
  ~DnsSource() override { stop(); }

  void start(io::Loop& loop, EndpointSink& sink) override;
  void stop() noexcept override;
  void refresh() noexcept override { schedule_.refresh(); }
  const SourceStatus& status() const noexcept override { return published_.status(); }

 private:
  void look();
  void on_found(const io::DnsAddresses& found);

  Target target_;
  io::DnsResolver& resolver_;
  PublishedSet published_;
  LookupSchedule schedule_;
  KnownAddresses known_;
  io::DnsLookup lookup_;
};

}  // namespace weir::inline v0::upstream
