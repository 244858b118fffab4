#include "io/dns_answer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "io/dns_server_testing.h"

namespace weir::inline v0::io {
namespace {

using dns_bytes::a;
using dns_bytes::aaaa;
using dns_bytes::cname;
using dns_bytes::name;
using dns_bytes::srv;
using dns_bytes::u16;

std::string answer(DnsType type, std::vector<std::string> records, std::uint16_t flags = 0x8180) {
  return dns_bytes::message(
      {.question = name("api.example") + u16(static_cast<std::uint16_t>(type)) + u16(1),
       .flags = flags,
       .records = std::move(records)});
}

Result<DnsRecords, DnsError> parse(const std::string& message, DnsType type = DnsType::kA,
                                   DnsSubset subset = {}) {
  return parse_dns_answer(std::as_bytes(std::span(message.data(), message.size())), type, subset);
}

/// "10.0.0.1 10.0.0.2 ttl=30", or the name of the error.
std::string read(const std::string& message, DnsType type = DnsType::kA) {
  const auto got = parse(message, type);
  if (!got) return std::string(name_of(got.error()));
  std::string out;
  for (const Address& one : got->addresses) {
    const std::string text = one.to_string();
    out += text.substr(0, text.rfind(':')) + ' ';
  }
  for (const DnsService& one : got->services) {
    out += one.host + ':' + std::to_string(one.port) + '/' + std::to_string(one.priority) + '/' +
           std::to_string(one.weight) + ' ';
  }
  return out + "ttl=" + std::to_string(static_cast<int>(to_seconds(got->ttl)));
}

TEST(DnsAnswer, AddressesAndTheSmallestTtl) {
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 30), a("10.0.0.2", 20)})),
            "10.0.0.1 10.0.0.2 ttl=20");
  EXPECT_EQ(read(answer(DnsType::kAaaa, {aaaa("2001:db8::1", 7)}), DnsType::kAaaa),
            "[2001:db8::1] ttl=7");
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 0)})), "10.0.0.1 ttl=0");
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 0x80000000U)})), "10.0.0.1 ttl=0");
}

TEST(DnsAnswer, OrderAndDuplicatesDoNotMatter) {
  const std::string sorted = read(answer(DnsType::kA, {a("10.0.0.1"), a("10.0.0.2")}));
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.2"), a("10.0.0.1")})), sorted);
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.2"), a("10.0.0.1"), a("10.0.0.2")})), sorted);
}

TEST(DnsAnswer, FollowsAliasesInAnyOrder) {
  const std::string first = cname("b.example", 50);
  const std::string second = cname("c.Example", 10, name("B.example"));
  const std::string last = a("10.0.0.9", 60, name("c.example"));
  const std::string foreign = a("10.6.6.6", 1, name("evil.example"));
  EXPECT_EQ(read(answer(DnsType::kA, {first, second, last})), "10.0.0.9 ttl=10");
  EXPECT_EQ(read(answer(DnsType::kA, {last, second, foreign, first})), "10.0.0.9 ttl=10");
  EXPECT_EQ(read(answer(DnsType::kA, {first, last})), "no_records") << "the chain is broken";
  EXPECT_EQ(read(answer(DnsType::kA, {first, cname("api.example", 5, name("b.example"))})),
            "no_records")
      << "a circle ends";
}

TEST(DnsAnswer, Services) {
  EXPECT_EQ(read(answer(DnsType::kSrv,
                        {srv({"two.example", 80, 1, 5}), srv({"One.example", 81, 0, 0}, 9)}),
                 DnsType::kSrv),
            "one.example:81/0/0 two.example:80/1/5 ttl=9");
  EXPECT_EQ(read(answer(DnsType::kSrv, {srv({"", 80, 1, 5})}), DnsType::kSrv), "no_records")
      << "a target of \".\" means that there is no such service";
  EXPECT_EQ(read(answer(DnsType::kSrv, {srv({"a b", 80, 1, 5})}), DnsType::kSrv), "no_records");
}

TEST(DnsAnswer, OtherRecordsAreSkipped) {
  const std::string txt = dns_bytes::record(dns_bytes::kOwner, 16, 1, "\x03hey");
  EXPECT_EQ(read(answer(DnsType::kA, {txt, a("10.0.0.1")})), "10.0.0.1 ttl=30");
  EXPECT_EQ(read(answer(DnsType::kA, {aaaa("::1")})), "no_records");
  EXPECT_EQ(read(answer(DnsType::kA, {})), "no_records");
}

TEST(DnsAnswer, WhatIsNotAnAnswerIsBad) {
  const std::string good = answer(DnsType::kA, {a("10.0.0.1")});
  EXPECT_EQ(read(""), "bad_answer");
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1")}, 0x0180)), "bad_answer") << "a query";
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1")}, 0x8380)), "bad_answer") << "truncated";
  EXPECT_EQ(read(good, DnsType::kAaaa), "bad_answer") << "another type";
  EXPECT_EQ(read(answer(DnsType::kA, {dns_bytes::record(dns_bytes::kOwner, 1, 30, "abc")})),
            "bad_answer");
  EXPECT_EQ(read(answer(DnsType::kA, {dns_bytes::record(dns_bytes::kOwner, 1, 30, "abcde")})),
            "bad_answer");
  EXPECT_EQ(read(answer(DnsType::kA, {cname("b.example") + "x"})), "no_records")
      << "bytes after the last record are of no interest";
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_EQ(read(good.substr(0, cut)), "bad_answer") << cut;
  }
}

