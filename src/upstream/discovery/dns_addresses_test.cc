#include "discovery/dns_addresses.h"

#include <gtest/gtest.h>

namespace weir::inline v0::upstream {
namespace {

using io::DnsError;
using io::DnsResult;
using policy::LookupOutcome;
using policy::SetAction;

DnsResult records(std::uint8_t last, bool cut = false) {
  io::DnsRecords made;
  made.ttl = std::chrono::seconds(7);
  made.cut = cut;
  io::Address address;
  address.family = io::Family::kV4;
  address.ip = {10, 0, 0, last};
  made.addresses = {address};
  return made;
}

TEST(DnsAddresses, OnlyAnEmptyAnswerIsNotAFailure) {
  EXPECT_EQ(part_of(records(1)).outcome, LookupOutcome::kRecords);
  EXPECT_EQ(part_of(records(1)).ttl, std::chrono::seconds(7));
  EXPECT_EQ(part_of(unexpected(DnsError::kNoRecords)).outcome, LookupOutcome::kEmpty);
  for (const DnsError error :
       {DnsError::kNotFound, DnsError::kServFail, DnsError::kTimeout, DnsError::kBadAnswer}) {
    EXPECT_EQ(part_of(unexpected(error)).outcome, LookupOutcome::kFailed);
  }
  EXPECT_EQ(failure_of({.v4 = records(1), .v6 = unexpected(DnsError::kNoRecords)}), "");
  EXPECT_EQ(failure_of({.v4 = unexpected(DnsError::kTimeout), .v6 = records(1)}), "A: timeout");
}

TEST(DnsAddresses, ActionsApplyByFamily) {
  KnownAddresses known;
  policy::DiscoveryRules::Decision decision;
  decision.actions = {SetAction::kReplace, SetAction::kReplace};
  known.apply(decision, {.v4 = records(1, true), .v6 = records(2)});
  EXPECT_EQ(known.v4[0].ip[3], 1);
  EXPECT_TRUE(known.v4_cut);
  decision.actions = {SetAction::kKeep, SetAction::kClear};
  known.apply(decision,
              {.v4 = unexpected(DnsError::kTimeout), .v6 = unexpected(DnsError::kNoRecords)});
  EXPECT_EQ(known.v4.size(), 1U);
  EXPECT_TRUE(known.v4_cut);
  EXPECT_TRUE(known.v6.empty());
  EXPECT_FALSE(known.empty());
}

}  // namespace
}  // namespace weir::inline v0::upstream
