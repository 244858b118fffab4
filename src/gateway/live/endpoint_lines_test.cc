#include "live/endpoint_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/endpoint_set_testing.h"

namespace weir::gateway {
namespace {

using policy::EndpointState;
using policy::HealthEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr std::size_t kPlenty = 100;

struct EndpointLinesTest : ::testing::Test {
  /// The next second; the changes as text.
  std::vector<std::string> second(std::size_t most = kPlenty) {
    fake.now += seconds(1);
    std::vector<std::string> texts;
    for (const EndpointChange& change : lines.read(fake.set, fake.now, 1, most)) {
      texts.push_back(change.endpoint + " " + change.text);
    }
    return texts;
  }
  [[nodiscard]] const EndpointLine& line(std::size_t i) const { return *lines.all().at(i); }

  testkit::FakeEndpoints fake;
  EndpointLines lines;
};

TEST_F(EndpointLinesTest, ALineHasTheQuantilesOfItsOwnSecond) {
  upstream::Endpoint& one = fake.add(1, 50);
  fake.answer(one, 100, milliseconds(900));  // before anybody looked
  second();
  EXPECT_EQ(line(0).second.samples, 0U) << "what was counted before is not of the first second";
  EXPECT_EQ(line(0).p50, Duration(0));
  fake.answer(one, 98, milliseconds(20));
  fake.answer(one, 2, milliseconds(300));
  one.add_in_flight();
  second();
  EXPECT_EQ(line(0).second.samples, 100U);
  EXPECT_THAT(to_millis(line(0).p50), DoubleNear(20, 5));
  EXPECT_THAT(to_millis(line(0).p99), DoubleNear(300, 75));
  EXPECT_EQ(line(0).in_flight, 1U);
  EXPECT_EQ(line(0).weight, 50U);
  EXPECT_EQ(line(0).zone, "z");
  second();
  EXPECT_EQ(line(0).second.samples, 0U);
  EXPECT_THAT(to_millis(line(0).p50), DoubleNear(20, 5)) << "of the last second with answers";
  EXPECT_EQ(line(0).spark_ms.back(), 0) << "but the spark shows that there were none";
}

TEST_F(EndpointLinesTest, AllTogetherAreTheSumOfTheirHistograms) {
  upstream::Endpoint& fast = fake.add(1);
  upstream::Endpoint& slow = fake.add(2);
  second();
  fake.answer(fast, 90, milliseconds(10));
  fake.answer(slow, 10, milliseconds(500));
  second();
  EXPECT_EQ(lines.second().samples, 100U);
  EXPECT_THAT(to_millis(lines.second().p50), DoubleNear(10, 2.5));
  EXPECT_THAT(to_millis(lines.second().p99), DoubleNear(500, 125));
}

TEST_F(EndpointLinesTest, FailuresAreARateAndHedgesATotal) {
  upstream::Endpoint& one = fake.add(1);
  one.counters(1).failures[1].add(7);
  second();
  EXPECT_EQ(line(0).failures_per_s, 0);
  one.counters(0).failures[2].add(3);
  one.counters(1).failures[1].add(2);
  one.counters(0).hedges.add(4);
  one.counters(1).hedge_wins.add(1);
  fake.now += seconds(2);
  static_cast<void>(lines.read(fake.set, fake.now, 2, kPlenty));
  EXPECT_EQ(line(0).failures_per_s, 2.5);
  EXPECT_EQ(line(0).failures, 12U);
  EXPECT_EQ(line(0).hedges, 4U);
  EXPECT_EQ(line(0).hedge_wins, 1U);
}

TEST_F(EndpointLinesTest, SaysWhoJoinsWhoLeavesAndWhoseStateChanges) {
  fake.add(1);
  fake.add(2);
  EXPECT_THAT(second(), ElementsAre()) << "those of the start are no news";
  fake.add(3);
  EXPECT_THAT(second(), ElementsAre("127.0.0.1:3 joined"));
  fake.set.members[1].endpoint->note(HealthEvent::kConnectFailed, fake.now);
  EXPECT_THAT(second(), ElementsAre("127.0.0.1:2 available to ejected: connect_failed"));
  EXPECT_FALSE(line(1).open);
  EXPECT_EQ(line(1).state, EndpointState::kEjected);
  fake.remove(0);
  EXPECT_THAT(second(), ElementsAre("127.0.0.1:1 left"));
  EXPECT_EQ(lines.all().size(), 2U);
  EXPECT_THAT(second(), ElementsAre());
}

TEST_F(EndpointLinesTest, ALineStaysWithItsEndpointWhenTheOrderChanges) {
  upstream::Endpoint& one = fake.add(1);
  fake.add(2);
  second();
  fake.answer(one, 10, milliseconds(40));
  second();
  std::swap(fake.set.members[0], fake.set.members[1]);
  EXPECT_THAT(second(), ElementsAre());
  EXPECT_EQ(line(1).number, one.number());
  EXPECT_THAT(to_millis(line(1).p50), DoubleNear(40, 10));
  EXPECT_EQ(line(1).spark_ms.size(), 3U);
}

TEST_F(EndpointLinesTest, ThereAreNeverMoreLinesThanAllowed) {
  for (int port = 1; port <= 10; ++port) fake.add(port);
  second(4);
  EXPECT_EQ(lines.all().size(), 4U);
  second(2);
  EXPECT_EQ(lines.all().size(), 2U);
  second(0);
  EXPECT_TRUE(lines.all().empty());
}

TEST_F(EndpointLinesTest, TheSpreadComparesTheSlowestWithTheLowerMedian) {
  for (int port = 1; port <= 4; ++port) fake.add(port);
  second();
  EXPECT_EQ(lines.spread().worst, control::ReplicaSpread{}.worst) << "nothing to compare";
  const auto at = [&](std::size_t i) -> upstream::Endpoint& {
    return *fake.set.members[i].endpoint;
  };
  for (int i = 0; i < 2; ++i) {  // the slow one needs two seconds for enough answers
    fake.answer(at(0), 20, milliseconds(10));
    fake.answer(at(1), 20, milliseconds(10));
    fake.answer(at(2), 10, milliseconds(100));
    fake.answer(at(3), 3, milliseconds(5000));  // too few to compare
    second();
  }
  EXPECT_EQ(lines.spread().replicas, 4U);
  EXPECT_EQ(lines.spread().open, 4U);
  EXPECT_THAT(lines.spread().worst, DoubleNear(10, 4));
}

TEST_F(EndpointLinesTest, WhatAnOperatorDrainsDoesNotCount) {
  for (int port = 1; port <= 3; ++port) fake.add(port);
  fake.set.members[0].endpoint->note(HealthEvent::kOperatorDrain, fake.now);
  fake.set.members[1].endpoint->note(HealthEvent::kConnectFailed, fake.now);
  second();
  EXPECT_EQ(lines.spread().replicas, 2U);
  EXPECT_EQ(lines.spread().open, 1U);
}

}  // namespace
}  // namespace weir::gateway