TEST(DnsAnswer, PointersOnlyLeadBack) {
  const std::string to_itself = {'\xC0', static_cast<char>(12 + 13 + 4)};
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 30, to_itself)})), "bad_answer");
  const std::string forward = {'\xC0', static_cast<char>(200)};
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 30, forward)})), "bad_answer");
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 30, std::string("\x80"))})), "bad_answer")
      << "no such kind of label";
}

TEST(DnsAnswer, ALongNameIsBad) {
  std::string label = "\x3F" + std::string(63, 'x');
  EXPECT_EQ(read(answer(DnsType::kA, {a("10.0.0.1", 30, label + label + label + label + '\0')})),
            "bad_answer");
}

std::vector<std::string> many(int count) {
  std::vector<std::string> records;
  for (int i = 0; i < count; ++i) {
    records.push_back(
        a(("10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256)).c_str()));
  }
  return records;
}

TEST(DnsAnswer, OfALongAnswerTheSameRecordsAreUsedWhateverTheOrder) {
  std::vector<std::string> records = many(1000);
  const auto first = parse(answer(DnsType::kA, records));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->addresses.size(), 64U);
  EXPECT_TRUE(first->cut);
  Rng rng(1);
  for (std::size_t i = records.size(); i > 1; --i) std::swap(records[i - 1], records[rng.below(i)]);
  EXPECT_EQ(parse(answer(DnsType::kA, records))->addresses, first->addresses);
  const auto other =
      parse(answer(DnsType::kA, records), DnsType::kA, {.records_max = 64, .seed = 7});
  EXPECT_NE(other->addresses, first->addresses);
  EXPECT_FALSE(parse(answer(DnsType::kA, many(64)))->cut);
}

TEST(DnsAnswer, CuttingAsTheyComeIsCuttingAtTheEnd) {
  const std::vector<std::string> records = many(1000);
  const auto whole = parse(answer(DnsType::kA, records), DnsType::kA, {.records_max = 999});
  ASSERT_EQ(whole->addresses.size(), 999U);
  for (const std::size_t max : {1U, 7U, 64U, 250U, 500U}) {
    const auto found = parse(answer(DnsType::kA, records), DnsType::kA, {.records_max = max});
    EXPECT_EQ(found->addresses.size(), max);
    EXPECT_TRUE(found->cut);
    const auto more = parse(answer(DnsType::kA, records), DnsType::kA, {.records_max = max + 1});
    EXPECT_TRUE(std::includes(more->addresses.begin(), more->addresses.end(),
                              found->addresses.begin(), found->addresses.end(),
                              [](const Address& a, const Address& b) { return a.ip < b.ip; }))
        << "a smaller subset is a part of a larger one";
  }
}

TEST(DnsAnswer, ARecordThatGoesChangesOneOfTheSubset) {
  std::vector<std::string> records = many(1000);
  const auto all = parse(answer(DnsType::kA, records));
  const Address gone = all->addresses[10];
  records.erase(std::find(records.begin(), records.end(),
                          a(gone.to_string().substr(0, gone.to_string().find(':')).c_str())));
  const auto fewer = parse(answer(DnsType::kA, records));
  std::size_t kept = 0;
  for (const Address& one : fewer->addresses) {
    kept += static_cast<std::size_t>(std::count(all->addresses.begin(), all->addresses.end(), one));
  }
  EXPECT_EQ(kept, 63U);
}

TEST(DnsAnswer, RandomDamageIsNeverTakenForMoreThanIsThere) {
  const std::string good = answer(
      DnsType::kA, {cname("b.example"), a("10.0.0.9", 60, name("b.example")), a("10.0.0.8")});
  Rng rng(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = good;
    for (std::uint64_t i = 0; i <= rng.below(4); ++i) {
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    }
    damaged.resize(damaged.size() - rng.below(3));
    const auto got = parse(damaged);
    EXPECT_LE(got ? got->addresses.size() : 0, 3U);
  }
}

TEST(AlternateFamilies, Version6First) {
  const auto v4 = parse(answer(DnsType::kA, many(3)))->addresses;
  const auto v6 =
      parse(answer(DnsType::kAaaa, {aaaa("::1"), aaaa("::2")}), DnsType::kAaaa)->addresses;
  const auto both = alternate_families(v6, v4, 10);
  EXPECT_EQ(both, (std::vector<Address>{v6[0], v4[0], v6[1], v4[1], v4[2]}));
  EXPECT_EQ(alternate_families(v6, v4, 3), (std::vector<Address>{v6[0], v4[0], v6[1]}));
  EXPECT_EQ(alternate_families({}, v4, 10), v4);
  EXPECT_TRUE(alternate_families({}, {}, 10).empty());
}

}  // namespace
}  // namespace weir::inline v0::io
