#include "io/dns_resolver.h"

#include <optional>

#include <gtest/gtest.h>

#include "io/dns_server_testing.h"

namespace weir::inline v0::io {
namespace {

using dns_bytes::a;
using dns_bytes::aaaa;
using Mode = TestDnsServer::Mode;

struct Resolving {
  explicit Resolving(Duration timeout = std::chrono::seconds(10), bool routed_only = false)
      : resolver(loop, config(timeout, routed_only)) {}

  DnsConfig config(Duration timeout, bool routed_only) {
    DnsConfig made;
    made.servers = {server.address()};
    made.search = {"one.test", "two.test"};
    made.timeout = timeout;
    made.routed_only = routed_only;  // tests use addresses of nobody
    made.tries = 1;
    EXPECT_TRUE(made.validate().empty());
    return made;
  }
  DnsAddresses addresses(const std::string& name) {
    std::optional<DnsAddresses> found;
    DnsLookup lookup;
    resolver.find_addresses(lookup, name, [&](DnsAddresses got) { found = std::move(got); });
    EXPECT_FALSE(found) << "later, not from within";
    while (!found) loop.run_once(true);
    EXPECT_FALSE(lookup.active());
    return *std::move(found);
  }
  DnsResult services(const std::string& name) {
    std::optional<DnsResult> found;
    DnsLookup lookup;
    resolver.find_services(lookup, name, [&](DnsResult got) { found = std::move(got); });
    while (!found) loop.run_once(true);
    return *std::move(found);
  }
  static std::string text(const DnsResult& result) {
    if (!result) return std::string(name_of(result.error()));
    std::string out;
    for (const Address& one : result->addresses) out += one.to_string() + ' ';
    for (const DnsService& one : result->services) {
      out += one.host + ':' + std::to_string(one.port) + ' ';
    }
    return out;
  }

