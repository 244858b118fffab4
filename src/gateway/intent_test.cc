#include "intent.h"

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Intent said(const TestHead& head, bool peer, std::optional<Priority> route_priority = {}) {
  Caller caller;
  caller.peer = peer;
  Route route;
  route.config.priority = route_priority;
  return read_intent(head.list(), caller, route);
}

TEST(Intent, AStrangersWordsDoNotCount) {
  const TestHead head{
      {"x-weir-priority", "critical"}, {"x-weir-deadline-ms", "5"}, {"x-weir-attempt", "2"}};
  const Intent intent = said(head, false);
  EXPECT_EQ(intent.priority, Priority::kNormal);
  EXPECT_FALSE(intent.time_left.has_value());
  EXPECT_FALSE(intent.hedge());
}

TEST(Intent, APeersWordsDo) {
  const TestHead head{
      {"x-weir-priority", "high"}, {"x-weir-deadline-ms", "250"}, {"x-weir-attempt", "2"}};
  const Intent intent = said(head, true);
  EXPECT_EQ(intent.priority, Priority::kHigh);
  EXPECT_EQ(intent.time_left, milliseconds(250));
  EXPECT_TRUE(intent.hedge());
}

TEST(Intent, APeersBaggageCountsIfItDoesNotSayTheClassItself) {
  const TestHead baggage{{"baggage", "weir.priority=low"}};
  EXPECT_EQ(said(baggage, true).priority, Priority::kLow);
  EXPECT_EQ(said(baggage, false).priority, Priority::kNormal);
  EXPECT_EQ(said(baggage, true, Priority::kHigh).priority, Priority::kHigh);
  const TestHead both{{"baggage", "weir.priority=low"}, {"x-weir-priority", "normal"}};
  EXPECT_EQ(said(both, true).priority, Priority::kNormal);
}

TEST(AdmissionRequestFor, CarriesWhatRouteIntentAndRequestSay) {
  Route route;
  route.config.cost = 3;
  const Identity who{.key = {.low = 1, .high = 2}, .label = {}};
  const AdmissionRequest ask = admission_request_for(
      route, {.priority = Priority::kHigh, .time_left = milliseconds(5), .attempt = 1},
      {.peer = who,
       .actor = who,
       .source = 9,
       .received_at = TimePoint(milliseconds(10)),
       .body_length = 7});
  EXPECT_EQ(ask.priority, Priority::kHigh);
  EXPECT_EQ(ask.cost, 3U);
  EXPECT_TRUE(ask.peer.present() && ask.actor.present());
  EXPECT_EQ(ask.source, 9U);
  EXPECT_EQ(ask.deadline, TimePoint(milliseconds(15)));
  EXPECT_EQ(ask.bytes, 0U);  // held bytes are charged as they arrive
  Intent hedge;
  hedge.attempt = 2;
  EXPECT_FALSE(admission_request_for(route, hedge, {.actor = who}).actor.present());
}

TEST(AdmissionRequestFor, AnAnnouncedBodyIsAskedForAsAWhole) {
  Route route;
  route.config.bytes = BytesCharged::kAnnounced;
  route.config.bytes_estimate = 1000;
  EXPECT_EQ(admission_request_for(route, {}, {.body_length = 0}).bytes, 0U);
  EXPECT_EQ(admission_request_for(route, {}, {.body_length = 7}).bytes, 7U);
  EXPECT_EQ(admission_request_for(route, {}, {.body_length = std::nullopt}).bytes, 1000U);
}

TEST(Intent, UnknownAndMissingClassesAreNormal) {
  EXPECT_EQ(said(TestHead{}, true).priority, Priority::kNormal);
  EXPECT_EQ(said(TestHead{{"x-weir-priority", "urgent"}}, true).priority, Priority::kNormal);
  EXPECT_EQ(said(TestHead{{"x-weir-priority", ""}}, true).priority, Priority::kNormal);
}

TEST(Intent, TheRouteDecidesBeforeThePeer) {
  const TestHead head{{"x-weir-priority", "critical"}};
  EXPECT_EQ(said(head, true, Priority::kLow).priority, Priority::kLow);
  EXPECT_EQ(said(head, false, Priority::kCritical).priority, Priority::kCritical);
}

TEST(Intent, DeadlinesAreWholeMillisecondsWithinADay) {
  const auto left = [](std::string_view text) {
    return said(TestHead{{"x-weir-deadline-ms", text}}, true).time_left;
  };
  EXPECT_EQ(left("0"), milliseconds(0));
  EXPECT_EQ(left("18446744073709551615"), hours(24));
  EXPECT_FALSE(left("").has_value());
  EXPECT_FALSE(left("-1").has_value());
  EXPECT_FALSE(left("1.5").has_value());
  EXPECT_FALSE(left("99999999999999999999999").has_value());
}

TEST(Intent, TheFirstAttemptIsNoHedge) {
  EXPECT_FALSE(said(TestHead{{"x-weir-attempt", "1"}}, true).hedge());
  EXPECT_FALSE(said(TestHead{{"x-weir-attempt", "x"}}, true).hedge());
  EXPECT_TRUE(said(TestHead{{"x-weir-attempt", "3"}}, true).hedge());
}

}  // namespace
}  // namespace weir::gateway
