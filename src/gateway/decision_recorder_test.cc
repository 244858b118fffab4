#include "decision_recorder.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway_budget.h"

#include "core.h"
#include "live/live_views.h"

namespace weir::gateway {
namespace {

using policy::RecordedDecision;

DecisionRecorder made(std::uint32_t loops) {
  return {loops, Rng(1), {.at = time_from_ns(0), .unix_us = 5}};
}

RecordedDecision refusal(std::int64_t ms, std::uint32_t request) {
  RecordedDecision decision;
  decision.at = std::chrono::milliseconds(ms);
  decision.request = request;
  decision.reason = 1;
  return decision;
}

TEST(DecisionRecorder, HoldsOneMebibyteHoweverManyLoops) {
  for (const std::uint32_t loops : {1U, 3U, 16U}) {
    DecisionRecorder recorder = made(loops);
    for (std::uint32_t loop = 0; loop < loops; ++loop) {
      for (std::uint32_t i = 0; i < 27'000; ++i) recorder.put(loop, refusal(i, i));
    }
    const std::size_t bytes = recorder.all().size() * policy::kDecisionBytes;
    EXPECT_LE(bytes, DecisionRecorder::kBytes);
    EXPECT_GT(bytes, DecisionRecorder::kBytes * 99 / 100);
    EXPECT_EQ(recorder.recorded(), std::uint64_t{loops} * 27'000);
  }
}

TEST(DecisionRecorder, IsCompleteSinceTheLoopThatOverwroteTheNewestDecision) {
  DecisionRecorder recorder = made(2);
  const std::uint32_t places = DecisionRecorder::kBytes / 2 / policy::kDecisionBytes;
  EXPECT_EQ(recorder.complete_since(), Duration(0));
  recorder.put(1, refusal(7, 1));
  for (std::uint32_t i = 0; i < places; ++i) recorder.put(0, refusal(i, i));
  EXPECT_EQ(recorder.complete_since(), Duration(0)) << "nothing was overwritten";
  for (std::uint32_t i = 0; i < 100; ++i) recorder.put(0, refusal(places + i, i));
  EXPECT_EQ(recorder.complete_since(), Duration(std::chrono::milliseconds(100)))
      << "not 7 ms, the oldest that is there: a neighbour of it is gone";
  for (std::uint32_t i = 0; i < places + 5; ++i) recorder.put(1, refusal(500 + i, i));
  EXPECT_EQ(recorder.complete_since(), Duration(std::chrono::milliseconds(505)));
}

TEST(DecisionRecorder, ATagDependsOnEveryByteOfTheIdAndOnTheKey) {
  const DecisionRecorder recorder = made(1);
  std::set<std::uint32_t> tags = {recorder.tag_of_request("")};
  std::size_t ids = 1;
  const std::string id(36, 'x');
  for (std::size_t length = 1; length <= id.size(); ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const char c : {'a', 'b'}) {
        std::string other = id.substr(0, length);
        other[at] = c;
        tags.insert(recorder.tag_of_request(other));
        ++ids;
      }
    }
  }
  EXPECT_EQ(tags.size(), ids)
      << "of 1333 ids, two have one tag in 1 of 2,400 runs; the key is fixed";
  EXPECT_FALSE(tags.contains(0)) << "none";
  const DecisionRecorder another(1, Rng(2), {.at = time_from_ns(0), .unix_us = 5});
  EXPECT_NE(another.tag_of_request(id), recorder.tag_of_request(id));
}

TEST(DecisionRecorder, IsAnAddendOfTheCeiling) {
  std::uint64_t bytes = 0;
  for (const MemoryAddend& addend : gateway_budget(config::Config()).addends) {
    if (addend.holder == "gateway recorder") bytes += addend.bytes();
  }
  EXPECT_GE(bytes, DecisionRecorder::kBytes);
}

TEST(DecisionRecorder, GivesTheNewestRefusalsOfAllLoops) {
  DecisionRecorder recorder = made(2);
  for (std::uint32_t i = 0; i < 100; ++i) recorder.put(i % 2, refusal(i, i));
  RecordedDecision served = refusal(1000, 1000);
  served.end = policy::DecisionEnd::kOk;
  recorder.put(0, served);
  const auto newest = recorder.newest_refusals(3);
  EXPECT_TRUE(recorder.newest_refusals(3, ScopeId{4}).empty());
  ASSERT_EQ(newest.size(), 3U);
  EXPECT_EQ(newest[0].request, 99U);
  EXPECT_EQ(newest[1].request, 98U);
  EXPECT_EQ(newest[2].request, 97U);
  EXPECT_TRUE(made(1).newest_refusals(3).empty());
  const auto named = recorder.find(tag_name(newest[1]));
  ASSERT_TRUE(named.has_value()) << "by its name, since the id is not kept";
  EXPECT_EQ(*named, newest[1]);
  EXPECT_FALSE(recorder.find("~zz").has_value());
}

TEST(DecisionRecorder, TheLiveViewShowsTheNewestRefusalsOfItsUpstream) {
  config::Config config;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  config.upstreams[0].endpoints = {*upstream::parse_source("127.0.0.1:1")};
  ASSERT_TRUE(config.validate().empty());
  GatewayCore core(config, 1, Rng(1), {});
  RecordedDecision decision = refusal(5, 0xABCD);
  decision.reason = static_cast<std::uint8_t>(Reason::kOverload);
  decision.priority = Priority::kLow;
  decision.limit = 44;
  decision.in_flight = 41;
  core.recorder.put(0, decision);  // of no upstream
  decision.scope = static_cast<std::uint16_t>(ScopeId::kFirst);
  core.recorder.put(0, decision);
  const LiveJson recent = recent_refusals(core, "app", time_from_ns(0));
  ASSERT_EQ(recent.size(), 1U);
  EXPECT_EQ(recent[0]["id"], "~abcd");
  EXPECT_EQ(recent[0]["class"], "low");
  EXPECT_EQ(recent[0]["reason"], "overload");
  EXPECT_EQ(recent[0]["limit"], 44);
  EXPECT_EQ(recent[0]["in_flight"], 41);
  EXPECT_TRUE(recent_refusals(core, "gone", time_from_ns(0)).empty());
}

}  // namespace
}  // namespace weir::gateway
