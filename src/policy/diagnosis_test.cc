#include "policy/diagnosis.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

// A service that answers 1000 a second in 10 ms, with room for more.
ScopeSecond usual_second() {
  ScopeSecond s;
  s.offered = s.answered = 1000;
  s.latency_ms = s.baseline_ms = 10;
  s.limit = 40;
  s.limit_max = 1024;
  s.in_flight = 10;
  return s;
}

// The cause after `seconds` of `second`, behind a minute of calm.
Cause after_calm(const ScopeSecond& second, int seconds = 10) {
  Diagnoser diagnoser;
  for (int i = 0; i < 60; ++i) EXPECT_EQ(diagnoser.on_second(usual_second()).cause, Cause::kFine);
  Diagnosis last;
  for (int i = 0; i < seconds; ++i) last = diagnoser.on_second(second);
  return last.cause;
}

TEST(Diagnosis, MoreThanUsualAtFullThroughputIsDemand) {
  ScopeSecond s = usual_second();
  s.offered = 3000;
  s.answered = 1500;
  s.refused_limit = 1500;
  s.latency_ms = 13;
  EXPECT_EQ(after_calm(s), Cause::kDemand);
}

TEST(Diagnosis, TheSameDemandWithLongerLatencyIsASlowerService) {
  ScopeSecond s = usual_second();
  s.latency_ms = 20;
  s.in_flight = 20;
  EXPECT_EQ(after_calm(s), Cause::kServiceSlower);
}

TEST(Diagnosis, TheSameDemandWithLessThroughputAndRefusalsIsASlowerService) {
  ScopeSecond s = usual_second();
  s.answered = 500;
  s.refused_limit = 500;
  EXPECT_EQ(after_calm(s), Cause::kServiceSlower);
}

TEST(Diagnosis, SilenceWhileRequestsAreInFlightIsUnreachable) {
  ScopeSecond s = usual_second();
  s.answered = 0;
  s.latency_ms = 0;
  s.refused_limit = 900;
  EXPECT_EQ(after_calm(s, 2), Cause::kUnreachable);
  s.replicas = 3;
  s.replicas_open = 0;
  s.in_flight = 0;
  EXPECT_EQ(after_calm(s, 1), Cause::kUnreachable);
}

TEST(Diagnosis, SilenceOfASlowServiceIsJudgedByItsOwnLatency) {
  ScopeSecond s = usual_second();
  s.latency_ms = s.baseline_ms = 3000;
  s.offered = s.answered = 2;
  Diagnoser diagnoser;
  for (int i = 0; i < 60; ++i) static_cast<void>(diagnoser.on_second(s));
  s.answered = 0;
  s.latency_ms = 0;
  for (int i = 0; i < 11; ++i) EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kFine) << i;
  EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kUnreachable);
}

TEST(Diagnosis, AServiceThatFillsUpSlowlyDoesNotBecomeTheUsual) {
  // 12 a second are asked of a service that answers 8, with room for many: nothing is refused until
  // it is full. In five seconds, chance hides the difference.
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    Rng rng(seed);
    const auto about = [&](int mean) {  // nearly as random arrivals are
      double count = 0;
      for (int i = 0; i < 8 * mean; ++i) count += rng.below(8) == 0 ? 1 : 0;
      return count;
    };
    Diagnoser diagnoser;
    int right = 0;
    for (int i = 0; i < 300; ++i) {
      ScopeSecond s;
      s.offered = about(12);
      s.answered = about(8);
      s.latency_ms = i < 30 ? 2000 : 4000;
      s.limit = s.in_flight = 30;
      s.limit_max = 1024;
      s.refused_limit = i < 30 ? 0 : 4;
      const Cause cause = diagnoser.on_second(s).cause;
      if (i >= 60 && cause == Cause::kDemand) ++right;
    }
    EXPECT_GE(right, 216) << "nine of ten; seed " << seed;
  }
}

TEST(Diagnosis, WhatAReplicaHeldWhileItWasOutIsItsFault) {
  Diagnoser diagnoser;
  ScopeSecond s = usual_second();
  s.replicas = s.replicas_open = 3;
  for (int i = 0; i < 60; ++i) static_cast<void>(diagnoser.on_second(s));
  s.replicas_open = 2;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kSickReplica);
  s.replicas_open = 3;
  s.latency_ms = 100;
  EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kSickReplica) << "its answers come now";
  s.latency_ms = 10;
  for (int i = 0; i < 5; ++i) static_cast<void>(diagnoser.on_second(s));
  EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kFine);
}

TEST(Diagnosis, NothingAskedIsFine) {
  ScopeSecond s = usual_second();
  s.offered = s.answered = s.in_flight = s.latency_ms = 0;
  EXPECT_EQ(after_calm(s, 60), Cause::kFine);
}

TEST(Diagnosis, MostRefusalsDecideBetweenOwnBoundMemoryAndClient) {
  struct Row {
    double own, memory, client;
    Cause cause;
  };
  for (const Row& row : {Row{300, 50, 50, Cause::kOwnBound}, Row{50, 300, 50, Cause::kMemory},
                         Row{50, 50, 300, Cause::kClient}}) {
    ScopeSecond s = usual_second();
    s.offered = 1400;
    s.refused_own = row.own;
    s.refused_memory = row.memory;
    s.refused_client = row.client;
    EXPECT_EQ(after_calm(s), row.cause) << facts_of(row.cause).name;
  }
}

