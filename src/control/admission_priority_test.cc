// Classes under load: which is shed first, which never; a cluster manager flooded with updates.
#include <array>
#include <atomic>
#include <functional>
#include <queue>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The profile of a cluster manager: 1000 in total, of them 500 high, 300 normal, 200 low.
AdmissionConfig manager_config() {
  AdmissionConfig config = plain_config(1000);
  config.classes.caps = {0, 500, 300, 200};
  return config;
}

TEST(AdmissionPriority, CriticalIsAlwaysAcquiredRegardlessOfLoad) {
  AdmissionController controller(manager_config(), Rng(1));
  std::vector<Permit> all;
  for (const Priority p : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    for (Permit& permit : admit_all(controller, request_of(p), 10'000)) {
      all.push_back(std::move(permit));
    }
  }
  ASSERT_EQ(all.size(), 1000U);
  const std::vector<Permit> critical = admit_all(controller, request_of(Priority::kCritical), 5000);
  EXPECT_EQ(critical.size(), 5000U);
  EXPECT_EQ(controller.stats().critical_shed, 0U);
}

// With the default shares: as the scope fills, the classes reach their bounds one after the other.
TEST(AdmissionPriority, LowIsShedBeforeNormalBeforeHigh) {
  AdmissionConfig config = plain_config(100);
  config.classes = ClassRules{};
  AdmissionController controller(config, Rng(1));
  std::vector<Permit> held;
  std::array<std::size_t, kPriorityCount> first_refused{};
  for (std::size_t in_flight = 0; in_flight <= 100; ++in_flight) {
    for (const Priority p : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
      const bool admitted = controller.try_admit(request_of(p), kStart).has_value();
      if (!admitted && first_refused[index_of(p)] == 0) first_refused[index_of(p)] = in_flight;
    }
    auto next = controller.try_admit(request_of(Priority::kHigh), kStart);
    if (next) held.push_back(std::move(next).value());
  }
  EXPECT_EQ(first_refused[index_of(Priority::kLow)], 75U);
  EXPECT_EQ(first_refused[index_of(Priority::kNormal)], 90U);
  EXPECT_EQ(first_refused[index_of(Priority::kHigh)], 100U);
}

// At a limit of four: exactly three low are admitted, the fourth is refused, high is admitted.
TEST(AdmissionPriority, HighIsAdmittedWhenLowIsRejected) {
  AdmissionConfig config;
  config.max_concurrent = 4;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = 4;
  AdmissionController controller(config, Rng(1));
  const std::vector<Permit> low = admit_all(controller, request_of(Priority::kLow), 10);
  EXPECT_EQ(low.size(), 3U);
  EXPECT_EQ(controller.try_admit(request_of(Priority::kLow), kStart).error(), Reason::kOverload);
  Waiter waiter;
  EXPECT_EQ(controller.enter(request_of(Priority::kHigh), waiter, kStart).kind,
            Entered::Kind::kAdmitted);
}

TEST(AdmissionPriority, PerPriorityLimitsAreEnforcedIndependently) {
  constexpr std::array<std::size_t, kPriorityCount> kCaps = {0, 500, 300, 200};
  for (const Priority filled : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    AdmissionController controller(manager_config(), Rng(1));
    const std::vector<Permit> full = admit_all(controller, request_of(filled), 10'000);
    EXPECT_EQ(full.size(), kCaps[index_of(filled)]);
    EXPECT_EQ(controller.try_admit(request_of(filled), kStart).error(), Reason::kClassLimit);
    for (const Priority other : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
      if (other == filled) continue;
      EXPECT_EQ(admit_all(controller, request_of(other), 10'000).size(), kCaps[index_of(other)]);
    }
  }
}

TEST(AdmissionPriority, ReleaseDecrementsTheCountersOfItsClass) {
  AdmissionController controller(manager_config(), Rng(1));
  const auto in_flight = [&](Priority p) {
    return controller.scope_stats(ScopeId::kFirst, kStart).classes[index_of(p)].in_flight;
  };
  for (const Priority p : kPriorities) {
    std::vector<Permit> held = admit_all(controller, request_of(p), 5);
    EXPECT_EQ(in_flight(p), 5U);
    std::move(held.back()).finish(Outcome::kOk, after_ms(1));
    EXPECT_EQ(in_flight(p), 4U);
    held.pop_back();
    EXPECT_EQ(in_flight(p), 4U);  // a finished one gives nothing back twice
    held.clear();
    EXPECT_EQ(in_flight(p), 0U);
    const ClassStats stats = controller.scope_stats(ScopeId::kFirst, kStart).classes[index_of(p)];
    EXPECT_EQ(stats.acquired, 5U);
    EXPECT_EQ(stats.shed, 0U);
  }
  EXPECT_TRUE(all_is_given_back(controller));
}

// ---- a manager under ten thousand updates a second, in virtual time

struct Load {
  Priority priority;
  Duration every;
  Duration takes;
  std::uint64_t offered = 0;
  std::uint64_t admitted = 0;
};

struct Finish {
  TimePoint at;
  mutable Permit permit;
  bool operator>(const Finish& other) const { return at > other.at; }
};

/// Ten seconds of arrivals, each admitted or refused when it arrives; admitted ones end later.
void drive(AdmissionController& controller, std::vector<Load>& loads) {
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> running;
  constexpr Duration kTick = std::chrono::microseconds(100);
  for (TimePoint now = kStart; now < kStart + seconds(10); now += kTick) {
    while (!running.empty() && running.top().at <= now) {
      std::move(running.top().permit).finish(Outcome::kOk, running.top().at);
      running.pop();
    }
    for (Load& load : loads) {
      if ((now - kStart) % load.every != Duration(0)) continue;
      ++load.offered;
      auto permit = controller.try_admit(request_of(load.priority), now);
      if (!permit) continue;
      ++load.admitted;
      running.push({now + load.takes, std::move(permit).value()});
    }
    if ((now - kStart) % milliseconds(100) == Duration(0)) controller.expire(now);
    ASSERT_LE(controller.stats().in_flight, 1000U);
  }
}

TEST(AdmissionPriority, AManagerUnderTenThousandUpdatesASecondShedsLowAndKeepsCritical) {
  AdmissionController controller(manager_config(), Rng(1));
  std::vector<Load> loads = {
      {Priority::kLow, std::chrono::microseconds(100), milliseconds(50)},  // updates
      {Priority::kCritical, milliseconds(10), milliseconds(1)},            // probes
      {Priority::kHigh, milliseconds(2), milliseconds(100)},               // results
      {Priority::kNormal, milliseconds(2), milliseconds(100)},             // queries
  };
  drive(controller, loads);
  EXPECT_EQ(loads[0].offered, 100'000U);
  // 200 at a time for 50 ms each are 4000 a second; the other 6000 are shed.
  EXPECT_NEAR(static_cast<double>(loads[0].admitted), 40'000, 400);
  EXPECT_EQ(loads[1].admitted, loads[1].offered);
  EXPECT_EQ(loads[1].offered, 1000U);
  EXPECT_EQ(loads[2].admitted, loads[2].offered);
  EXPECT_EQ(loads[3].admitted, loads[3].offered);
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, kStart);
  EXPECT_EQ(stats.classes[index_of(Priority::kLow)].shed, loads[0].offered - loads[0].admitted);
  EXPECT_EQ(controller.stats().critical_shed, 0U);
  EXPECT_TRUE(all_is_given_back(controller));
}

// The same flood with every class above its share: they are shed in order, critical never.
TEST(AdmissionPriority, WhenEverythingIsOverloadedTheSharesOrderWhoIsShed) {
  AdmissionConfig config = plain_config(100);
  config.classes = ClassRules{};
  AdmissionController controller(config, Rng(1));
  std::vector<Load> loads = {
      {Priority::kLow, milliseconds(1), milliseconds(60)},
      {Priority::kNormal, milliseconds(1), milliseconds(60)},
      {Priority::kHigh, milliseconds(1), milliseconds(60)},
      {Priority::kCritical, milliseconds(1), milliseconds(60)},
  };
  drive(controller, loads);
  const auto share = [](const Load& load) {
    return static_cast<double>(load.admitted) / static_cast<double>(load.offered);
  };
  EXPECT_EQ(share(loads[3]), 1.0);
  EXPECT_GT(share(loads[2]), share(loads[1]));
  EXPECT_GT(share(loads[1]), share(loads[0]));
}

// With threads: three of them flood with updates, a fourth sends probes and none is refused.
TEST(AdmissionPriority, ProbesPassWhileThreadsFlood) {
  constexpr int kProbes = rounds(50'000);
  AdmissionController controller(plain_config(8), Rng(1));
  std::vector<Permit> full = admit_all(controller, request_of(Priority::kHigh), 8);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> shed{0};
  std::atomic<int> missed{0};
  run_together(4, [&](std::size_t t) {
    if (t == 0) {
      for (int i = 0; i < kProbes || shed.load() == 0; ++i) {
        if (!controller.try_admit(request_of(Priority::kCritical), kStart)) missed.fetch_add(1);
      }
      stop.store(true);
    } else {
      while (!stop.load()) {
        if (!controller.try_admit(request_of(Priority::kLow), kStart)) shed.fetch_add(1);
      }
    }
  });
  EXPECT_EQ(missed.load(), 0);
  EXPECT_GT(shed.load(), 0U);
  EXPECT_EQ(controller.stats().rejected, shed.load());
  full.clear();
  EXPECT_TRUE(all_is_given_back(controller));
}

}  // namespace
}  // namespace weir::inline v0::inline control
