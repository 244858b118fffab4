// Sixteen threads of a few actors in a small room: turns, displaced waiters, and the switch between
// fair and first come, first served, at the same time. The counts are exact.
#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

constexpr std::size_t kRivals = 16;
constexpr std::size_t kRacingActors = 5;  // "0" has eleven of the threads

std::string actor_of(std::size_t thread) {
  return std::to_string(thread < kRacingActors ? thread : 0);
}

AdmissionConfig config_of(std::uint32_t waiting_max) {
  AdmissionConfig config = plain_config(2);
  config.inflight_max = 100;
  config.waiting_max = waiting_max;
  return config;
}

struct Tally {
  std::atomic<std::uint64_t> admitted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<int> inside{0};
  std::atomic<int> crowded{0};
};

void use(Permit permit, Tally& tally) {
  if (tally.inside.fetch_add(1) >= 2) tally.crowded.fetch_add(1);
  std::this_thread::yield();  // the others find no place and wait
  tally.inside.fetch_sub(1);
  std::move(permit).finish(Outcome::kOk, kStart);
}

std::uint64_t waited_in(const AdmissionController& controller) {
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  return stats.classes[index_of(Priority::kNormal)].waited.count;
}

TEST(FairnessRace, NobodyIsLostAndNothingIsExceededInAFullRoom) {
  constexpr int kEach = rounds(10'000);
  AdmissionController controller(config_of(6), Rng(1));
  Tally tally;
  run_together(kRivals, [&](std::size_t t) {
    PatientParker parker;
    AdmissionRequest request = request_of(t % 8 == 7 ? Priority::kHigh : Priority::kNormal);
    const std::string name = actor_of(t);  // the label points into it
    request.actor = controller.identify(name);
    request.cost = t % 4 == 3 ? 2 : 1;
    for (int i = 0; i < kEach; ++i) {
      if (auto permit = controller.admit(request, parker, kStart)) {
        tally.admitted.fetch_add(1);
        use(std::move(permit).value(), tally);
      } else {
        tally.refused.fetch_add(1);
      }
    }
  });
  EXPECT_EQ(tally.crowded.load(), 0);
  EXPECT_EQ(tally.admitted.load() + tally.refused.load(), std::uint64_t{kRivals} * kEach);
  EXPECT_EQ(controller.stats().admitted, tally.admitted.load());
  EXPECT_EQ(controller.stats().rejected, tally.refused.load());
  EXPECT_GT(waited_in(controller), 100U) << "or it was no race";
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(FairnessRace, ARoomForAllServesEveryRequestWhileTheRuleIsSwitched) {
  constexpr int kEach = rounds(1000);
  AdmissionController controller(config_of(64), Rng(1));
  Tally tally;
  std::atomic<bool> done{false};
  run_together(kRivals + 1, [&](std::size_t t) {
    if (t == kRivals) {
      AdmissionConfig config = controller.config();
      while (!done.load()) {
        config.fair = config.fair == Fairness::kOff ? Fairness::kActor : Fairness::kOff;
        EXPECT_TRUE(controller.reconfigure(config).empty());
        std::this_thread::yield();
      }
      return;
    }
    PatientParker parker;
    AdmissionRequest request = request_of(Priority::kNormal);
    const std::string name = actor_of(t);  // the label points into it
    request.actor = controller.identify(name);
    for (int i = 0; i < kEach; ++i) {
      use(controller.admit(request, parker, kStart).value(), tally);
      if (tally.admitted.fetch_add(1) + 1 == std::uint64_t{kRivals} * kEach) done.store(true);
    }
  });
  EXPECT_EQ(tally.crowded.load(), 0);
  EXPECT_EQ(controller.stats().admitted, std::uint64_t{kRivals} * kEach);
  EXPECT_EQ(controller.stats().rejected, 0U);
  EXPECT_GT(waited_in(controller), 100U) << "or it was no race";
  EXPECT_TRUE(all_is_given_back(controller));
}

// Waiters of sixteen threads displace each other while other threads cancel: each waiter ends
// exactly once.
TEST(FairnessRace, OfDisplacedCancelledAndGrantedExactlyOneHappens) {
  constexpr int kEach = rounds(10'000);
  AdmissionController controller(config_of(4), Rng(1));
  Tally tally;
  std::atomic<std::uint64_t> cancelled{0};
  run_together(kRivals, [&](std::size_t t) {
    ReadyFlag flag;
    AdmissionRequest request = request_of(Priority::kNormal);
    const std::string name = actor_of(t);  // the label points into it
    request.actor = controller.identify(name);
    for (int i = 0; i < kEach; ++i) {
      Waiter waiter(&ReadyFlag::set, &flag);
      const int told = flag.calls.load();
      Entered entered = controller.enter(request, waiter, kStart);
      if (entered.kind == Entered::Kind::kRefused) tally.refused.fetch_add(1);
      if (entered.kind == Entered::Kind::kAdmitted) {
        tally.admitted.fetch_add(1);
        use(std::move(entered.permit), tally);
      }
      if (entered.kind != Entered::Kind::kWaiting) continue;
      if (i % 2 == 0) std::this_thread::yield();  // may be long enough to be decided; this one is
      while (i % 4 == 0 && flag.calls.load() == told) std::this_thread::yield();
      if (controller.cancel(waiter)) {
        cancelled.fetch_add(1);
        EXPECT_EQ(flag.calls.load(), told);
        continue;
      }
      auto permit = controller.collect(waiter, kStart);
      EXPECT_EQ(flag.calls.load(), told + 1);
      (permit ? tally.admitted : tally.refused).fetch_add(1);
      if (permit) use(std::move(permit).value(), tally);
    }
  });
  EXPECT_EQ(tally.crowded.load(), 0);
  EXPECT_EQ(tally.admitted.load() + tally.refused.load() + cancelled.load(),
            std::uint64_t{kRivals} * kEach);
  EXPECT_EQ(controller.stats().admitted, tally.admitted.load());
  EXPECT_EQ(controller.stats().rejected, tally.refused.load());
  EXPECT_GT(waited_in(controller), 100U) << "or it was no race";
  EXPECT_TRUE(all_is_given_back(controller));
}

}  // namespace
}  // namespace weir::inline v0::inline control
