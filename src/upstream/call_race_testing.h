#pragma once

// Two origins with a warm connection each, and an upstream that hedges.

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "h2_origin_testing.h"
#include "upstream/dispatcher_testing.h"

namespace weir::inline v0::upstream {

class CallRaceTest : public DispatcherTest {
 protected:
  static constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

  CallRaceTest() {
    config.retry_budget_pct = 0;
    config.retry_budget_tokens_max = 2;
    config.connection_age_max = std::chrono::hours(1);
    config.idle_timeout = std::chrono::hours(1);
  }
  static policy::HedgeConfig after(Duration delay) {
    policy::HedgeConfig hedge;
    hedge.default_delay = delay;
    hedge.max_delay = delay;
    return hedge;
  }
  static policy::HedgeConfig soon() { return after(std::chrono::milliseconds(2)); }
  /// Late enough to change something before.
  static policy::HedgeConfig later() { return after(std::chrono::milliseconds(50)); }
  static policy::HedgeConfig never() { return after(std::chrono::seconds(60)); }

  /// Both connections are accepted, unless there are no warm ones.
  void make_two(const policy::HedgeConfig& hedge) { make_two(hedge, found({a.name(), b.name()})); }
  void make_two(const policy::HedgeConfig& hedge, std::vector<DiscoveredEndpoint> endpoints) {
    make({}, config);
    upstream->set_endpoints(std::move(endpoints), loop.now());
    upstream->set_hedge(hedge);
    loop.run_once();
    if (config.warm_connections == 0) return;
    run_until([&] { return dispatcher->idle_connections() == 2; });
    a.accept(loop);
    b.accept(loop);
  }
  /// The one that a request arrives at, whose head is read.
  FakeOrigin& asked_one() {
    for (int i = 0; i < 2000; ++i) {
      loop.run_once();
      if (!a.read_some().empty()) return a;
      if (!b.read_some().empty()) return b;
    }
    ADD_FAILURE() << "no request";
    return a;
  }
  FakeOrigin& start(Asked& asked) {
    EXPECT_TRUE(get(asked.call));
    return asked_one();
  }
  FakeOrigin& other_than(FakeOrigin& one) { return &one == &a ? b : a; }
  [[nodiscard]] std::size_t index_of(const FakeOrigin& origin) const {
    return endpoint(0).name() == origin.name() ? 0 : 1;
  }
  [[nodiscard]] Endpoint& endpoint_of(const FakeOrigin& origin) const {
    return endpoint(index_of(origin));
  }
  /// No other endpoint is asked, although there is time for it.
  void stay_alone(FakeOrigin& primary) {
    let_pass(std::chrono::milliseconds(30));
    EXPECT_EQ(other_than(primary).read_some(), "");
    EXPECT_EQ(sum(&CallCounters::hedges), 0U);
  }
  [[nodiscard]] std::uint64_t sum(OwnedCount CallCounters::*count) const {
    return upstream->sum([&](const CallCounters& c) { return (c.*count).get(); });
  }
  [[nodiscard]] std::uint64_t no_hedge(policy::NoHedge reason) const {
    return upstream->sum(
        [&](const CallCounters& c) { return c.no_hedge[static_cast<std::size_t>(reason)].get(); });
  }
  [[nodiscard]] std::uint64_t losers(policy::LoserEnd how) const {
    return upstream->sum(
        [&](const CallCounters& c) { return c.losers[static_cast<std::size_t>(how)].get(); });
  }
  /// Both endpoints have this score; the usual answer takes a fifth of it. Returns it in ns.
  double give_scores(Duration score) {
    Upstream::Published published = upstream->published();
    published.latency.median = score / 5;
    upstream->publish(published);
    const auto ns = static_cast<double>(score.count());
    const TimePoint then = loop.now() - std::chrono::milliseconds(100);
    for (const std::size_t i : {0U, 1U}) endpoint(i).set_score({.ns = ns, .updated_at = then});
    return ns;
  }
  /// Left in the budget of the upstream.
  [[nodiscard]] std::uint32_t tokens() const {
    return upstream->budget().balance_millitokens() / policy::kRedundancyToken;
  }

  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config;
};

}  // namespace weir::inline v0::upstream
