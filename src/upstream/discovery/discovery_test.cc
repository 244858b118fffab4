#include "upstream/discovery/discovery.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include "discovery/source_testing.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {
namespace {

using Specs = std::vector<SourceSpec>;

Specs specs(std::initializer_list<std::string> texts) {
  Specs all;
  for (const std::string& text : texts) all.push_back(*parse_source(text));
  return all;
}

/// An upstream, its discovery, and a DNS server of its own.
struct DiscoveryRun {
  explicit DiscoveryRun(Duration patience = std::chrono::minutes(1))
      : resolver(loop, SourceRun::config(server, std::chrono::seconds(10))),
        upstream({.config = {}}, {}, loop.now()),
        discovery({.loop = loop,
                   .upstream = upstream,
                   .resolver = [this]() -> io::DnsResolver& { return resolver; },
                   .on_error =
                       [this](const std::string& source, const std::string& error) {
                         errors.push_back(source + ": " + error);
                       },
                   .rng = Rng(1),
                   .times = fast_times(),
                   .patience = patience}) {}
  ~DiscoveryRun() { discovery.stop(); }
  DiscoveryRun(const DiscoveryRun&) = delete;
  DiscoveryRun& operator=(const DiscoveryRun&) = delete;

  /// "10.0.0.1:80*2@b! " with weight, zone and drain.
  [[nodiscard]] std::string text() const {
    std::string out;
    const std::shared_ptr<const EndpointSet> set = upstream.endpoints();
    for (const EndpointSet::Member& member : set->members) {
      out += member.endpoint->label();
      if (member.weight != 1) out += '*' + std::to_string(member.weight);
      if (!member.zone.empty()) out += '@' + member.zone;
      if (member.endpoint->health().state() == policy::EndpointState::kDraining) out += '!';
      out += ' ';
    }
    return out;
  }
  void until_text(const std::string& wanted) {
    while (text() != wanted) loop.run_once(true);
  }
  void answer(const std::string& name, const std::vector<std::string>& addresses) {
    std::vector<std::string> records;
    for (const std::string& one : addresses) records.push_back(io::dns_bytes::a(one.c_str()));
    server.set(name, io::DnsType::kA, {.records = records});
  }