TEST(Diagnosis, AReplicaThatIsOutOrMuchSlowerIsSick) {
  ScopeSecond s = usual_second();
  s.replicas = s.replicas_open = 3;
  s.worst_replica = 2.9;
  EXPECT_EQ(after_calm(s), Cause::kFine);
  s.worst_replica = 3.1;
  EXPECT_EQ(after_calm(s), Cause::kSickReplica);
  s.worst_replica = 1;
  s.replicas_open = 2;
  EXPECT_EQ(after_calm(s), Cause::kSickReplica);
}

TEST(Diagnosis, OneClientOfManyThatHoldsMostPlacesIsTheCauseOfRefusals) {
  ScopeSecond s = usual_second();
  s.offered = 5000;
  s.refused_limit = 4000;
  s.clients_active = 10;
  s.top_client_in_flight = 0.5;
  EXPECT_EQ(after_calm(s), Cause::kClient);
  s.clients_active = 3;  // half of the places is not much for one of three
  EXPECT_EQ(after_calm(s), Cause::kDemand);
}

TEST(Diagnosis, RefusalsAtTheMaximumOfTheLimitWithoutLoadMeanThatItIsLow) {
  ScopeSecond s = usual_second();
  s.offered = 1500;
  s.refused_limit = 500;
  s.limit = s.limit_max = 10;
  EXPECT_EQ(after_calm(s), Cause::kLimitLow);
  s.queue = 5;
  EXPECT_EQ(after_calm(s), Cause::kDemand);
  s.queue = 0;
  s.limit_max = 20;  // the limiter would raise it by itself
  EXPECT_EQ(after_calm(s), Cause::kDemand);
}

TEST(Diagnosis, FailuresWithoutAKnownCauseAreUnclear) {
  ScopeSecond s = usual_second();
  s.answered = 800;
  s.failed = 200;
  EXPECT_EQ(after_calm(s), Cause::kUnclear);
}

TEST(Diagnosis, AnOverloadFromTheStartIsDemandUntilTheServiceDoesLess) {
  ScopeSecond s = usual_second();
  s.offered = 3000;
  s.refused_limit = 2000;
  s.latency_ms = 12;
  Diagnoser diagnoser;
  for (int i = 0; i < 60; ++i) EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kDemand) << i;
  s.answered = 500;
  s.refused_limit = 2500;
  for (int i = 0; i < 5; ++i) static_cast<void>(diagnoser.on_second(s));
  EXPECT_EQ(diagnoser.on_second(s).cause, Cause::kServiceSlower);
}

TEST(Diagnosis, AnHourOfOverloadDoesNotBecomeTheUsual) {
  Diagnoser diagnoser;
  for (int i = 0; i < 60; ++i) static_cast<void>(diagnoser.on_second(usual_second()));
  ScopeSecond s = usual_second();
  s.offered = 3000;
  s.answered = 1200;
  s.refused_limit = 1800;
  Diagnosis last;
  for (int i = 0; i < 3600; ++i) last = diagnoser.on_second(s);
  EXPECT_EQ(last.cause, Cause::kDemand);
  EXPECT_DOUBLE_EQ(last.evidence.usual_offered, 1000);
}

TEST(Diagnosis, EvidenceIsTheMeanOfTheLastSecondsAndTheUsual) {
  Diagnoser diagnoser;
  for (int i = 0; i < 60; ++i) static_cast<void>(diagnoser.on_second(usual_second()));
  ScopeSecond s = usual_second();
  s.offered = 2000;
  s.refused_limit = 1000;
  const Diagnosis first = diagnoser.on_second(s);
  EXPECT_DOUBLE_EQ(first.evidence.offered, 1200);
  EXPECT_DOUBLE_EQ(first.evidence.refused, 200);
  EXPECT_DOUBLE_EQ(first.evidence.usual_offered, 1000);
  EXPECT_DOUBLE_EQ(first.evidence.usual_latency_ms, 10);
  EXPECT_DOUBLE_EQ(first.evidence.best_answered, 1000);
}

TEST(Diagnosis, AnyNumbersGiveACauseAndEqualNumbersTheSame) {
  Rng rng(7);
  const auto any = [&rng] {
    ScopeSecond s;
    const auto draw = [&rng](double most) { return rng.unit() * most; };
    s.offered = draw(5000);
    s.answered = rng.unit() < 0.2 ? 0 : draw(3000);
    s.refused_limit = draw(100);
    s.refused_client = draw(100);
    s.refused_memory = draw(100);
    s.refused_own = draw(100);
    s.failed = draw(500);
    s.latency_ms = draw(100);
    s.baseline_ms = draw(20);
    s.in_flight = draw(50);
    s.replicas = 3;
    s.replicas_open = static_cast<std::uint32_t>(rng.below(4));
    s.worst_replica = draw(4);
    return s;
  };
  Diagnoser one;
  Diagnoser two;
  std::set<std::string_view> seen;
  for (int i = 0; i < 5000; ++i) {
    const ScopeSecond s = any();
    const Diagnosis a = one.on_second(s);
    ASSERT_EQ(a.cause, two.on_second(s).cause);
    seen.insert(facts_of(a.cause).name);
  }
  EXPECT_GE(seen.size(), 4U);
}

TEST(Diagnosis, EveryCauseSaysWhatIsTheCaseAndWhatToDo) {
  std::set<std::string_view> names;
  for (const CauseFacts& facts : kCauseFacts) {
    EXPECT_FALSE(facts.sentence.empty());
    EXPECT_FALSE(facts.next_step.empty());
    EXPECT_TRUE(names.insert(facts.name).second);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
