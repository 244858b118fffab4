#include "policy/discovery_rules.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Part = DiscoveryRules::Part;

constexpr LookupOutcome kRecords = LookupOutcome::kRecords;
constexpr LookupOutcome kEmpty = LookupOutcome::kEmpty;
constexpr LookupOutcome kFailed = LookupOutcome::kFailed;

Part part(LookupOutcome outcome, Duration ttl = seconds(30)) {
  return {.outcome = outcome, .ttl = ttl};
}

/// Rules, and a clock that goes on by what they say.
struct Clocked {
  DiscoveryRules rules;
  Rng rng{1};
  TimePoint now = time_from_ns(1'000'000'000'000);

  DiscoveryRules::Decision look(Part first, Part second) {
    const DiscoveryRules::Decision decision = rules.on_lookup(first, second, now, rng);
    now += decision.next;
    return decision;
  }
  DiscoveryRules::Decision look(LookupOutcome outcome) {
    return look(part(outcome), part(outcome));
  }
};

TEST(DiscoveryRules, EachPartHasItsAction) {
  struct Row {
    LookupOutcome first;
    LookupOutcome second;
    SetAction on_first;
    SetAction on_second;
    DiscoveryReason reason;
  };
  constexpr SetAction kReplace = SetAction::kReplace;
  constexpr SetAction kKeep = SetAction::kKeep;
  constexpr SetAction kClear = SetAction::kClear;
  for (const Row& row : {
           Row{kRecords, kRecords, kReplace, kReplace, DiscoveryReason::kRecords},
           Row{kRecords, kEmpty, kReplace, kClear, DiscoveryReason::kRecords},
           Row{kEmpty, kRecords, kClear, kReplace, DiscoveryReason::kRecords},
           Row{kRecords, kFailed, kReplace, kKeep, DiscoveryReason::kPartlyFailed},
           Row{kFailed, kRecords, kKeep, kReplace, DiscoveryReason::kPartlyFailed},
           Row{kFailed, kFailed, kKeep, kKeep, DiscoveryReason::kFailed},
           Row{kFailed, kEmpty, kKeep, kKeep, DiscoveryReason::kFailed},
           Row{kEmpty, kFailed, kKeep, kKeep, DiscoveryReason::kFailed},
           Row{kEmpty, kEmpty, kKeep, kKeep, DiscoveryReason::kEmptyUnproven},
       }) {
    Clocked at;
    const auto decision = at.look(part(row.first), part(row.second));
    EXPECT_EQ(decision.actions[0], row.on_first);
    EXPECT_EQ(decision.actions[1], row.on_second);
    EXPECT_EQ(decision.reason, row.reason);
  }
}

TEST(DiscoveryRules, ThreeEmptyAnswersInTenSecondsEmptyTheSet) {
  Clocked at;
  at.look(kRecords);
  const TimePoint first = at.now;
  int answers = 0;
  while (at.look(kEmpty).reason != DiscoveryReason::kEmptyConfirmed) ++answers;
  EXPECT_GE(answers, 2);
  EXPECT_GE(at.now - first, seconds(10));
  EXPECT_EQ(at.look(kEmpty).reason, DiscoveryReason::kEmptyConfirmed) << "and it stays so";
  EXPECT_EQ(at.look(kFailed).actions[0], SetAction::kKeep);
}

TEST(DiscoveryRules, ThreeEmptyAnswersInAShortTimeAreNotEnough) {
  Clocked at;
  for (int i = 0; i < 100; ++i) {
    const auto decision = at.rules.on_lookup(part(kEmpty), part(kEmpty), at.now, at.rng);
    EXPECT_EQ(decision.actions[0], SetAction::kKeep);
    at.now += milliseconds(99);
  }
  at.now += seconds(1);
  EXPECT_EQ(at.look(kEmpty).actions[0], SetAction::kClear);
}

TEST(DiscoveryRules, TwoEmptyAnswersFarApartAreNotEnough) {
  Clocked at;
  at.look(kEmpty);
  at.now += seconds(3600);
  EXPECT_EQ(at.look(kEmpty).reason, DiscoveryReason::kEmptyUnproven);
}

