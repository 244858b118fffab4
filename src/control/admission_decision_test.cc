// The order of the seven steps, what each takes and gives back, and what a permit holds.
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

// A controller at the bound of every rule: one more request of the same kind breaks all of them.
class EveryRuleBroken : public ::testing::Test {
 protected:
  static AdmissionConfig config() {
    AdmissionConfig c = plain_config(1);
    c.per_peer_limit = 1;
    c.inflight_max = 1;
    c.bytes_max = 100;
    c.total_bytes_max = 100;
    c.classes.caps[index_of(Priority::kNormal)] = 1;
    return c;
  }
  EveryRuleBroken() : controller(config(), Rng(1)) {
    AdmissionRequest first = request();
    first.deadline = TimePoint{};
    first.bytes = 60;
    held = controller.try_admit(first, kStart).value();
    controller.set_memory(0.99, true);
  }
  [[nodiscard]] AdmissionRequest request() const {
    AdmissionRequest r = request_of(Priority::kNormal);
    r.peer = controller.identify("node");
    r.actor = controller.identify("alice");
    r.deadline = kStart;
    r.bytes = 101;
    return r;
  }
  // Tries the request; nothing more is held afterwards than before.
  [[nodiscard]] Reason answer(const AdmissionRequest& r) {
    const auto result = controller.try_admit(r, kStart);
    EXPECT_EQ(controller.stats().in_flight, 1U);
    EXPECT_EQ(controller.stats().bytes, 60U);
    EXPECT_EQ(controller.top_actors(9).size(), 1U);
    EXPECT_EQ(controller.top_actors(9).at(0).in_flight, 1U);
    EXPECT_EQ(controller.top_actors(9).at(0).bytes, 60U);
    EXPECT_EQ(controller.top_peers(9).size(), 1U);
    EXPECT_EQ(controller.top_peers(9).at(0).in_flight, 1U);
    return result.has_value() ? Reason::kAdmitted : result.error();
  }

  AdmissionController controller;
  Permit held;
};

// Each rule that is satisfied exposes the next one, in the order of the table.
TEST_F(EveryRuleBroken, TheFirstRuleInOrderAnswersAndGivesBackWhatEarlierOnesTook) {
  AdmissionRequest r = request();
  EXPECT_EQ(answer(r), Reason::kDeadline);
  r.deadline = kStart + Duration(1);
  EXPECT_EQ(answer(r), Reason::kMemory);
  controller.set_memory(0.1, true);
  EXPECT_EQ(answer(r), Reason::kTooLarge);
  r.bytes = 50;
  EXPECT_EQ(answer(r), Reason::kPeerLimit);
  r.peer = controller.identify("other node");
  EXPECT_EQ(answer(r), Reason::kActorInflight);
  AdmissionConfig next = config();
  next.inflight_max = 2;
  controller.reconfigure(next);
  EXPECT_EQ(answer(r), Reason::kActorBytes);
  r.actor = controller.identify("bob");
  EXPECT_EQ(answer(r), Reason::kBytes);
  r.bytes = 40;
  EXPECT_EQ(answer(r), Reason::kClassLimit);
  r.priority = Priority::kHigh;
  EXPECT_EQ(answer(r), Reason::kOverload);
  next.max_concurrent = next.limit.initial_limit = next.limit.max_limit = 2;
  controller.reconfigure(next);
  EXPECT_TRUE(controller.try_admit(r, kStart).has_value());
  EXPECT_EQ(controller.stats().rejected, 9U);
}

TEST_F(EveryRuleBroken, CriticalPassesThemAllAndIsBilledAllTheSame) {
  AdmissionRequest r = request();
  r.priority = Priority::kCritical;
  {
    const Permit permit = controller.try_admit(r, kStart).value();
    EXPECT_EQ(controller.stats().bytes, 161U);
    EXPECT_EQ(controller.top_actors(1).at(0).in_flight, 2U);
    EXPECT_EQ(controller.stats().in_flight, 1U);  // critical is neither compared nor counted here
    EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).classes[0].in_flight, 1U);
  }
  EXPECT_EQ(controller.stats().critical_shed, 0U);
  EXPECT_EQ(answer(request()), Reason::kDeadline);
}

