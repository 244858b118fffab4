#include "policy/fair_turns.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

/// Queues of costs over FairTurns, as the waiting line has them.
class Model {
 public:
  FlowId add(std::uint64_t actor, std::uint32_t cost = 1) {
    const FlowId id = turns.flow_for(actor);
    turns.add(id, actor, cost);
    queues_[id].push_back({actor, cost});
    return id;
  }
  struct Served {
    std::uint64_t actor;
    std::uint32_t cost;
  };
  Served serve() {
    const FlowId id = turns.next([this](FlowId f) { return queues_[f].front().cost; });
    const Served first = queues_[id].front();
    queues_[id].pop_front();
    turns.serve(id, first.cost);
    return first;
  }
  void leave(FlowId id) {
    queues_[id].pop_back();
    turns.remove(id);
  }
  [[nodiscard]] std::vector<std::uint64_t> serve_all() {
    std::vector<std::uint64_t> order;
    while (turns.size() > 0) order.push_back(serve().actor);
    return order;
  }
  [[nodiscard]] std::size_t size(FlowId id) const { return queues_[id].size(); }

  FairTurns turns;

 private:
  std::array<std::deque<Served>, FairTurns::kFlows> queues_;
};

constexpr std::uint64_t kAnn = 0x1234'5678'9ABC'DEF1;
constexpr std::uint64_t kBob = 0x0FED'CBA9'8765'4321;
constexpr std::uint64_t kEve = 0x5555'AAAA'3333'CCCC;
using Order = std::vector<std::uint64_t>;

TEST(FairTurns, WithoutActorsItIsFirstComeFirstServed) {
  Model line;
  for (std::uint32_t cost = 1; cost <= 5; ++cost) line.add(0, cost);
  for (std::uint32_t cost = 1; cost <= 5; ++cost) EXPECT_EQ(line.serve().cost, cost);
}

TEST(FairTurns, ActorsAreServedInTurnHoweverManyWaitersEachHas) {
  Model line;
  for (int i = 0; i < 5; ++i) line.add(kEve);
  line.add(kAnn);
  line.add(kBob);
  line.add(kAnn);
  EXPECT_EQ(line.serve_all(), (Order{kEve, kAnn, kBob, kEve, kAnn, kEve, kEve, kEve}));
}

TEST(FairTurns, WhoeverHasNoActorSharesOneTurn) {
  Model line;
  for (int i = 0; i < 3; ++i) line.add(0);
  line.add(kAnn);
  EXPECT_EQ(line.serve_all(), (Order{0, kAnn, 0, 0}));
}

TEST(FairTurns, TurnsAreByCost) {
  Model line;
  for (int i = 0; i < 3; ++i) line.add(kEve, 4);
  for (int i = 0; i < 12; ++i) line.add(kAnn, 1);
  EXPECT_EQ(line.serve_all(), (Order{kEve, kAnn, kAnn, kAnn, kAnn, kEve, kAnn, kAnn, kAnn, kAnn,
                                     kEve, kAnn, kAnn, kAnn, kAnn}));
}

TEST(FairTurns, AskingTwiceDoesNotMoveTheTurn) {
  Model line;
  line.add(kEve, 3);
  line.add(kAnn, 3);
  const auto cost = [](FlowId) { return 3U; };
  const FlowId first = line.turns.next(cost);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(line.turns.next(cost), first);
  EXPECT_EQ(line.serve_all(), (Order{kEve, kAnn}));
}

TEST(FairTurns, WhoLeavesIsNotCharged) {
  Model line;
  const FlowId eve = line.add(kEve);
  line.add(kEve);
  line.add(kEve);
  line.add(kAnn);
  line.leave(eve);
  EXPECT_EQ(line.serve_all(), (Order{kEve, kAnn, kEve}));
}

TEST(FairTurns, AFlowThatWasEmptySavesNothing) {
  Model line;
  line.add(kEve, 100);
  line.add(kAnn, 1);
  EXPECT_EQ(line.serve_all(), (Order{kEve, kAnn}));  // Ann did not spend 99 of her 100
  for (int i = 0; i < 3; ++i) line.add(kAnn);
  for (int i = 0; i < 3; ++i) line.add(kEve);
  EXPECT_EQ(line.serve_all(), (Order{kAnn, kEve, kAnn, kEve, kAnn, kEve}));
}

TEST(FairTurns, CountsWhoIsServedBeforeANewcomer) {
  Model line;
  for (int i = 0; i < 5; ++i) line.add(kEve);
  EXPECT_EQ(line.turns.ahead_of(line.turns.flow_for(kEve)), 5U);
  EXPECT_EQ(line.turns.ahead_of(line.turns.flow_for(kAnn)), 1U);
  line.add(kAnn);
  EXPECT_EQ(line.turns.ahead_of(line.turns.flow_for(kAnn)), 3U);
  EXPECT_EQ(line.turns.ahead_of(line.turns.flow_for(kBob)), 2U);
  EXPECT_EQ(line.turns.ahead_of(line.turns.flow_for(kEve)), 6U) << "never more than there are";
}

