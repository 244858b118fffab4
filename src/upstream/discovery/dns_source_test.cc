#include "discovery/dns_source.h"

#include <gtest/gtest.h>

#include "discovery/source_testing.h"

namespace weir::inline v0::upstream {
namespace {

using io::DnsType;
using io::dns_bytes::a;
using io::dns_bytes::aaaa;
using io::dns_bytes::cname;
using io::dns_bytes::name;
using Mode = io::TestDnsServer::Mode;

struct DnsRun : SourceRun {
  using SourceRun::SourceRun;
  DnsRun() : SourceRun("dns:api.test:8080") {}

  void set_v4(std::vector<std::string> records) {
    server.set("api.test", DnsType::kA, {.mode = Mode::kRecords, .records = std::move(records)});
  }
  void set_v6(std::vector<std::string> records) {
    server.set("api.test", DnsType::kAaaa, {.mode = Mode::kRecords, .records = std::move(records)});
  }
  void set_mode(Mode mode) {
    server.set("api.test", DnsType::kA, {.mode = mode, .records = {}});
    server.set("api.test", DnsType::kAaaa, {.mode = mode, .records = {}});
  }
  void more_lookups() { lookups("api.test", DnsType::kAaaa); }
};

TEST(DnsSource, FamiliesAlternateAndHaveThePortAndTheConfiguredName) {
  DnsRun run;
  run.set_v4({a("10.0.0.1"), a("10.0.0.2")});
  run.set_v6({aaaa("2001:db8::1")});
  run.start();
  EXPECT_EQ(run.sink.lists, 0) << "not from within start()";
  run.until_text("[2001:db8::1]:8080 10.0.0.1:8080 10.0.0.2:8080 ");
  EXPECT_EQ(run.sink.last[0].host, "api.test");
  const SourceStatus& status = run.source->status();
  EXPECT_EQ(status.source, "dns:api.test:8080");
  EXPECT_EQ(status.endpoints, 3U);
  EXPECT_TRUE(status.known);
  EXPECT_FALSE(status.cut);
  EXPECT_EQ(status.reason, "records");
  EXPECT_EQ(status.error, "");
}

TEST(DnsSource, FollowsChanges) {
  DnsRun run;
  run.set_v4({a("10.0.0.1", 0), a("10.0.0.2", 0)});
  run.start();
  run.until_text("10.0.0.1:8080 10.0.0.2:8080 ");
  run.set_v4({a("10.0.0.2", 0), a("10.0.0.3", 0)});
  run.until_text("10.0.0.2:8080 10.0.0.3:8080 ");
  run.set_v4({cname("other.test", 0), a("10.0.0.9", 0, name("other.test"))});
  run.until_text("10.0.0.9:8080 ");
}

TEST(DnsSource, AnotherOrderIsNoChange) {
  DnsRun run;
  run.set_v4({a("10.0.0.1", 0), a("10.0.0.2", 0)});
  run.start();
  run.until_text("10.0.0.1:8080 10.0.0.2:8080 ");
  run.set_v4({a("10.0.0.2", 0), a("10.0.0.1", 0)});
  run.more_lookups();
  EXPECT_EQ(run.sink.lists, 1);
}

TEST(DnsSource, AFamilyGoesAndTheOtherStays) {
  DnsRun run;
  run.set_v4({a("10.0.0.1")});
  run.set_v6({aaaa("2001:db8::1")});
  run.start();
  run.until_text("[2001:db8::1]:8080 10.0.0.1:8080 ");
  run.set_v4({});
  run.until_text("[2001:db8::1]:8080 ");
  EXPECT_TRUE(run.sink.errors.empty());
}

TEST(DnsSource, AFamilyThatFailsKeepsItsAddresses) {
  DnsRun run;
  run.set_v4({a("10.0.0.1")});
  run.set_v6({aaaa("2001:db8::1")});
  run.start();
  run.until_text("[2001:db8::1]:8080 10.0.0.1:8080 ");
  run.server.set("api.test", DnsType::kA, {.mode = Mode::kServFail, .records = {}});
  run.set_v6({aaaa("2001:db8::2")});
  run.until_text("[2001:db8::2]:8080 10.0.0.1:8080 ");
  EXPECT_EQ(run.sink.errors.back(), "A: servfail");
}

TEST(DnsSource, NoFailureRemovesAnything) {
  struct Row {
    Mode mode;
    const char* error;
  };
  for (const Row& row : {Row{Mode::kNotFound, "A: not_found, AAAA: not_found"},
                         Row{Mode::kServFail, "A: servfail, AAAA: servfail"},
                         Row{Mode::kGarbage, "A: bad_answer, AAAA: bad_answer"}}) {
    DnsRun run;
    run.set_v4({a("10.0.0.1")});
    run.start();
    run.until_text("10.0.0.1:8080 ");
    run.set_mode(row.mode);
    run.until([&] { return !run.sink.errors.empty(); });
    run.more_lookups();
    EXPECT_EQ(run.sink.errors, std::vector<std::string>{row.error}) << "told once";
    EXPECT_EQ(run.sink.text(), "10.0.0.1:8080 ");
    EXPECT_EQ(run.source->status().error, row.error);
    EXPECT_NE(run.source->status().failing_since, TimePoint{});
    run.set_mode(Mode::kRecords);
    run.set_v4({a("10.0.0.1")});
    run.until([&] { return run.sink.errors.size() == 2; });
    EXPECT_EQ(run.sink.errors.back(), "") << "it is over";
    EXPECT_EQ(run.sink.lists, 1);
  }
}

TEST(DnsSource, ASilentServerRemovesNothing) {
  DnsRun run("dns:api.test:8080", fast_times(), std::chrono::milliseconds(50));
  run.set_v4({a("10.0.0.1")});
  run.start();
  run.until_text("10.0.0.1:8080 ");
  run.set_mode(Mode::kSilent);
  run.until([&] {
    return !run.sink.errors.empty() && run.sink.errors.back() == "A: timeout, AAAA: timeout";
  });
  run.more_lookups();
  EXPECT_GT(run.resolver.restarts(), 0U);
  EXPECT_EQ(run.sink.text(), "10.0.0.1:8080 ");
  run.set_mode(Mode::kRecords);
  run.set_v4({a("10.0.0.2")});
  run.until_text("10.0.0.2:8080 ");
}

TEST(DnsSource, RepeatedEmptyAnswersEmptyTheSet) {
  DnsRun run;
  run.set_v4({a("10.0.0.1")});
  run.start();
  run.until_text("10.0.0.1:8080 ");
  const std::size_t before = run.server.queries("api.test", DnsType::kA);
  run.set_v4({});
  run.until_text("");
  EXPECT_GE(run.server.queries("api.test", DnsType::kA) - before, 3U);
  EXPECT_EQ(run.sink.errors, (std::vector<std::string>{"the name has no addresses", ""}));
  EXPECT_EQ(run.source->status().reason, "empty_confirmed");
  run.set_v4({a("10.0.0.5")});
  run.until_text("10.0.0.5:8080 ");
}

TEST(DnsSource, OfAThousandAddressesSomeAreUsedAndThatIsTold) {
  DnsRun run;
  std::vector<std::string> records;
  for (int i = 0; i < 1000; ++i) {
    records.push_back(
        a(("10.1." + std::to_string(i / 250) + '.' + std::to_string(i % 250)).c_str(), 0));
  }
  run.set_v4(records);
  run.start();
  run.until([&] { return run.sink.lists == 1; });
  EXPECT_EQ(run.sink.last.size(), 64U);
  EXPECT_TRUE(run.source->status().cut);
  std::reverse(records.begin(), records.end());
  run.set_v4(records);
  run.more_lookups();
  EXPECT_EQ(run.sink.lists, 1);
}

TEST(DnsSource, LocalhostNeedsNoServer) {
  DnsRun run("localhost:80");
  run.start();
  run.until([&] { return run.sink.lists == 1; });
  EXPECT_FALSE(run.sink.last.empty());
}

TEST(DnsSource, RefreshLooksBeforeTheTtlEnds) {
  policy::DiscoveryTimes times = fast_times();
  times.ttl_max = std::chrono::hours(1);
  DnsRun run("dns:api.test:8080", times);
  run.set_v4({a("10.0.0.1", 3600)});
  run.set_v6({aaaa("2001:db8::1", 3600)});
  run.start();
  run.until([&] { return run.sink.lists == 1; });
  run.set_v4({a("10.0.0.2", 3600)});
  run.source->refresh();
  run.until_text("[2001:db8::1]:8080 10.0.0.2:8080 ");
}

TEST(DnsSource, AfterStopThereAreNoCalls) {
  DnsRun run;
  run.set_v4({a("10.0.0.1", 0)});
  run.start();
  run.until_text("10.0.0.1:8080 ");
  run.set_v4({a("10.0.0.2", 0)});
  run.source->refresh();
  run.loop.run_once();
  run.source->stop();
  RecordingSink other;
  const auto second = make_source(*parse_source("dns:api.test:8080"), run.resolver,
                                  {.rng = Rng(2), .times = fast_times()});
  second->start(run.loop, other);
  run.until([&] { return other.lists > 0; });
  EXPECT_EQ(run.sink.text(), "10.0.0.1:8080 ");
}

}  // namespace
}  // namespace weir::inline v0::upstream