TEST_F(EveryRuleBroken, HighPassesMemoryAndNothingElse) {
  AdmissionRequest r = request();
  r.priority = Priority::kHigh;
  r.deadline = TimePoint{};
  EXPECT_EQ(answer(r), Reason::kTooLarge);
}

TEST(AdmissionDecision, NobodyIsNobodysActorAndNobodysPeer) {
  AdmissionConfig config = plain_config(100);
  config.inflight_max = 1;
  config.per_peer_limit = 1;
  AdmissionController controller(config, Rng(1));
  EXPECT_EQ(admit_all(controller, request_of(Priority::kNormal), 50).size(), 50U);
  AdmissionRequest peer = request_of(Priority::kNormal);
  peer.peer = controller.identify("same name");
  AdmissionRequest actor = request_of(Priority::kNormal);
  actor.actor = controller.identify("same name");
  const std::vector<Permit> one = admit_all(controller, peer, 50);
  EXPECT_EQ(one.size(), 1U);
  EXPECT_EQ(admit_all(controller, actor, 50).size(), 1U);  // a peer is not an actor
}

TEST(AdmissionDecision, BytesThatNeverFitAreTooLargeAndBytesThatMightAreNot) {
  AdmissionConfig config = plain_config(100);
  config.bytes_max = 100;
  config.total_bytes_max = 150;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest anonymous = request_of(Priority::kNormal);
  anonymous.bytes = 151;
  EXPECT_EQ(controller.try_admit(anonymous, kStart).error(), Reason::kTooLarge);
  anonymous.bytes = 101;  // no actor: only the process-wide budget counts
  EXPECT_TRUE(controller.try_admit(anonymous, kStart).has_value());
  AdmissionRequest named = anonymous;
  named.actor = controller.identify("alice");
  EXPECT_EQ(controller.try_admit(named, kStart).error(), Reason::kTooLarge);
  named.bytes = 100;
  const Permit held = controller.try_admit(named, kStart).value();
  EXPECT_EQ(controller.try_admit(named, kStart).error(), Reason::kActorBytes);
  anonymous.bytes = 51;
  EXPECT_EQ(controller.try_admit(anonymous, kStart).error(), Reason::kBytes);
}

TEST(AdmissionDecision, ATotalBudgetOfZeroIsNone) {
  AdmissionConfig config = plain_config(100);
  config.total_bytes_max = 0;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.bytes = kActorBytesMax;
  std::vector<Permit> permits = admit_all(controller, request, 10);
  EXPECT_EQ(permits.size(), 10U);
  EXPECT_EQ(controller.stats().bytes, 10 * kActorBytesMax);
  EXPECT_TRUE(permits[0].try_grow(1));
}

// ---- the permit