  TestDnsServer server;
  Loop loop;
  DnsResolver resolver;
};

TEST(DnsResolver, FindsBothFamilies) {
  Resolving in;
  in.server.set("api.test", DnsType::kA, {.records = {a("10.0.0.1", 7), a("10.0.0.2", 9)}});
  in.server.set("api.test", DnsType::kAaaa, {.records = {aaaa("2001:db8::1", 3)}});
  const DnsAddresses found = in.addresses("api.test");
  EXPECT_EQ(Resolving::text(found.v4), "10.0.0.1:0 10.0.0.2:0 ");
  EXPECT_EQ(Resolving::text(found.v6), "[2001:db8::1]:0 ");
  EXPECT_EQ(found.v4->ttl, std::chrono::seconds(7));
  EXPECT_EQ(found.v6->ttl, std::chrono::seconds(3));
}

TEST(DnsResolver, ErrorsAreTheirOwnValuesByFamily) {
  struct Row {
    Mode mode;
    const char* text;
  };
  Resolving in;
  in.server.set("api.test", DnsType::kAaaa, {.records = {aaaa("2001:db8::1")}});
  for (const Row& row : {Row{Mode::kNotFound, "not_found"}, Row{Mode::kServFail, "servfail"},
                         Row{Mode::kGarbage, "bad_answer"}, Row{Mode::kRecords, "no_records"}}) {
    in.server.set("api.test", DnsType::kA, {.mode = row.mode, .records = {}});
    const DnsAddresses found = in.addresses("api.test");
    EXPECT_EQ(Resolving::text(found.v4), row.text);
    EXPECT_EQ(Resolving::text(found.v6), "[2001:db8::1]:0 ") << row.text;
  }
  EXPECT_EQ(Resolving::text(in.addresses("unknown.test").v4), "not_found");
}

TEST(DnsResolver, ALongAnswerComesByTcpAndIsCut) {
  Resolving in;
  TestDnsServer::Answer answer;
  for (int i = 0; i < 1000; ++i) {
    answer.records.push_back(
        a(("10.1." + std::to_string(i / 250) + '.' + std::to_string(i % 250)).c_str()));
  }
  in.server.set("big.test", DnsType::kA, answer);
  const DnsAddresses first = in.addresses("big.test");
  ASSERT_TRUE(first.v4);
  EXPECT_EQ(first.v4->addresses.size(), 64U);
  EXPECT_TRUE(first.v4->cut);
  EXPECT_EQ(in.server.tcp_queries(), 1U);
  std::reverse(answer.records.begin(), answer.records.end());
  in.server.set("big.test", DnsType::kA, answer);
  EXPECT_EQ(in.addresses("big.test").v4->addresses, first.v4->addresses);
}

TEST(DnsResolver, AddressesWithoutARouteAreLeftOutWhileOthersRemain) {
  Resolving in(std::chrono::seconds(10), true);
  in.server.set("api.test", DnsType::kA, {.records = {a("127.0.0.1"), a("127.0.0.2")}});
  in.server.set("api.test", DnsType::kAaaa, {.records = {aaaa("fe80::1")}});
  const DnsAddresses found = in.addresses("api.test");
  EXPECT_EQ(Resolving::text(found.v4), "127.0.0.1:0 127.0.0.2:0 ");
  EXPECT_EQ(Resolving::text(found.v6), "no_records");
  in.server.set("api.test", DnsType::kA, {.mode = Mode::kServFail, .records = {}});
  EXPECT_EQ(Resolving::text(in.addresses("api.test").v6), "no_records") << "others may exist";
  in.server.set("api.test", DnsType::kA, {.records = {}});
  EXPECT_EQ(Resolving::text(in.addresses("api.test").v6), "[fe80::1]:0 ") << "better than none";
}

TEST(DnsResolver, FindsServices) {
  Resolving in;
  in.server.set("_http._tcp.api.test", DnsType::kSrv,
                {.records = {dns_bytes::srv({"one.test", 8081, 0, 5}),
                             dns_bytes::srv({"two.test", 8082, 0, 5})}});
  EXPECT_EQ(Resolving::text(in.services("_http._tcp.api.test")), "one.test:8081 two.test:8082 ");
  EXPECT_EQ(Resolving::text(in.services("_grpc._tcp.api.test")), "not_found");
}

TEST(DnsResolver, TheSearchEndsAtRecordsAndAtAFailure) {
  Resolving in;
  in.server.set("api.two.test", DnsType::kA, {.records = {a("10.0.0.2")}});
  EXPECT_EQ(Resolving::text(in.addresses("api").v4), "10.0.0.2:0 ");
  in.server.set("api.one.test", DnsType::kAaaa, {.records = {}});
  EXPECT_EQ(Resolving::text(in.addresses("api").v4), "10.0.0.2:0 ") << "empty: go on";
  in.server.set("api.one.test", DnsType::kAaaa, {.mode = Mode::kServFail, .records = {}});
  const DnsAddresses failed = in.addresses("api");
  EXPECT_EQ(Resolving::text(failed.v6), "servfail") << "there might have been some";
  EXPECT_EQ(Resolving::text(failed.v4), "no_records");
  in.server.set("api.one.test", DnsType::kA, {.records = {a("10.0.0.1")}});
  EXPECT_EQ(Resolving::text(in.addresses("api").v4), "10.0.0.1:0 ");
}

TEST(DnsResolver, ANameThatExistsAnywhereWithoutRecordsIsEmpty) {
  Resolving in;
  in.server.set("api.one.test", DnsType::kSrv, {.records = {}});
  EXPECT_EQ(Resolving::text(in.addresses("api").v4), "no_records");
  EXPECT_EQ(Resolving::text(in.addresses("other").v4), "not_found");
}

TEST(DnsResolver, LocalhostIsLoopbackWithoutAQuestion) {
  Resolving in;
  for (const char* name : {"localhost", "api.localhost"}) {
    const DnsAddresses found = in.addresses(name);
    const std::string both = Resolving::text(found.v4) + Resolving::text(found.v6);
    EXPECT_TRUE(both.starts_with("127.0.0.1:0 ") || both.ends_with("[::1]:0 ")) << both;
    EXPECT_EQ(in.server.queries(name, DnsType::kA), 0U);
  }
}

TEST(DnsResolver, AfterFourTimeoutsEverythingIsOpenedAnew) {
  Resolving in(std::chrono::milliseconds(20));
  in.server.set("api.test", DnsType::kA, {.mode = Mode::kSilent, .records = {}});
  in.server.set("api.test", DnsType::kAaaa, {.mode = Mode::kSilent, .records = {}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Resolving::text(in.addresses("api.test").v4), "timeout");
  EXPECT_EQ(in.resolver.restarts(), 1U);
  in.server.set("api.test", DnsType::kA, {.records = {a("10.0.0.1")}});
  while (!in.addresses("api.test").v4) {
  }
}

TEST(DnsResolver, ACancelledLookupDoesNotCallBack) {
  Resolving in;
  in.server.set("api.test", DnsType::kA, {.records = {a("10.0.0.1")}});
  bool called = false;
  DnsLookup lookup;
  in.resolver.find_addresses(lookup, "api.test", [&](const DnsAddresses&) { called = true; });
  EXPECT_TRUE(lookup.active());
  lookup.cancel();
  {
    DnsLookup shortlived;
    in.resolver.find_addresses(shortlived, "api.test", [&](const DnsAddresses&) { called = true; });
  }
  static_cast<void>(in.addresses("api.test"));  // its answer comes after theirs
  EXPECT_FALSE(called);
}

TEST(DnsResolver, ACallbackMayStartTheNextLookupAndEndTheResolver) {
  TestDnsServer server;
  server.set("api.test", DnsType::kA, {.records = {a("10.0.0.1")}});
  Loop loop;
  DnsConfig config;
  config.servers = {server.address()};
  auto resolver = std::make_unique<DnsResolver>(loop, config);
  DnsLookup lookup;
  resolver->find_addresses(lookup, "api.test", [&](const DnsAddresses&) {
    resolver->find_addresses(lookup, "api.test", [&](const DnsAddresses&) { resolver.reset(); });
  });
  while (resolver != nullptr) loop.run_once(true);
  EXPECT_EQ(server.queries("api.test", DnsType::kA), 2U);
}

TEST(DnsResolver, MayEndWithLookupsInProgress) {
  TestDnsServer server;
  server.set("api.test", DnsType::kA, {.mode = Mode::kSilent, .records = {}});
  Loop loop;
  DnsConfig config;
  config.servers = {server.address()};
  DnsLookup lookup;
  bool called = false;
  {
    DnsResolver resolver(loop, config);
    resolver.find_addresses(lookup, "api.test", [&](const DnsAddresses&) { called = true; });
    loop.run_once();
  }
  loop.run_once();
  EXPECT_FALSE(called);
}

TEST(DnsConfig, ErrorsNameTheKey) {
  DnsConfig config;
  EXPECT_TRUE(config.validate().empty());
  config.servers = {"192.0.2.1:53", "[2001:db8::1]:53", "dns.example:53", "192.0.2.1"};
  config.tries = 0;
  config.records_max = 5000;
  config.timeout = Duration(1);
  std::string keys;
  for (const ConfigError& error : config.validate()) keys += error.key + ' ';
  EXPECT_EQ(keys, "servers servers timeout_ms tries records_max ");
}

}  // namespace
}  // namespace weir::inline v0::io