TEST(DiscoveryRules, RecordsStartTheCountAgainAndFailuresDoNot) {
  Clocked records;
  records.look(kEmpty);
  records.look(kEmpty);
  records.look(kRecords);
  records.now += seconds(10);
  EXPECT_EQ(records.look(kEmpty).reason, DiscoveryReason::kEmptyUnproven);

  Clocked failures;
  failures.look(kEmpty);
  failures.look(kFailed);
  failures.look(kEmpty);
  failures.look(kFailed);
  failures.now += seconds(10);
  EXPECT_EQ(failures.look(kEmpty).reason, DiscoveryReason::kEmptyConfirmed);
}

TEST(DiscoveryRules, TheNextLookupIsWithinTheTtlAndItsBounds) {
  struct Row {
    Duration ttl;
    Duration low;
    Duration high;
  };
  Clocked at;
  for (const Row& row :
       {Row{seconds(0), seconds(1), seconds(1)}, Row{seconds(1), seconds(1), seconds(1)},
        Row{seconds(30), seconds(24), seconds(30)},
        Row{seconds(86'400), seconds(48), seconds(60)}}) {
    Duration least = seconds(1000);
    Duration most{};
    for (int i = 0; i < 1000; ++i) {
      const Duration next = at.look(part(kRecords, row.ttl), part(kEmpty)).next;
      least = std::min(least, next);
      most = std::max(most, next);
    }
    EXPECT_GE(least, row.low);
    EXPECT_LE(most, row.high);
    EXPECT_LE(least - row.low, (row.high - row.low) / 10) << "the whole range is used";
    EXPECT_LE(row.high - most, (row.high - row.low) / 10);
  }
}

TEST(DiscoveryRules, TheSmallerTtlCounts) {
  Clocked at;
  EXPECT_LE(at.look(part(kRecords, seconds(5)), part(kRecords, seconds(50))).next, seconds(5));
  EXPECT_LE(at.look(part(kRecords, seconds(50)), part(kRecords, seconds(5))).next, seconds(5));
}

TEST(DiscoveryRules, FailuresAreRepeatedMoreAndMoreSlowly) {
  Clocked at;
  for (const int expected : {1, 2, 4, 8, 16, 32, 32, 32}) {
    const Duration next = at.look(kFailed).next;
    EXPECT_GE(next, std::max(Duration(seconds(1)), Duration(seconds(expected)) * 4 / 5));
    EXPECT_LE(next, seconds(expected));
  }
  at.look(kRecords);
  EXPECT_LE(at.look(kFailed).next, seconds(1));
}

TEST(DiscoveryRules, AFailedPartIsAskedForAgainBeforeTheTtlOfTheOther) {
  Clocked at;
  EXPECT_LE(at.look(part(kRecords, seconds(60)), part(kFailed)).next, seconds(1));
  for (int i = 0; i < 10; ++i) at.look(part(kRecords, seconds(60)), part(kFailed));
  EXPECT_GE(at.look(part(kRecords, seconds(60)), part(kFailed)).next, seconds(25));
}

TEST(DiscoveryRules, ARefreshIsAtOnceButOnceASecond) {
  const TimePoint last = time_from_ns(5'000'000'000);
  const DiscoveryRules rules;
  EXPECT_EQ(rules.earliest_refresh(last, last + milliseconds(300)), last + seconds(1));
  EXPECT_EQ(rules.earliest_refresh(last, last + seconds(7)), last + seconds(7));
}

TEST(DiscoveryRules, NoScheduleOfFailuresRemovesAnything) {
  Rng rng(9);
  for (int round = 0; round < 200; ++round) {
    Clocked at;
    at.rng = rng.fork();
    for (int i = 0; i < 50; ++i) {
      const auto random_part = [&] { return part(rng.chance(0.5) ? kFailed : kEmpty); };
      const Part first = part(kFailed);
      const Part second = random_part();
      const auto decision = rng.chance(0.5) ? at.look(first, second) : at.look(second, first);
      EXPECT_EQ(decision.actions[0], SetAction::kKeep);
      EXPECT_EQ(decision.actions[1], SetAction::kKeep);
      EXPECT_GE(decision.next, seconds(1));
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