  io::TestDnsServer server;
  io::Loop loop;
  io::DnsResolver resolver;
  Upstream upstream;
  std::vector<std::string> errors;
  Discovery discovery;
};

TEST(Discovery, AddressesAreThereAtOnceWithTheirAttributes) {
  DiscoveryRun run;
  run.discovery.set_sources(specs({"10.0.0.1:80", "10.0.0.2:80 weight=2 zone=b drain=true"}));
  EXPECT_EQ(run.text(), "10.0.0.1:80 10.0.0.2:80*2@b! ");
  EXPECT_TRUE(run.discovery.settled());
  ASSERT_EQ(run.discovery.status().size(), 2U);
  EXPECT_EQ(run.discovery.status()[1].source, "10.0.0.2:80");
  EXPECT_TRUE(run.discovery.status()[1].known);
}

TEST(Discovery, AttributesCanChangeWhileTheEndpointStaysTheSame) {
  DiscoveryRun run;
  run.discovery.set_sources(specs({"10.0.0.1:80", "10.0.0.2:80"}));
  const std::shared_ptr<Endpoint> second = run.upstream.endpoints()->members[1].endpoint;
  run.discovery.set_sources(specs({"10.0.0.1:80", "10.0.0.2:80 drain=true"}));
  EXPECT_EQ(run.text(), "10.0.0.1:80 10.0.0.2:80! ");
  EXPECT_EQ(run.upstream.endpoints()->members[1].endpoint, second);
  run.discovery.set_sources(specs({"10.0.0.2:80"}));
  EXPECT_EQ(run.text(), "10.0.0.2:80 ");
}

TEST(Discovery, SourcesAreMergedAndTheFirstOneDecides) {
  DiscoveryRun run;
  run.answer("a.test", {"10.0.0.1", "10.0.0.2"});
  run.answer("b.test", {"10.0.0.2", "10.0.0.3"});
  run.discovery.set_sources(specs({"dns:a.test:80 zone=a", "dns:b.test:80 weight=9"}));
  EXPECT_FALSE(run.discovery.settled());
  EXPECT_EQ(run.text(), "") << "a name takes a lookup";
  run.until_text("10.0.0.1:80@a 10.0.0.2:80@a 10.0.0.3:80*9 ");
  EXPECT_TRUE(run.discovery.settled());
  run.answer("b.test", {"10.0.0.4"});
  run.until_text("10.0.0.1:80@a 10.0.0.2:80@a 10.0.0.4:80*9 ");
}

TEST(Discovery, TheSetWaitsForNewSourcesBeforeItChanges) {
  DiscoveryRun run;
  run.answer("a.test", {"10.0.0.1"});
  run.discovery.set_sources(specs({"10.0.0.9:80"}));
  run.discovery.set_sources(specs({"dns:a.test:80"}));
  EXPECT_EQ(run.text(), "10.0.0.9:80 ") << "in use until the name is resolved";
  run.until_text("10.0.0.1:80 ");
}

TEST(Discovery, AnErrorRemovesNothing) {
  DiscoveryRun run;
  run.answer("a.test", {"10.0.0.1"});
  run.discovery.set_sources(specs({"dns:a.test:80"}));
  run.until_text("10.0.0.1:80 ");
  run.discovery.set_sources(specs({"dns:none.test:80"}));  // NXDOMAIN
  while (run.errors.empty()) run.loop.run_once(true);
  EXPECT_EQ(run.text(), "10.0.0.1:80 ") << "no source has a list: the old one stays";
  EXPECT_TRUE(run.discovery.settled());
  EXPECT_EQ(run.errors[0].rfind("dns:none.test:80: ", 0), 0U) << run.errors[0];
  EXPECT_FALSE(run.discovery.status()[0].error.empty());
}

TEST(Discovery, WithoutAnAnswerItGoesOnWhenPatienceIsOver) {
  DiscoveryRun run(std::chrono::milliseconds(1));
  const io::TestDnsServer::Answer silent{.mode = io::TestDnsServer::Mode::kSilent, .records = {}};
  run.server.set("slow.test", io::DnsType::kA, silent);
  run.server.set("slow.test", io::DnsType::kAaaa, silent);
  run.discovery.set_sources(specs({"dns:slow.test:80", "10.0.0.1:80"}));
  EXPECT_EQ(run.text(), "");
  run.until_text("10.0.0.1:80 ");
  EXPECT_TRUE(run.discovery.settled());
}

TEST(Discovery, ASourceInBothListsGoesOn) {
  DiscoveryRun run;
  run.answer("a.test", {"10.0.0.1"});
  run.discovery.set_sources(specs({"dns:a.test:80"}));
  run.until_text("10.0.0.1:80 ");
  run.discovery.set_sources(specs({"10.0.0.2:80", "dns:a.test:80 drain=true"}));
  EXPECT_EQ(run.text(), "10.0.0.2:80 10.0.0.1:80! ") << "known from before, without a lookup";
}

TEST(Discovery, AnUpstreamsTotalsStayWhenAnEndpointLeaves) {
  DiscoveryRun run;
  run.discovery.set_sources(specs({"10.0.0.1:80", "10.0.0.2:80"}));
  std::shared_ptr<Endpoint> first = run.upstream.endpoints()->members[0].endpoint;
  first->counters(0).attempts.add(5);
  first->counters(0).connections.add(1);
  run.discovery.set_sources(specs({"10.0.0.2:80"}));
  first->counters(0).attempts.add(2);  // an attempt that was under way
  EXPECT_EQ(run.upstream.totals().attempts, 7U);
  EXPECT_EQ(run.upstream.totals().connections, 1U);
  const Endpoint* const before = first.get();
  run.discovery.set_sources(specs({"10.0.0.1:80", "10.0.0.2:80"}));
  EXPECT_EQ(run.upstream.endpoints()->members[0].endpoint.get(), before)
      << "an address that comes back is the same endpoint while somebody holds it";
  run.discovery.set_sources(specs({"10.0.0.2:80"}));
  first->counters(0).connections.sub(1);
  first.reset();
  EXPECT_EQ(run.upstream.totals().attempts, 7U) << "its counters are gone, the sum is not";
  run.upstream.endpoints()->members[0].endpoint->counters(0).attempts.add(1);
  EXPECT_EQ(run.upstream.totals().attempts, 8U);
}

}  // namespace
}  // namespace weir::inline v0::upstream
