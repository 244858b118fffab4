#include "circle.h"

#include <algorithm>
#include <array>

namespace weir::inline v0::gateway {
namespace {

bool is_loopback(const io::Address& address) noexcept {
  constexpr std::array<std::uint8_t, 16> kV6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  if (address.family == io::Family::kV6) return address.ip == kV6;
  return address.family == io::Family::kV4 && address.ip[0] == 127;
}

/// Whether connecting to `there` reaches a socket that listens on `own`. If `own` is every address
/// of this machine, only loopback addresses are known to be among them.
bool leads_to(const io::SocketName& there, const io::SocketName& own) noexcept {
  if (there == own) return true;
  const bool everywhere = own.path.empty() && own.address.ip == io::Address{}.ip;
  return everywhere && there.address.port == own.address.port && is_loopback(there.address);
}

}  // namespace

std::string circle_objection(const UpstreamSet& upstreams, const OwnNames& names) {
  for (const auto& one : upstreams.all) {
    const std::shared_ptr<const upstream::EndpointSet> set = one->upstream.endpoints();
    for (const upstream::EndpointSet::Member& member : set->members) {
      const upstream::Endpoint& endpoint = *member.endpoint;
      const auto leads_here = [&](const auto& name) { return leads_to(endpoint.name(), name); };
      const auto among = [&](std::span<const io::SocketName> some) {
        return std::any_of(some.begin(), some.end(), leads_here);
      };
      const std::string who = "upstream " + one->name() + ": endpoint " + endpoint.label();
      if (among(names.own)) return who + " is this gateway itself";
      if (among(names.admin)) {
        return who + " is the admin address of this gateway: its pages are for operators only";
      }
    }
  }
  return {};
}

}  // namespace weir::inline v0::gateway
