#include "upstream_table.h"

#include <atomic>
#include <barrier>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core.h"

namespace weir::gateway {
namespace {

using ::testing::ElementsAre;

config::Config config_with(std::initializer_list<const char*> names) {
  config::Config config;
  config.reload.connections_spare = 10000;
  for (const char* name : names) {
    upstream::UpstreamConfig upstream;
    upstream.name = name;
    upstream.endpoints = {*upstream::parse_source("127.0.0.1:1")};
    config.upstreams.push_back(upstream);
  }
  return config;
}

/// A core whose upstreams a test changes.
struct UpstreamTableTest : ::testing::Test {
  std::shared_ptr<const UpstreamSet> change_to(const config::Config& after) {
    const UpstreamTable::Change change{.before = in_force, .after = after};
    EXPECT_EQ(table.objection(change), "");
    std::shared_ptr<const UpstreamSet> set = table.made_for(change, {});
    table.put_in_force(set);
    in_force = after;
    return set;
  }
  std::shared_ptr<ServedUpstream> at(std::size_t i) { return table.in_force()->all[i]; }

  config::Config in_force = config_with({"a", "b"});
  std::mutex gone_mutex;  // the last user of an upstream may be any thread
  std::vector<std::string> gone;
  GatewayCore core{in_force, 2, Rng(1),
                   GatewayCore::Parts{.on_upstream_gone = [this](const std::string& name) {
                     const std::scoped_lock lock(gone_mutex);
                     gone.push_back(name);
                   }}};
  UpstreamTable& table = core.upstreams;
};

TEST_F(UpstreamTableTest, ThoseThatStayAreTheSameObjects) {
  const auto a = at(0);
  const auto b = at(1);
  config::Config next = config_with({"b", "c", "a"});
  next.upstreams[2].balance = policy::Balance::kRoundRobin;
  const auto set = change_to(next);
  EXPECT_THAT(set->names(), ElementsAre("b", "c", "a"));
  EXPECT_EQ(set->all[0], b);
  EXPECT_NE(set->all[2], a) << "replaced";
  EXPECT_EQ(&set->all[2]->place, &a->place);
  EXPECT_EQ(core.controller.scope_count(), 3U);
}

TEST_F(UpstreamTableTest, TheScopeIsFreeWhenTheLastUserLetsGo) {
  std::shared_ptr<ServedUpstream> user = at(1);
  const ScopeId scope = user->scope();
  change_to(config_with({"a"}));
  EXPECT_EQ(core.controller.scope_count(), 2U);
  EXPECT_THAT(gone, ElementsAre());
  ASSERT_EQ(table.leaving().size(), 1U);
  EXPECT_EQ(core.controller.scope_stats(scope, TimePoint{}).name, "b");
  user.reset();
  EXPECT_EQ(core.controller.scope_count(), 1U);
  EXPECT_THAT(gone, ElementsAre("b"));
  EXPECT_TRUE(table.leaving().empty());
  change_to(config_with({"a", "c"}));
  EXPECT_EQ(at(1)->scope(), scope) << "used again";
}

TEST_F(UpstreamTableTest, ASetThatNeverComesInForceLeavesNothing) {
  {
    const config::Config next = config_with({"a", "b", "c"});
    const auto set = table.made_for({.before = in_force, .after = next}, {});
    EXPECT_EQ(core.controller.scope_count(), 3U);
  }
  EXPECT_EQ(core.controller.scope_count(), 2U);
  EXPECT_THAT(gone, ElementsAre());
  EXPECT_TRUE(table.leaving().empty());
}

TEST_F(UpstreamTableTest, WhatAnUpstreamCountedStaysInTheTotals) {
  at(0)->place.counters[0]->answered[1].add(5);
  at(1)->place.counters[1]->answered[1].add(7);
  at(1)->place.counters[0]->aborted[0].add(1);
  config::Config replaced = in_force;
  replaced.upstreams[0].max_connections = 5;
  change_to(replaced);
  EXPECT_EQ(at(0)->place.counters[0]->answered[1].get(), 5U) << "the name's counters go on";
  change_to(config_with({"a"}));
  EXPECT_EQ(core.totals().answered, 12U);
  EXPECT_EQ(core.totals().aborted, 1U);
  change_to(config_with({"a", "b"}));
  EXPECT_EQ(at(1)->place.counters[1]->answered[1].get(), 0U) << "another upstream of that name";
  EXPECT_EQ(core.totals().answered, 12U);
}

TEST_F(UpstreamTableTest, ReadersMeetOnlyUpstreamsThatExist) {
  std::atomic<bool> done{false};
  std::barrier begun(3);
  const auto read = [&] {
    begun.arrive_and_wait();
    while (!done.load()) {
      const std::shared_ptr<const UpstreamSet> set = table.in_force();
      for (const auto& one : set->all) {
        const ScopeStats stats = core.controller.scope_stats(one->scope(), TimePoint{});
        EXPECT_EQ(stats.name, one->name());
        EXPECT_EQ(one->upstream.endpoints()->members.size(), 1U);
      }
      EXPECT_EQ(core.totals().answered, 1U);
      core.controller.expire(TimePoint{} + std::chrono::seconds(1));
      for (const auto& one : table.leaving()) EXPECT_FALSE(one.name.empty());
    }
  };
  at(1)->place.counters[0]->answered[1].add(1);
  std::thread first(read);
  std::thread second(read);
  begun.arrive_and_wait();
  for (int i = 0; i < 100; ++i) {
    config::Config next = config_with({"a"});
    if (i % 3 == 1) next = config_with({"b", "c"});
    if (i % 3 == 2) next.upstreams[0].max_connections = 5;
    const UpstreamTable::Change change{.before = in_force, .after = next};
    if (!table.objection(change).empty()) continue;  // a reader holds the old ones
    change_to(next);
  }
  done = true;
  first.join();
  second.join();
}

}  // namespace
}  // namespace weir::gateway
