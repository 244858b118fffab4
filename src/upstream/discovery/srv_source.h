#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "discovery/dns_addresses.h"
#include "discovery/lookup_schedule.h"
#include "discovery/published_set.h"
#include "io/dns_resolver.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// The SRV records of a name, and the addresses of their targets (RFC 2782).
///
/// Only the targets of the lowest priority are used. Each address of a target has the target's
/// weight; a weight of 0 counts as 1. A target whose addresses cannot be found keeps those that it
/// had. The name for TLS is the one in the configuration without its service labels.
class SrvSource final : public EndpointSource {
 public:
  SrvSource(std::string text, std::string name, io::DnsResolver& resolver, SourceTiming timing);
  ~SrvSource() override { stop(); }

  void start(io::Loop& loop, EndpointSink& sink) override;
  void stop() noexcept override;
  void refresh() noexcept override { schedule_.refresh(); }
  const SourceStatus& status() const noexcept override { return published_.status(); }

 private:
  void look();
  void on_services(io::DnsResult found);
  void find_targets();
  void on_target(const std::string& host, const io::DnsAddresses& found);
  void on_all_targets();
  [[nodiscard]] PublishedSet::List compile() const;

  std::string name_;
  std::string host_;
  io::DnsResolver& resolver_;
  PublishedSet published_;
  LookupSchedule schedule_;
  io::DnsLookup lookup_;
  std::vector<io::DnsService> services_;  // of the lowest priority
  bool services_cut_ = false;
  std::deque<io::DnsLookup> lookups_;  // one per host
  std::size_t missing_ = 0;            // answers to come
  Duration ttl_{};
  std::string failure_;
  std::map<std::string, KnownAddresses> known_;  // by host
};

}  // namespace weir::inline v0::upstream