// ---- flows

TEST(FairTurns, AnActorKeepsItsOwnFlowWhileItWaits) {
  Model line;
  const FlowId eve = line.add(kEve);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(line.add(kEve), eve);
}

TEST(FairTurns, FewActorsHaveOneFlowEach) {
  Rng rng(7);
  Model line;
  std::map<FlowId, int> owners;
  for (int actor = 0; actor < 40; ++actor) ++owners[line.add(rng.next_u64())];
  EXPECT_EQ(owners.size(), 40U);
}

TEST(FairTurns, ManyActorsShareFlowsEvenly) {
  Rng rng(8);
  Model line;
  for (int actor = 0; actor < 1280; ++actor) line.add(rng.next_u64());
  for (std::size_t id = 0; id < FairTurns::kNoActor; ++id) {
    EXPECT_NEAR(line.turns.size(static_cast<FlowId>(id)), 10, 3);
  }
  EXPECT_EQ(line.turns.size(FairTurns::kNoActor), 0U);
}

// ---- properties

TEST(FairTurns, TheCostThatTwoBusyActorsGetDiffersByAFewRequestsAtMost) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    constexpr std::uint32_t kCostMax = 20;
    const std::array<std::uint64_t, 5> actors = {rng.next_u64(), rng.next_u64(), rng.next_u64(),
                                                 rng.next_u64(), 0};
    Model line;
    std::map<std::uint64_t, std::int64_t> got;
    std::map<std::uint64_t, int> waiting;
    const auto fill = [&] {  // of each some, of the first ever more
      for (const std::uint64_t actor : actors) {
        const int wanted = actor == actors[0] ? 50 : 3;
        for (; waiting[actor] < wanted; ++waiting[actor]) {
          line.add(actor, 1 + static_cast<std::uint32_t>(rng.below(kCostMax)));
        }
      }
    };
    line.add(actors[1], kCostMax);  // so that the quantum does not change
    ++waiting[actors[1]];
    for (int i = 0; i < 3000; ++i) {
      fill();
      const Model::Served served = line.serve();
      --waiting[served.actor];
      got[served.actor] += served.cost;
      const auto [least, most] = std::minmax_element(
          got.begin(), got.end(), [](auto& a, auto& b) { return a.second < b.second; });
      if (got.size() == actors.size()) {
        ASSERT_LT(most->second - least->second, 3 * kCostMax) << seed << " at " << i;
      }
    }
  }
}

TEST(FairTurns, NobodyIsLostAndEachIsServedWithinOneRound) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    Model line;
    std::vector<std::uint64_t> actors(200);
    for (std::uint64_t& actor : actors) actor = rng.next_u64();
    std::size_t inside = 0;
    std::map<FlowId, int> unserved;  // grants to others since a flow was served or began to wait
    for (int i = 0; i < 4000; ++i) {
      if (rng.below(100) < 52) {
        const std::uint64_t actor = actors[rng.below(rng.below(200) + 1)];
        const FlowId id = line.turns.flow_for(actor);
        if (line.turns.size(id) == 0) unserved[id] = 0;
        line.add(actor);
        ++inside;
      } else if (inside > 0) {
        const FlowId id = line.turns.next([](FlowId) { return 1U; });
        line.serve();
        --inside;
        for (auto& [flow, count] : unserved) ++count;
        unserved[id] = 0;
        for (const auto& [flow, count] : unserved) {
          ASSERT_TRUE(line.turns.size(flow) == 0 || count <= 129) << "more than a round";
        }
      }
      std::size_t sum = 0;
      line.turns.for_each_flow([&](FlowId id) {
        ASSERT_GT(line.size(id), 0U);
        sum += line.size(id);
      });
      ASSERT_EQ(sum, inside);
      ASSERT_EQ(line.turns.size(), inside);
    }
  }
}

TEST(FairTurns, TheLongestFlowHasMoreThanHalfOfTheLongest) {
  Rng rng(9);
  Model line;
  std::vector<FlowId> flows;
  for (int i = 0; i < 20'000; ++i) {
    if (flows.empty() || rng.below(100) < 55) {
      flows.push_back(line.add(1 + rng.below(30) * rng.below(30)));
    } else {
      const std::size_t at = rng.below(flows.size());
      line.leave(flows[at]);
      flows[at] = flows.back();
      flows.pop_back();
    }
    if (flows.empty()) continue;
    std::size_t most = 0;
    for (std::size_t id = 0; id < FairTurns::kFlows; ++id) {
      most = std::max(most, line.size(static_cast<FlowId>(id)));
    }
    ASSERT_GT(2 * line.size(line.turns.longest()), most);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
