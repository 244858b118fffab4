#include "snapshot.h"

#include <gtest/gtest.h>

#include "top_testing.h"

namespace weir::app::top {
namespace {

TEST(TopSnapshot, ContinuesTheHistoryWithEachTick) {
  const nlohmann::json messages = sample("overloaded");
  Snapshot snapshot = snapshot_of(messages, Page::kNow);
  EXPECT_EQ(snapshot.history.size(), 121U);
  EXPECT_EQ(snapshot.history.back().refused, 648);
  EXPECT_EQ(snapshot.verdict.for_s, 41);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_TRUE(apply_message(snapshot, "tick", messages["tick"].dump()));
  }
  EXPECT_EQ(snapshot.history.size(), kHistoryMax);
  EXPECT_EQ(snapshot.spark.at("app").offered.size(), kSparkMax);
  nlohmann::json eventful = messages["tick"];
  eventful["events"] = messages["hello"]["events"];
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(apply_message(snapshot, "tick", eventful.dump()));
  EXPECT_EQ(snapshot.events.size(), kEventsMax);
}

TEST(TopSnapshot, LeavesAloneWhatIsNoMessage) {
  Snapshot snapshot = sample_snapshot("overloaded", Page::kNow);
  EXPECT_FALSE(apply_message(snapshot, "tick", "{\"now\": 1"));
  EXPECT_FALSE(apply_message(snapshot, "tick", "[1]"));
  EXPECT_FALSE(apply_message(snapshot, "other", "{}"));
  EXPECT_EQ(snapshot.verdict.for_s, 41);
  EXPECT_TRUE(apply_message(snapshot, "tick", "{\"state\": \"a\xff\"}"));
  EXPECT_EQ(snapshot.state, "a?");
}

TEST(TopSnapshot, KeepsWhatASecondTickLeavesOut) {
  nlohmann::json messages = sample("sick_replica");
  Snapshot snapshot = snapshot_of(messages, Page::kReplicas);
  ASSERT_EQ(snapshot.replicas.known.size(), 41U);
  nlohmann::json tick = sample_tick(messages, Page::kReplicas);
  nlohmann::json row = tick["replicas"]["rows"][0];
  row[5] = 300;
  row[13] = nullptr;
  tick["replicas"]["rows"] = nlohmann::json::array({row});
  tick["replicas"]["order"].erase(tick["replicas"]["order"].size() - 1);
  EXPECT_TRUE(apply_message(snapshot, "tick", tick.dump()));
  EXPECT_EQ(snapshot.replicas.known.size(), 40U);
  const Replica& changed = snapshot.replicas.known.at(row[0]);
  EXPECT_EQ(changed.p50_ms, 300);
  EXPECT_EQ(changed.spark.size(), 20U);
  EXPECT_EQ(changed.spark.back(), 300);

  messages = sample("overloaded");
  snapshot = snapshot_of(messages, Page::kMemory);
  tick = sample_tick(messages, Page::kMemory);
  tick["memory"].erase("addends");
  tick["memory"].erase("hints");
  EXPECT_TRUE(apply_message(snapshot, "tick", tick.dump()));
  EXPECT_EQ(snapshot.memory.addends.size(), 7U);
  EXPECT_EQ(snapshot.memory.hints.size(), 2U);
}

TEST(TopSnapshot, ReplicasGoOnSecondBySecond) {
  const nlohmann::json messages = sample("sick_replica");
  nlohmann::json tick = sample_tick(messages, Page::kReplicas);
  tick["replicas"]["columns"] = {"id", "p50_ms", "quiet", "spark"};
  tick["replicas"]["order"] = {7};
  Snapshot snapshot = snapshot_of(messages, Page::kNow);
  const auto then = [&](const nlohmann::json& rows) {
    tick["replicas"]["rows"] = rows;
    EXPECT_TRUE(apply_message(snapshot, "tick", tick.dump()));
    return snapshot.replicas.known.at(7).spark;
  };
  using Line = std::deque<double>;
  const nlohmann::json none = nlohmann::json::array();
  EXPECT_EQ(then({{7, 3, false, {1, 3}}}), (Line{1, 3})) << "the line ends with this second";
  EXPECT_EQ(then(none), (Line{1, 3, 3})) << "a row that is not sent is as before";
  EXPECT_EQ(then({{7, 9, false, nullptr}}), (Line{1, 3, 3, 9}));
  EXPECT_EQ(then({{7, 9, true, nullptr}}), (Line{1, 3, 3, 9, 0})) << "no answer, so no new p50";
  EXPECT_EQ(then(none), (Line{1, 3, 3, 9, 0, 0}));
}

TEST(TopSnapshot, TheLastMinuteOfHelloEndsWithItsOwnSecond) {
  nlohmann::json messages = sample("overloaded");
  messages["hello"]["spark"]["app"] = {{"offered", {1, 2}}, {"refused", {0, 0}}};
  messages["tick"]["now"] = messages["hello"]["now"];
  Snapshot snapshot = snapshot_of(messages, Page::kNow);
  EXPECT_EQ(snapshot.spark.at("app").offered, (std::deque<double>{1, 2}));
  messages["tick"]["now"] = messages["hello"]["now"].get<int>() + 1;
  EXPECT_TRUE(apply_message(snapshot, "tick", messages["tick"].dump()));
  EXPECT_EQ(snapshot.spark.at("app").offered, (std::deque<double>{1, 2, 1260}));
}

TEST(TopSnapshot, BeginsAnewWithHello) {
  Snapshot snapshot = sample_snapshot("sick_replica", Page::kReplicas);
  EXPECT_TRUE(apply_message(snapshot, "hello", sample("idle")["hello"].dump()));
  EXPECT_EQ(snapshot.history.size(), 30U);
  EXPECT_TRUE(snapshot.replicas.known.empty());
  EXPECT_EQ(snapshot.verdict.cause, "sick_replica");  // until the first tick
}

}  // namespace
}  // namespace weir::app::top
