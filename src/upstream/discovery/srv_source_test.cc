#include "discovery/srv_source.h"

#include <gtest/gtest.h>

#include "discovery/source_testing.h"

namespace weir::inline v0::upstream {
namespace {

using io::DnsService;
using io::DnsType;
using io::dns_bytes::a;
using io::dns_bytes::aaaa;
using io::dns_bytes::srv;
using Mode = io::TestDnsServer::Mode;

constexpr const char* kName = "_http._tcp.api.test";

struct SrvRun : SourceRun {
  SrvRun() : SourceRun(std::string("srv:") + kName) {
    set_host("one.test", {a("10.0.0.1", 0)});
    set_host("two.test", {a("10.0.0.2", 0)});
  }
  void set_services(const std::vector<DnsService>& services) {
    std::vector<std::string> records;
    for (const DnsService& one : services) records.push_back(srv(one, 0));
    server.set(kName, DnsType::kSrv, {.mode = Mode::kRecords, .records = records});
  }
  void set_host(const std::string& host, std::vector<std::string> records) {
    server.set(host, DnsType::kA, {.mode = Mode::kRecords, .records = std::move(records)});
  }
  void set_mode(Mode mode) { server.set(kName, DnsType::kSrv, {.mode = mode, .records = {}}); }
  void more_lookups() { lookups(kName, DnsType::kSrv); }
};

TEST(SrvSource, ResolvesTargetsWithTheirWeights) {
  SrvRun run;
  run.set_services({{"one.test", 8081, 0, 5}, {"two.test", 8082, 0, 0}});
  run.start();
  run.until_text("10.0.0.1:8081*5 10.0.0.2:8082 ");
  EXPECT_EQ(run.sink.last[0].host, "api.test") << "not what DNS says, for TLS";
  EXPECT_EQ(run.source->status().source, "srv:_http._tcp.api.test");
  run.set_services({{"one.test", 8081, 0, 7}});
  run.until_text("10.0.0.1:8081*7 ");
}

TEST(SrvSource, OnlyTheLowestPriorityIsUsed) {
  SrvRun run;
  run.set_services({{"two.test", 8082, 20, 1}, {"one.test", 8081, 10, 1}});
  run.start();
  run.until_text("10.0.0.1:8081 ");
  EXPECT_EQ(run.server.queries("two.test", DnsType::kA), 0U);
  run.set_services({{"two.test", 8082, 20, 1}});
  run.until_text("10.0.0.2:8082 ");
}

TEST(SrvSource, ATargetMayHaveSeveralAddresses) {
  SrvRun run;
  run.set_host("one.test", {a("10.0.0.1", 0), a("10.0.0.3", 0)});
  run.server.set("one.test", DnsType::kAaaa, {.records = {aaaa("2001:db8::1", 0)}});
  run.set_services({{"one.test", 80, 0, 2}, {"two.test", 80, 0, 3}});
  run.start();
  run.until_text("[2001:db8::1]:80*2 10.0.0.2:80*3 10.0.0.1:80*2 10.0.0.3:80*2 ");
}

TEST(SrvSource, TwoTargetsWithOneAddressAreOneEndpoint) {
  SrvRun run;
  run.set_host("two.test", {a("10.0.0.1", 0)});
  run.set_services({{"one.test", 80, 0, 2}, {"two.test", 80, 0, 3}, {"two.test", 81, 0, 4}});
  run.start();
  run.until_text("10.0.0.1:80*2 10.0.0.1:81*4 ");
}

TEST(SrvSource, ATargetThatFailsKeepsItsAddresses) {
  SrvRun run;
  run.set_services({{"one.test", 8081, 0, 1}, {"two.test", 8082, 0, 1}});
  run.start();
  run.until_text("10.0.0.1:8081 10.0.0.2:8082 ");
  run.server.set("one.test", DnsType::kA, {.mode = Mode::kServFail, .records = {}});
  run.set_host("two.test", {a("10.0.0.9", 0)});
  run.until_text("10.0.0.1:8081 10.0.0.9:8082 ");
  EXPECT_EQ(run.sink.errors.back(), "one.test: A: servfail");
  run.set_host("one.test", {});
  run.until([&] { return run.sink.errors.back() == "one.test: it has no addresses"; });
  EXPECT_EQ(run.sink.text(), "10.0.0.1:8081 10.0.0.9:8082 ");
  run.set_services({{"two.test", 8082, 0, 1}});
  run.until_text("10.0.0.9:8082 ");
  EXPECT_EQ(run.sink.errors.back(), "");
}

TEST(SrvSource, WithoutAnyAddressNothingIsPublished) {
  SrvRun run;
  run.set_services({{"unknown.test", 8081, 0, 1}});
  run.start();
  run.until([&] { return !run.sink.errors.empty(); });
  EXPECT_EQ(run.sink.errors.back(), "unknown.test: A: not_found, AAAA: not_found");
  EXPECT_EQ(run.sink.lists, 0);
  EXPECT_FALSE(run.source->status().known);
}

TEST(SrvSource, NoFailureRemovesAnything) {
  for (const Mode mode : {Mode::kNotFound, Mode::kServFail, Mode::kGarbage}) {
    SrvRun run;
    run.set_services({{"one.test", 8081, 0, 1}});
    run.start();
    run.until_text("10.0.0.1:8081 ");
    run.set_mode(mode);
    run.until([&] { return !run.sink.errors.empty(); });
    EXPECT_TRUE(run.sink.errors.back().starts_with("SRV: ")) << run.sink.errors.back();
    run.more_lookups();
    EXPECT_EQ(run.sink.text(), "10.0.0.1:8081 ");
  }
}

TEST(SrvSource, RepeatedEmptyAnswersEmptyTheSet) {
  SrvRun run;
  run.set_services({{"one.test", 8081, 0, 1}});
  run.start();
  run.until_text("10.0.0.1:8081 ");
  run.set_services({});
  run.until_text("");
  run.set_services({{"", 0, 0, 0}});  // "there is no such service"
  run.more_lookups();
  run.set_services({{"one.test", 8081, 0, 1}});
  run.until_text("10.0.0.1:8081 ");
}

TEST(SrvSource, MayStopWhileTargetsAreLookedUp) {
  SrvRun run;
  run.set_services({{"one.test", 8081, 0, 1}});
  run.server.set("one.test", DnsType::kA, {.mode = Mode::kSilent, .records = {}});
  run.start();
  run.until([&] { return run.server.queries("one.test", DnsType::kA) > 0; });
  run.source->stop();
  run.source.reset();
  EXPECT_EQ(run.sink.lists, 0);
}

}  // namespace
}  // namespace weir::inline v0::upstream
