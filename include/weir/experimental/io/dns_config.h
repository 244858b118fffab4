#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/net_address.h"
#include "weir/base/time.h"

namespace weir::inline v0::io {

/// How host names are resolved.
///
/// Thread-safety: a value. validate() returns all errors.
struct DnsConfig {
  std::vector<std::string> servers;  // "192.0.2.1:53"; empty: those of /etc/resolv.conf
  std::vector<std::string> search;   // with `servers`: the domains that names are tried in
  Duration timeout = std::chrono::seconds(2);  // of the first try; doubles with each further try
  std::uint32_t tries = 2;                     // per server
  std::uint32_t records_max = 64;              // used of one answer; more are left out
  std::uint64_t subset_seed = 0;  // chooses which are left out, the same ones every time
  /// Leaves out addresses that this machine cannot send to (IPv6 without IPv6), unless all are so.
  bool routed_only = true;

  bool operator==(const DnsConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors DnsConfig::validate() const {
  ConfigErrors errors;
  for (const std::string& server : servers) {
    const auto address = parse_net_address(server);
    if (address && address->kind == NetAddressKind::kIp && address->port != 0) continue;
    add_error(errors, "servers", server, "IP addresses with port (192.0.2.1:53, [2001:db8::1]:53)");
  }
  check_range(errors, "timeout_ms", timeout, Duration(std::chrono::milliseconds(10)),
              Duration(std::chrono::seconds(60)));
  check_range(errors, "tries", tries, 1U, 10U);
  check_range(errors, "records_max", records_max, 1U, 1024U);
  return errors;
}

}  // namespace weir::inline v0::io
