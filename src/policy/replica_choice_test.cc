#include "policy/replica_choice.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

/// Endpoints whose views are set by hand.
struct Replicas {
  std::vector<ReplicaView> views;
  mutable std::uint64_t reads = 0;

  explicit Replicas(std::size_t count) : views(count) {}
  std::uint32_t size() const { return static_cast<std::uint32_t>(views.size()); }
  ReplicaView view(std::uint32_t i) const {
    ++reads;
    return views[i];
  }
  Cohort cohort() const {
    Cohort sums{.endpoints = size(), .weight_max = 0};
    for (const ReplicaView& view : views) {
      sums.weight_max = std::max(sums.weight_max, view.weight);
      if (view.openness > Openness::kTrialBusy) continue;
      ++sums.open;
      sums.open_weight += view.weight;
    }
    return sums;
  }
};

struct ReplicaChoiceTest : ::testing::TestWithParam<Balance> {
  Rng rng{1};
  std::uint64_t cursor = 0;
  HashRing ring;
  std::uint32_t ring_size = 0;

  static HashRing ring_of(std::uint32_t size) {
    std::vector<HashRing::Member> members;
    for (std::uint64_t i = 0; i < size; ++i) members.push_back({.key = i * 31 + 1});
    return HashRing(members);
  }
  ChoiceAsk ask_for(const Replicas& set, Balance balance) {
    ChoiceAsk ask{.balance = balance, .cohort = set.cohort()};
    if (balance == Balance::kHash) {
      if (ring_size != set.size()) ring = ring_of(set.size());
      ring_size = set.size();
      ask.ring = &ring;
    }
    ask.hash = rng.next_u64();
    for (const ReplicaView& view : set.views) ask.in_flight_total += view.in_flight;
    return ask;
  }
  Choice choose(const Replicas& set, const ChoiceAsk& ask) {
    return choose_replica(set, ask, cursor, rng);
  }
  Choice choose(const Replicas& set, Balance balance = Balance::kPeakEwma) {
    return choose(set, ask_for(set, balance));
  }
  std::vector<int> counts(const Replicas& set, Balance balance, int times) {
    std::vector<int> result(set.size());
    for (int i = 0; i < times; ++i) ++result[choose(set, balance).index];
    return result;
  }
};

constexpr Balance kBalances[] = {Balance::kPeakEwma, Balance::kRoundRobin, Balance::kLeastRequests,
                                 Balance::kHash};
INSTANTIATE_TEST_SUITE_P(All, ReplicaChoiceTest, ::testing::ValuesIn(kBalances));

TEST_P(ReplicaChoiceTest, AnEmptySetHasNone) {
  std::uint64_t at = 0;
  const Choice choice = choose_replica(Replicas(0), {.balance = GetParam()}, at, rng);
  EXPECT_FALSE(choice.found());
  EXPECT_EQ(choice.reason, ChoiceReason::kEmptySet);
}

