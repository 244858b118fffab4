#include "dns_channel.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "io/dns_server_testing.h"

namespace weir::inline v0::io {
namespace {

DnsConfig to_server(const TestDnsServer& server) {
  DnsConfig config;
  config.servers = {server.address()};
  return config;
}

TEST(DnsChannel, AsksForTheNameAsItIs) {
  TestDnsServer server;
  server.set("api.test", DnsType::kA, {.records = {dns_bytes::a("10.0.0.1")}});
  const DnsConfig config = to_server(server);
  Loop loop;
  DnsChannel channel(loop, config);
  std::optional<DnsResult> got;
  channel.query({.name = "api.test", .type = DnsType::kA},
                [&](DnsResult result) { got = std::move(result); });
  EXPECT_EQ(channel.outstanding(), 1U);
  while (!got) loop.run_once(true);
  EXPECT_EQ(channel.outstanding(), 0U);
  ASSERT_TRUE(*got);
  EXPECT_EQ((*got)->addresses.size(), 1U);
}

TEST(DnsChannel, ANameThatCannotBeAskedForDoesNotExist) {
  TestDnsServer server;
  const DnsConfig config = to_server(server);
  Loop loop;
  DnsChannel channel(loop, config);
  std::optional<DnsResult> got;
  channel.query({.name = std::string(80, 'x') + ".test", .type = DnsType::kA},
                [&](DnsResult result) { got = std::move(result); });
  ASSERT_TRUE(got) << "from within the call";
  EXPECT_EQ(got->error(), DnsError::kNotFound);
}

TEST(DnsChannel, RestartEndsWhatIsInProgress) {
  TestDnsServer server;
  server.set("api.test", DnsType::kA, {.mode = TestDnsServer::Mode::kSilent, .records = {}});
  const DnsConfig config = to_server(server);
  Loop loop;
  DnsChannel channel(loop, config);
  std::optional<DnsResult> got;
  channel.query({.name = "api.test", .type = DnsType::kA},
                [&](DnsResult result) { got = std::move(result); });
  loop.run_once();
  channel.restart();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error(), DnsError::kTimeout);
  server.set("api.test", DnsType::kA, {.records = {dns_bytes::a("10.0.0.1")}});
  got.reset();
  channel.query({.name = "api.test", .type = DnsType::kA},
                [&](DnsResult result) { got = std::move(result); });
  while (!got) loop.run_once(true);
  EXPECT_TRUE(*got);
}

TEST(DnsChannel, ANameWithFewDotsIsTriedInTheDomainsFirst) {
  using Names = std::vector<std::string>;
  Loop loop;
  DnsConfig own;
  own.servers = {"127.0.0.1:5353"};
  own.search = {"one.test", "two.test"};
  DnsChannel configured(loop, own);
  EXPECT_EQ(configured.search("api"), (Names{"api.one.test", "api.two.test", "api"}));
  EXPECT_EQ(configured.search("a.b"), (Names{"a.b", "a.b.one.test", "a.b.two.test"}));
  EXPECT_EQ(configured.search("api."), Names{"api."});
  const DnsConfig none;
  DnsChannel of_system(loop, none);
  const Names names = of_system.search("api");
  EXPECT_EQ(std::count(names.begin(), names.end(), "api"), 1);
}

TEST(DnsChannel, HostsWithoutTheNameHaveNoRecords) {
  Loop loop;
  const DnsConfig none;
  DnsChannel channel(loop, none);
  const DnsAddresses found = channel.in_hosts("no-such-host.invalid");
  EXPECT_EQ(found.v4.error(), DnsError::kNoRecords);
  EXPECT_EQ(found.v6.error(), DnsError::kNoRecords);
}

}  // namespace
}  // namespace weir::inline v0::io
