#include "weir/experimental/config/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/net_address.h"

namespace weir::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config base() {
  Config config;
  config.upstreams.resize(2);
  config.upstreams[0].name = "a";
  config.upstreams[0].endpoints = {*upstream::parse_source("127.0.0.1:1")};
  config.upstreams[1].name = "b";
  config.upstreams[1].endpoints = {*upstream::parse_source("127.0.0.1:2")};
  config.routes.resize(1);
  config.routes[0].upstream = "a";
  return config;
}

TEST(Diff, EqualConfigurationsDoNotDiffer) {
  EXPECT_THAT(diff(base(), base()), IsEmpty());
}

TEST(Diff, SaysWhichChangesNeedARestart) {
  Config after = base();
  after.server.max_connections = 2048;
  after.admission.max_concurrent = 99;
  after.admission.classes.caps[1] = 500;
  after.trust.peers = {*parse_ip_range("10.0.0.0/8")};
  EXPECT_THAT(
      diff(base(), after),
      ElementsAre(ConfigChange{"server.max_connections", "1536", "2048", OptionApply::kRestart},
                  ConfigChange{"admission.max_concurrent", "1024", "99", OptionApply::kAdmission},
                  ConfigChange{"priority.high_limit", "0", "500", OptionApply::kAdmission},
                  ConfigChange{"trust.peers", "[]", "[\"10.0.0.0/8\"]", OptionApply::kRules}));
}

TEST(Diff, UpstreamsAreMatchedByName) {
  Config after = base();
  std::swap(after.upstreams[0], after.upstreams[1]);
  EXPECT_THAT(diff(base(), after), IsEmpty()) << "their order means nothing";
  after.upstreams[0].connect_timeout = std::chrono::seconds(2);
  after.upstreams[1].name = "c";
  EXPECT_THAT(diff(base(), after),
              ElementsAre(ConfigChange{"upstream.a", "\"a\"", "", OptionApply::kReplace},
                          ConfigChange{"upstream.b.connect_timeout_ms", "1000", "2000",
                                       OptionApply::kTimeouts},
                          ConfigChange{"upstream.c", "", "\"c\"", OptionApply::kReplace}));
}

TEST(Diff, EndpointsAndCertificatesTowardsUpstreamsAreLive) {
  Config before = base();
  before.upstreams[0].tls_enabled = true;
  Config after = before;
  after.upstreams[0].endpoints = {*upstream::parse_source("127.0.0.1:1 drain=true")};
  after.upstreams[0].tls.ca = "/new.pem";
  EXPECT_THAT(diff(before, after),
              ElementsAre(ConfigChange{"upstream.a.endpoints", "[\"127.0.0.1:1\"]",
                                       "[\"127.0.0.1:1 drain=true\"]", OptionApply::kEndpoints},
                          ConfigChange{"upstream.a.tls.ca", "\"\"", "\"/new.pem\"",
                                       OptionApply::kDialTls}));
  EXPECT_EQ(with_live_options(before, after).upstreams[0], after.upstreams[0]);
  EXPECT_FALSE(needs_replacing(before.upstreams[0], after.upstreams[0]));
}

TEST(Diff, WhatIsFixedWhileAnUpstreamExistsReplacesIt) {
  const Config before = base();
  const auto replaced = [&](auto change) {
    Config after = before;
    change(after.upstreams[0]);
    EXPECT_EQ(with_live_options(before, after), after);
    return needs_replacing(before.upstreams[0], after.upstreams[0]);
  };
  using upstream::UpstreamConfig;
  EXPECT_FALSE(replaced([](UpstreamConfig&) {}));
  EXPECT_FALSE(replaced([](UpstreamConfig& u) { u.idle_timeout *= 2; }));
  EXPECT_FALSE(replaced([](UpstreamConfig& u) { u.limit.max_limit = 7; }));
  EXPECT_TRUE(replaced([](UpstreamConfig& u) { u.protocol = upstream::Protocol::kHttp2; }));
  EXPECT_TRUE(replaced([](UpstreamConfig& u) { u.tls_enabled = true; }));
  EXPECT_TRUE(replaced([](UpstreamConfig& u) { u.max_connections = 7; }));
}

TEST(Diff, RoutesAreMatchedByPosition) {
  Config after = base();
  after.routes[0].priority = Priority::kHigh;
  after.routes.resize(2);
  after.routes[1].upstream = "b";
  EXPECT_THAT(diff(base(), after),
              ElementsAre(ConfigChange{"route[0].priority", "", "\"high\"", OptionApply::kRules},
                          ConfigChange{"route[1]", "", "\"b\"", OptionApply::kRules}));
  EXPECT_THAT(diff(after, base()),
              ElementsAre(ConfigChange{"route[0].priority", "\"high\"", "", OptionApply::kRules},
                          ConfigChange{"route[1]", "\"b\"", "", OptionApply::kRules}));
}

TEST(WithLiveOptions, TakesWhatAReloadMayChangeAndLeavesTheRest) {
  Config before;
  before.upstreams.resize(1);
  before.upstreams[0].name = "app";
  before.upstreams[0].max_connections = 7;
  Config after = before;
  after.admission.max_concurrent = 77;
  after.server.max_connections = 77;  // needs a restart
  after.upstreams[0].connect_timeout = std::chrono::milliseconds(77);
  after.upstreams[0].max_connections = 77;  // replaces it
  after.upstreams.resize(2);
  after.upstreams[1].name = "new";
  after.routes.resize(1);
  const Config now = with_live_options(before, after);
  EXPECT_EQ(now.admission.max_concurrent, 77U);
  EXPECT_EQ(now.server.max_connections, before.server.max_connections);
  EXPECT_EQ(now.upstreams, after.upstreams);
  EXPECT_EQ(now.routes.size(), 1U);
  for (const ConfigChange& change : diff(now, after)) EXPECT_FALSE(change.live()) << change.key;
}

TEST(WithLiveOptions, TlsIsSwitchedOnAndOffByARestart) {
  Config off;
  Config on = off;
  on.server.tls.certificate = "chain.pem";
  on.server.tls.private_key = "key.pem";
  for (const auto& [before, after] : {std::pair(off, on), std::pair(on, off)}) {
    ASSERT_EQ(diff(before, after).size(), 2U);
    for (const ConfigChange& change : diff(before, after)) EXPECT_FALSE(change.live());
    EXPECT_EQ(with_live_options(before, after), before);
  }
  Config renewed = on;
  renewed.server.tls.certificate = "new.pem";
  EXPECT_EQ(with_live_options(on, renewed), renewed);
}

}  // namespace
}  // namespace weir::config
