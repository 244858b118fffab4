#pragma once

#include <string>
#include <vector>

#include "weir/experimental/io/address.h"

#include "io/dns_resolver.h"
#include "policy/discovery_rules.h"

namespace weir::inline v0::upstream {

/// The outcome of one part of a lookup, for DiscoveryRules.
[[nodiscard]] policy::DiscoveryRules::Part part_of(const io::DnsResult& result) noexcept;

/// What failed in a lookup of addresses, for a log ("A: timeout"); empty if nothing did. A family
/// without records is no failure.
[[nodiscard]] std::string failure_of(const io::DnsAddresses& found);

/// The addresses of one name that are in use, by family.
struct KnownAddresses {
  std::vector<io::Address> v4;
  std::vector<io::Address> v6;
  bool v4_cut = false;
  bool v6_cut = false;

  void apply(const policy::DiscoveryRules::Decision& decision, const io::DnsAddresses& found);
  [[nodiscard]] bool empty() const noexcept { return v4.empty() && v6.empty(); }
};

}  // namespace weir::inline v0::upstream
