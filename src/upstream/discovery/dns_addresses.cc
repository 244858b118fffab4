#include "discovery/dns_addresses.h"

namespace weir::inline v0::upstream {
namespace {

void apply_one(policy::SetAction action, const io::DnsResult& found,
               std::vector<io::Address>& known, bool& cut) {
  if (action == policy::SetAction::kKeep) return;
  const bool replaced = action == policy::SetAction::kReplace;
  known = replaced ? found->addresses : std::vector<io::Address>{};
  cut = replaced && found->cut;
}

void add_failure(std::string& out, const char* what, const io::DnsResult& result) {
  if (result || result.error() == io::DnsError::kNoRecords) return;
  if (!out.empty()) out += ", ";
  out += what;
  out += ": ";
  out += name_of(result.error());
}

}  // namespace

policy::DiscoveryRules::Part part_of(const io::DnsResult& result) noexcept {
  using policy::LookupOutcome;
  if (result) return {.outcome = LookupOutcome::kRecords, .ttl = result->ttl};
  const bool empty = result.error() == io::DnsError::kNoRecords;
  return {.outcome = empty ? LookupOutcome::kEmpty : LookupOutcome::kFailed, .ttl = {}};
}

std::string failure_of(const io::DnsAddresses& found) {
  std::string out;
  add_failure(out, "A", found.v4);
  add_failure(out, "AAAA", found.v6);
  return out;
}

void KnownAddresses::apply(const policy::DiscoveryRules::Decision& decision,
                           const io::DnsAddresses& found) {
  apply_one(decision.actions[0], found.v4, v4, v4_cut);
  apply_one(decision.actions[1], found.v6, v6, v6_cut);
}

}  // namespace weir::inline v0::upstream