TEST_P(ReplicaChoiceTest, EqualEndpointsGetEqualParts) {
  const Replicas set(5);
  for (const int count : counts(set, GetParam(), 20'000)) {
    EXPECT_GT(count, 3'000);
    EXPECT_LT(count, 5'200);
  }
}

TEST_P(ReplicaChoiceTest, TriedOnesAreSkippedWhileAnotherIsOpen) {
  const Replicas set(3);
  ChoiceAsk ask = ask_for(set, GetParam());
  std::vector<std::uint32_t> tried;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ask.tried = tried;
    const Choice choice = choose(set, ask);
    ASSERT_TRUE(choice.found());
    EXPECT_EQ(std::ranges::count(tried, choice.index), 0);
    tried.push_back(choice.index);
  }
  ask.tried = tried;
  EXPECT_EQ(choose(set, ask).reason, ChoiceReason::kRepeated);
  ask.tried_again = false;
  EXPECT_EQ(choose(set, ask).reason, ChoiceReason::kAllTried);
}

TEST_P(ReplicaChoiceTest, EndpointsWhoseConnectsFailStayOutInAPanicToo) {
  Replicas set(4);
  for (ReplicaView& view : set.views) view.openness = Openness::kClosed;
  EXPECT_EQ(choose(set, GetParam()).reason, ChoiceReason::kAllOut);
  set.views[2].openness = Openness::kPanicOnly;
  for (int i = 0; i < 100; ++i) {
    const Choice choice = choose(set, GetParam());
    EXPECT_EQ(choice.index, 2U);
    EXPECT_EQ(choice.reason, ChoiceReason::kPanic);
  }
}

TEST_P(ReplicaChoiceTest, ASuspectIsTheLastResort) {
  Replicas set(3);
  set.views[0].openness = Openness::kClosed;
  set.views[1].openness = Openness::kLastResort;
  set.views[2].openness = Openness::kTrialBusy;
  EXPECT_EQ(choose(set, GetParam()).index, 2U);
  set.views[2].openness = Openness::kClosed;
  EXPECT_EQ(choose(set, GetParam()).index, 1U);
  EXPECT_EQ(choose(set, GetParam()).reason, ChoiceReason::kLastResort);
}

TEST_P(ReplicaChoiceTest, NobodyHoldsMoreThanItsShare) {
  Replicas set(3);
  for (ReplicaView& view : set.views) view.in_flight_max = 5;
  set.views[0].in_flight = 5;
  set.views[1].in_flight = 5;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(choose(set, GetParam()).index, 2U);
  set.views[2].in_flight = 5;
  EXPECT_EQ(choose(set, GetParam()).reason, ChoiceReason::kAllFull);
}

TEST_P(ReplicaChoiceTest, TheStateOfAQueueRanksItsEndpoint) {
  using enum OutgoingState;
  struct Case {
    OutgoingState first;
    OutgoingState second;
    std::set<std::uint32_t> chosen;  // empty: none
  };
  const Case cases[] = {
      {kHealthy, kHealthy, {0, 1}}, {kHealthy, kThrottled, {0}},     {kHealthy, kSaturated, {0}},
      {kThrottled, kHealthy, {1}},  {kThrottled, kOverflow, {0, 1}}, {kBatching, kSaturated, {0}},
      {kSaturated, kOverflow, {1}}, {kSaturated, kSaturated, {}},
  };
  for (const Case& one : cases) {
    Replicas set(2);
    set.views[0].queue = one.first;
    set.views[1].queue = one.second;
    std::set<std::uint32_t> chosen;
    for (int i = 0; i < 200; ++i) {
      // The worse its queue, the better it looks otherwise.
      for (ReplicaView& view : set.views) {
        view.in_flight = view.queue == kHealthy ? static_cast<std::uint32_t>(rng.below(3)) : 0;
        if (GetParam() == Balance::kHash) view.in_flight = 0;
      }
      const Choice choice = choose(set, GetParam());
      if (choice.found()) chosen.insert(choice.index);
      if (!choice.found()) {
        EXPECT_EQ(choice.reason, ChoiceReason::kAllFull);
      }
    }
    EXPECT_EQ(chosen, one.chosen) << name_of(one.first) << ", " << name_of(one.second);
  }
}

TEST_P(ReplicaChoiceTest, ATriedOneComesAfterAnUntriedOneWithAFullerQueue) {
  Replicas set(2);
  set.views[1].queue = OutgoingState::kOverflow;
  ChoiceAsk ask = ask_for(set, GetParam());
  const std::uint32_t tried = 0;
  ask.tried = {&tried, 1};
  EXPECT_EQ(choose(set, ask).index, 1U);
  set.views[1].queue = OutgoingState::kSaturated;
  const Choice again = choose(set, ask);
  EXPECT_EQ(again.index, 0U);
  EXPECT_EQ(again.reason, ChoiceReason::kRepeated);
}

/// Random sets: what must never happen never does, and what exists is found.
TEST_P(ReplicaChoiceTest, HealthComesFirstInEverySet) {
  for (int run = 0; run < 10'000; ++run) {
    Replicas set(1 + rng.below(12));
    for (ReplicaView& view : set.views) {
      view.openness = static_cast<Openness>(rng.below(6));
      view.in_flight = static_cast<std::uint32_t>(rng.below(6));
      view.in_flight_max = static_cast<std::uint32_t>(rng.below(6));
      view.score_ns = 1 + rng.unit() * 1e8;
      view.weight = rng.chance(0.3) ? 0.1 : 1;
      view.queue = static_cast<OutgoingState>(rng.below(kOutgoingStateCount));
    }
    ChoiceAsk ask = ask_for(set, GetParam());
    const auto tried = static_cast<std::uint32_t>(rng.below(set.size()));
    if (rng.chance(0.5)) ask.tried = {&tried, 1};
    ask.tried_again = rng.chance(0.5);
    if (rng.chance(0.5)) ask.local = static_cast<std::uint32_t>(rng.below(set.size()));
    ask.limit = static_cast<std::uint32_t>(rng.below(20));
    bool good_exists = false;
    bool healthy_exists = false;
    bool open_exists = false;
    for (std::uint32_t i = 0; i < set.size(); ++i) {
      const ReplicaView& view = set.views[i];
      const bool open = view.openness <= Openness::kTrial ||
                        (view.openness == Openness::kPanicOnly && in_panic(ask.cohort));
      const bool room = (view.in_flight_max == 0 || view.in_flight < view.in_flight_max) &&
                        view.queue != OutgoingState::kSaturated;
      const bool fresh = ask.tried.empty() || i != tried;
      const bool good = open && room && fresh;
      open_exists = open_exists || open;
      good_exists = good_exists || good;
      healthy_exists = healthy_exists || (good && view.queue == OutgoingState::kHealthy);
    }
    const Choice choice = choose(set, ask);
    if (good_exists) {
      ASSERT_TRUE(choice.found());
      EXPECT_NE(choice.reason, ChoiceReason::kRepeated);
      EXPECT_NE(choice.reason, ChoiceReason::kLastResort);
      EXPECT_TRUE(ask.tried.empty() || choice.index != tried);
    }
    if (!choice.found()) {
      EXPECT_GE(choice.reason, ChoiceReason::kEmptySet);
      continue;
    }
    EXPECT_LT(choice.reason, ChoiceReason::kEmptySet);
    const ReplicaView& view = set.views[choice.index];
    EXPECT_NE(view.openness, Openness::kClosed);
    if (healthy_exists) {
      EXPECT_EQ(view.queue, OutgoingState::kHealthy);
    }
    if (open_exists) {
      EXPECT_LE(view.openness, Openness::kPanicOnly);
      EXPECT_NE(view.queue, OutgoingState::kSaturated);
    }
    if (open_exists) {
      EXPECT_TRUE(view.in_flight_max == 0 || view.in_flight < view.in_flight_max);
    }
    if (!in_panic(ask.cohort) && open_exists) {
      EXPECT_LE(view.openness, Openness::kTrial);
    }
    if (!ask.tried_again && !ask.tried.empty()) {
      EXPECT_NE(choice.index, tried);
    }
  }
}

TEST_F(ReplicaChoiceTest, TheBetterOfTwoHasTheLowerCost) {
  Replicas set(2);
  set.views[0] = {.in_flight = 3, .score_ns = 5e6};
  set.views[1] = {.in_flight = 0, .score_ns = 19e6};
  EXPECT_EQ(choose(set).index, 1U);
  set.views[1].score_ns = 21e6;
  EXPECT_EQ(choose(set).index, 0U);
  set.views[1].weight = 2;
  EXPECT_EQ(choose(set).index, 1U);
}

TEST_F(ReplicaChoiceTest, TheTwoDrawsAreDistinctSoTheWorstOfThreeIsNeverChosen) {
  for (std::size_t worst = 0; worst < 3; ++worst) {
    const std::size_t best = (worst + 1) % 3;
    Replicas set(3);
    for (ReplicaView& view : set.views) view.score_ns = 2;
    set.views[best].score_ns = 1;
    set.views[worst].score_ns = 3;
    const auto part = counts(set, Balance::kPeakEwma, 3000);
    EXPECT_EQ(part[worst], 0);
    EXPECT_NEAR(part[best], 2000, 150);
  }
}

TEST_F(ReplicaChoiceTest, PowerOfTwoChoicesReadsTwoEndpoints) {
  const Replicas set(1000);
  const ChoiceAsk ask = ask_for(set, Balance::kPeakEwma);
  set.reads = 0;
  for (int i = 0; i < 100; ++i) (void)choose(set, ask);
  EXPECT_EQ(set.reads, 200U);
}

TEST_F(ReplicaChoiceTest, WeightsArePartsOfTheRequests) {
  Replicas set(3);
  set.views[1].weight = 0.5;
  set.views[2].weight = 0.1;
  // In flight follows what was chosen, as in a busy upstream with equal endpoints.
  for (const Balance balance : {Balance::kPeakEwma, Balance::kLeastRequests}) {
    std::vector<int> part(3);
    std::vector<std::uint32_t> order;
    for (int i = 0; i < 30'000; ++i) {
      const std::uint32_t chosen = choose(set, balance).index;
      ++part[chosen];
      ++set.views[chosen].in_flight;
      order.push_back(chosen);
      if (order.size() > 64) --set.views[order[order.size() - 65]].in_flight;
    }
    EXPECT_NEAR(part[0], 30'000 * 1.0 / 1.6, 2000) << static_cast<int>(balance);
    EXPECT_NEAR(part[1], 30'000 * 0.5 / 1.6, 2000) << static_cast<int>(balance);
    EXPECT_GT(part[2], 500) << static_cast<int>(balance);
    for (ReplicaView& view : set.views) view.in_flight = 0;
  }
  const auto turns = counts(set, Balance::kRoundRobin, 16'000);
  EXPECT_NEAR(turns[0], 10'000, 10);
  EXPECT_NEAR(turns[1], 5'000, 10);
  EXPECT_NEAR(turns[2], 1'000, 10);
}

TEST_F(ReplicaChoiceTest, RoundRobinSkipsWithoutFavouringTheNext) {
  Replicas set(3);
  set.views[0].openness = Openness::kPanicOnly;
  const auto part = counts(set, Balance::kRoundRobin, 1000);
  EXPECT_EQ(part[1], 500);
  EXPECT_EQ(part[2], 500);
}

TEST_F(ReplicaChoiceTest, LeastRequestsLooksAtAllOfASmallSet) {
  Replicas set(16);
  for (ReplicaView& view : set.views) view.in_flight = 2;
  set.views[11].in_flight = 1;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(choose(set, Balance::kLeastRequests).index, 11U);
}

TEST_F(ReplicaChoiceTest, AKeyKeepsItsEndpointUntilThatIsFull) {
  Replicas set(8);
  ChoiceAsk ask = ask_for(set, Balance::kHash);
  const std::uint32_t owner = choose(set, ask).index;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(choose(set, ask).index, owner);
  set.views[owner].in_flight = 2;  // of 2: ceil(1.25 × 3 ÷ 8) = 1
  ask.in_flight_total = 2;
  const std::uint32_t other = choose(set, ask).index;
  EXPECT_NE(other, owner);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(choose(set, ask).index, other);
}

TEST_F(ReplicaChoiceTest, KeysOfAFullEndpointSpreadOverAllOthers) {
  Replicas set(8);
  set.views[3].openness = Openness::kPanicOnly;
  ChoiceAsk ask = ask_for(set, Balance::kHash);
  std::vector<int> part(8);
  int keys = 0;
  while (keys < 700) {
    ask.hash = rng.next_u64();
    if (ring.owner(ask.hash) != 3) continue;
    ++part[choose(set, ask).index];
    ++keys;
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (i != 3) {
      EXPECT_GT(part[i], 50) << i;
    }
  }
}

TEST_F(ReplicaChoiceTest, BoundedLoadHoldsForAnyKeys) {
  Replicas set(5);
  ChoiceAsk ask = ask_for(set, Balance::kHash);
  for (std::uint64_t total = 0; total < 400; ++total) {
    ask.in_flight_total = total;
    ask.hash = rng.chance(0.8) ? 42 : rng.next_u64();  // a hot key
    ++set.views[choose(set, ask).index].in_flight;
    for (const ReplicaView& view : set.views) {
      EXPECT_LE(view.in_flight, bounded_load_max(1.25, total, 0.2));
    }
  }
}

TEST_F(ReplicaChoiceTest, TheOwnZoneIsPreferredWhileItHasRoom) {
  Replicas set(4);
  ChoiceAsk ask = ask_for(set, Balance::kPeakEwma);
  ask.local = 2;
  ask.limit = 40;
  for (int i = 0; i < 50; ++i) EXPECT_LT(choose(set, ask).index, 2U);
  set.views[0].in_flight = set.views[1].in_flight = 10;  // 40 ÷ 4
  int spilled = 0;
  for (int i = 0; i < 50; ++i) {
    const Choice choice = choose(set, ask);
    if (choice.index >= 2) {
      EXPECT_EQ(choice.reason, ChoiceReason::kSpilled);
    }
    spilled += choice.index >= 2 ? 1 : 0;
  }
  EXPECT_GT(spilled, 30);
  set.views[0].openness = set.views[1].openness = Openness::kLastResort;
  for (int i = 0; i < 50; ++i) EXPECT_GE(choose(set, ask).index, 2U);
}

TEST_F(ReplicaChoiceTest, AHealthyQueueInAnotherZoneIsBetterThanAFullOneHere) {
  Replicas set(2);
  ChoiceAsk ask = ask_for(set, Balance::kPeakEwma);
  ask.local = 1;
  EXPECT_EQ(choose(set, ask).index, 0U);
  set.views[0].queue = OutgoingState::kThrottled;
  const Choice spilled = choose(set, ask);
  EXPECT_EQ(spilled.index, 1U);
  EXPECT_EQ(spilled.reason, ChoiceReason::kSpilled);
  set.views[1].queue = OutgoingState::kThrottled;
  EXPECT_EQ(choose(set, ask).index, 0U);
}

TEST(QueuesOverflow, OnlyIfAllOpenEndpointsDo) {
  EXPECT_FALSE(queues_overflow({}));
  EXPECT_FALSE(queues_overflow({.endpoints = 2, .open = 0, .overflowing = 0}));
  EXPECT_FALSE(queues_overflow({.endpoints = 3, .open = 2, .overflowing = 1}));
  EXPECT_TRUE(queues_overflow({.endpoints = 3, .open = 2, .overflowing = 2}));
}

TEST_F(ReplicaChoiceTest, NewEndpointsAreNeitherFloodedNorStarved) {
  // Ten endpoints of 5 ms, and one without samples, which counts as the median.
  Replicas set(11);
  for (ReplicaView& view : set.views) view.score_ns = 4.5e6 + rng.unit() * 1e6;
  set.views[4].score_ns = 5e6;
  std::vector<std::uint32_t> order;
  std::vector<int> part(11);
  for (int i = 0; i < 22'000; ++i) {
    const std::uint32_t chosen = choose(set).index;
    ++part[chosen];
    ++set.views[chosen].in_flight;
    order.push_back(chosen);
    if (order.size() > 40) --set.views[order[order.size() - 41]].in_flight;
  }
  EXPECT_NEAR(part[4], 2000, 400);
}

TEST(ReplicaChoice, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kChoiceReasonCount; ++i) {
    names.insert(name_of(static_cast<ChoiceReason>(i)));
  }
  EXPECT_EQ(names.size(), kChoiceReasonCount);
  EXPECT_EQ(names.count(""), 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