TEST(AdmissionPermit, FitsACacheLineAndMovesOnly) {
  static_assert(sizeof(Permit) == 48);
  static_assert(!std::is_copy_constructible_v<Permit>);
  static_assert(std::is_nothrow_move_constructible_v<Permit>);
  AdmissionController controller(small_config(), Rng(1));
  Permit a = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  Permit b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(b);
  EXPECT_EQ(controller.stats().in_flight, 1U);
  Permit& same = b;
  b = std::move(same);
  EXPECT_TRUE(b);
  b = controller.try_admit(request_of(Priority::kHigh), kStart).value();  // destroys the first
  EXPECT_EQ(controller.stats().in_flight, 1U);
  EXPECT_EQ(b.priority(), Priority::kHigh);
  EXPECT_EQ(b.granted_at(), kStart);
  std::move(b).finish(Outcome::kOk, kStart);
  std::move(b).finish(Outcome::kOk, kStart);  // NOLINT(bugprone-use-after-move): a second is none
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionPermit, GivesEverythingBackWhateverTheOutcome) {
  AdmissionController controller(small_config(), Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.peer = controller.identify("node");
  request.actor = controller.identify("alice");
  request.bytes = 1000;
  request.cost = 3;
  for (const Outcome outcome :
       {Outcome::kOk, Outcome::kIgnored, Outcome::kOverload, Outcome::kError}) {
    Permit permit = controller.try_admit(request, kStart).value();
    EXPECT_EQ(controller.stats().in_flight, 3U);
    std::move(permit).finish(outcome, after_ms(5));
    EXPECT_TRUE(all_is_given_back(controller));
  }
  {
    const Permit destroyed = controller.try_admit(request, kStart).value();
    EXPECT_FALSE(all_is_given_back(controller));
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionPermit, GrowsWithinBothBudgetsOrNotAtAll) {
  AdmissionConfig config = plain_config(10);
  config.bytes_max = 100;
  config.total_bytes_max = 150;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify("alice");
  request.bytes = 10;
  Permit permit = controller.try_admit(request, kStart).value();
  EXPECT_TRUE(permit.try_grow(90));
  EXPECT_EQ(permit.try_grow(1).error(), Reason::kActorBytes);
  EXPECT_EQ(permit.bytes(), 100U);
  EXPECT_EQ(controller.stats().bytes, 100U);  // and the process-wide budget was not charged
  AdmissionRequest other = request_of(Priority::kNormal);
  other.actor = controller.identify("bob");
  other.bytes = 50;
  Permit second = controller.try_admit(other, kStart).value();
  EXPECT_EQ(second.try_grow(1).error(), Reason::kBytes);
  EXPECT_EQ(controller.top_actors(2).at(1).bytes, 50U);
  permit.shrink(60);
  EXPECT_TRUE(second.try_grow(50));
  EXPECT_EQ(controller.stats().bytes, 140U);
}

TEST(AdmissionPermit, ACriticalOneGrowsPastBothBudgets) {
  AdmissionConfig config = plain_config(10);
  config.bytes_max = 100;
  config.total_bytes_max = 100;
  AdmissionController controller(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kCritical);
  request.actor = controller.identify("alice");
  Permit permit = controller.try_admit(request, kStart).value();
  EXPECT_TRUE(permit.try_grow(1000));
  EXPECT_EQ(controller.stats().bytes, 1000U);
}

TEST(AdmissionPermit, MayEndOnAnotherThread) {
  AdmissionController controller(small_config(), Rng(1));
  Permit permit = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  std::jthread([moved = std::move(permit)]() mutable {
    std::move(moved).finish(Outcome::kOk, after_ms(1));
  }).join();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionPermitDeathTest, MustNotOutliveItsController) {
  EXPECT_DEATH(
      {
        Permit leaked;
        AdmissionController controller(small_config(), Rng(1));
        leaked = controller.try_admit(request_of(Priority::kNormal), kStart).value();
      },
      "WEIR_ASSERT");
}

// ---- critical

TEST(AdmissionCritical, IsNeverRefusedAndNeverWaitsWithTwentyThousandInFlight) {
  AdmissionConfig config = plain_config(1);
  config.inflight_max = 1;
  config.per_peer_limit = 1;
  AdmissionController controller(config, Rng(1));
  const std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 1);
  controller.set_memory(1.0, true);
  AdmissionRequest request = request_of(Priority::kCritical);
  request.peer = controller.identify("node");
  request.actor = controller.identify("alice");
  request.deadline = kStart;
  std::vector<Permit> held;
  Waiter waiter;
  for (int i = 0; i < 20'000; ++i) {
    Entered entered = controller.enter(request, waiter, after_ms(i));
    ASSERT_EQ(entered.kind, Entered::Kind::kAdmitted) << i;
    held.push_back(std::move(entered.permit));
  }
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(stats.classes[0].in_flight, 20'000U);
  EXPECT_EQ(stats.classes[0].acquired, 20'000U);
  EXPECT_EQ(stats.classes[0].shed, 0U);
  EXPECT_EQ(stats.in_flight, 1U);
  EXPECT_EQ(controller.stats().critical_shed, 0U);
  // Half of them stream, so that both kinds of units are given back in both ways.
  for (std::size_t i = 0; i < held.size(); i += 2) EXPECT_TRUE(held[i].to_streaming(kStart));
  EXPECT_EQ(controller.stats().streaming, 10'000U);
  held.clear();
  EXPECT_EQ(controller.stats().streaming, 0U);
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).classes[0].in_flight, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
