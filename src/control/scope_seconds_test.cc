#include "control/scope_seconds.h"

#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ScopeStats stats_of(std::uint64_t admitted, std::uint64_t overload, std::uint64_t answered) {
  ScopeStats stats;
  stats.classes[index_of(Priority::kNormal)].acquired = admitted;
  stats.classes[index_of(Priority::kNormal)].shed = overload;
  stats.refused[index_of(Reason::kOverload)] = overload;
  stats.samples = answered;
  stats.latency_sum = milliseconds(10) * static_cast<std::int64_t>(answered);
  return stats;
}

TEST(ScopeSeconds, RatesAreTheDifferencesOfTwoReadingsPerSecond) {
  ScopeSeconds scope;
  static_cast<void>(scope.next(stats_of(1000, 50, 900), seconds(1), 7, {}, {}));
  ScopeStats later = stats_of(1400, 150, 1200);
  later.errors = 6;
  later.overloads = 4;
  const policy::ScopeSecond s = scope.next(later, seconds(2), 27, {}, {});
  EXPECT_DOUBLE_EQ(s.offered, 260);  // 400 + 100 + 20 in two seconds
  EXPECT_DOUBLE_EQ(s.refused_limit, 50);
  EXPECT_DOUBLE_EQ(s.refused_own, 10);
  EXPECT_DOUBLE_EQ(s.answered, 150);
  EXPECT_DOUBLE_EQ(s.latency_ms, 10);
  EXPECT_DOUBLE_EQ(s.failed, 5);
}

TEST(ScopeSeconds, EachReasonCountsForWhoIsAtFault) {
  ScopeStats stats;
  for (std::size_t i = 1; i < kReasonCount; ++i) stats.refused[i] = 1U << i;
  const auto of = [](Reason r) { return static_cast<double>(1U << index_of(r)); };
  ScopeSeconds scope;
  const policy::ScopeSecond s = scope.next(stats, seconds(1), 0, {}, {});
  EXPECT_DOUBLE_EQ(s.refused_limit, of(Reason::kOverload) + of(Reason::kClassLimit));
  EXPECT_DOUBLE_EQ(s.refused_client,
                   of(Reason::kPeerLimit) + of(Reason::kActorInflight) + of(Reason::kActorBytes));
  EXPECT_DOUBLE_EQ(s.refused_memory, of(Reason::kMemory) + of(Reason::kBytes));
}

TEST(ScopeSeconds, NoSampleMeansNoLatency) {
  ScopeSeconds scope;
  EXPECT_DOUBLE_EQ(scope.next(stats_of(10, 0, 0), seconds(1), 0, {}, {}).latency_ms, 0);
}

TEST(ScopeSeconds, TheLargestClientIsAShareOfWhatAllHold) {
  std::vector<BudgetRow> actors(4);
  for (std::size_t i = 0; i < actors.size(); ++i) actors[i].in_flight = i == 2 ? 7 : 1;
  ScopeSeconds scope;
  const policy::ScopeSecond s = scope.next({}, seconds(1), 0, actors, {3, 2, 4.5});
  EXPECT_DOUBLE_EQ(s.top_client_in_flight, 0.7);
  EXPECT_EQ(s.clients_active, 4U);
  EXPECT_EQ(s.replicas, 3U);
  EXPECT_EQ(s.replicas_open, 2U);
  EXPECT_DOUBLE_EQ(s.worst_replica, 4.5);
}

}  // namespace
}  // namespace weir::inline v0::inline control
