// A line that stands: what waiting is like in a lasting overload, and how it ends. Virtual time.
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "admission_testing.h"
#include "waiting_room.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;
using Kind = Entered::Kind;

/// One worker that serves a request every 5 ms, and requests that come at a given pace. All time is
/// counted in milliseconds from kStart.
class OneWorker : public ::testing::Test {
 protected:
  static constexpr std::int64_t kServes = 5;
  struct Ended {
    std::int64_t at, waited;
    bool admitted;
  };

  OneWorker() : controller(plain_config(1), Rng(1)) {
    working = controller.try_admit(request_of(Priority::kCritical), kStart).value();
    working = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  }
  ~OneWorker() override {
    while (!line.empty()) {
      if (!controller.cancel(*line.front().waiter)) collect(line.front());
      line.pop_front();
    }
    working = Permit();
    EXPECT_TRUE(all_is_given_back(controller));
  }

  /// Runs until `until`, with `per_ms` arrivals each millisecond.
  void run(std::int64_t until, int per_ms) {
    for (; now < until; ++now) {
      if (now % kServes == 0 && working) std::move(working).finish(Outcome::kOk, after_ms(now));
      controller.expire(after_ms(now));
      take_decided();
      for (int i = 0; i < per_ms; ++i) arrive();
      take_decided();
    }
  }
  void arrive() {
    auto waiter = std::make_unique<Waiter>();
    Entered entered = controller.enter(request_of(Priority::kNormal), *waiter, after_ms(now));
    if (entered.kind == Kind::kWaiting) {
      line.push_back({now, std::move(waiter)});
      return;
    }
    if (entered.kind == Kind::kAdmitted) working = std::move(entered.permit);
    ended.push_back({now, 0, entered.kind == Kind::kAdmitted});
  }
  struct Waiting {
    std::int64_t came;
    std::unique_ptr<Waiter> waiter;
  };
  void collect(Waiting& one) {
    auto permit = controller.collect(*one.waiter, after_ms(now));
    ended.push_back({now, now - one.came, permit.has_value()});
    if (permit) working = std::move(permit).value();
  }
  void take_decided() {
    for (auto it = line.begin(); it != line.end();) {
      if (it->waiter->state() == Waiter::State::kWaiting) {
        ++it;
        continue;
      }
      collect(*it);
      it = line.erase(it);
    }
  }
  [[nodiscard]] bool standing() const {
    const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, after_ms(now));
    return stats.classes[index_of(Priority::kNormal)].standing;
  }
  [[nodiscard]] Duration explained() const {
    return controller.explain(request_of(Priority::kNormal), after_ms(now)).wait_max;
  }
  /// The longest wait of those that ended in a period.
  [[nodiscard]] std::int64_t longest(std::int64_t from, std::int64_t to, bool admitted) const {
    std::int64_t most = 0;
    for (const Ended& e : ended) {
      if (e.at >= from && e.at < to && e.admitted == admitted) most = std::max(most, e.waited);
    }
    return most;
  }
  [[nodiscard]] std::size_t count(std::int64_t from, std::int64_t to, bool admitted) const {
    return static_cast<std::size_t>(std::count_if(ended.begin(), ended.end(), [&](const Ended& e) {
      return e.at >= from && e.at < to && e.admitted == admitted;
    }));
  }

  AdmissionController controller;
  Permit working;
  std::deque<Waiting> line;
  std::vector<Ended> ended;
  std::int64_t now = 0;
};

TEST_F(OneWorker, AtTheBeginningOfAnOverloadTheWholeTierIsUsed) {
  run(1000, 1);
  EXPECT_FALSE(standing());
  EXPECT_EQ(longest(500, 1000, true), 49);
}

TEST_F(OneWorker, InALastingOverloadNobodyWaitsMoreThanTenMilliseconds) {
  run(3000, 1);  // the refusals begin after 50 ms: it stands from about 2400 on
  ASSERT_TRUE(standing());
  const ScopeStats stats = controller.scope_stats(ScopeId::kFirst, after_ms(now));
  EXPECT_FALSE(stats.classes[index_of(Priority::kHigh)].standing) << "a line of its own";
  EXPECT_EQ(longest(2500, 3000, true), 9);
  EXPECT_LE(longest(2600, 3000, false), 10);
  EXPECT_EQ(count(2500, 3000, true), 100U) << "and the worker is never idle";
}

TEST_F(OneWorker, AtTheFrontOfAStandingLineAnOldWaiterIsRefused) {
  std::int64_t since = 0;
  for (std::int64_t ms = 2000; since == 0; ++ms) {
    run(ms, 1);
    if (standing()) since = ms;
  }
  run(since + 20, 1);
  EXPECT_EQ(longest(since, since + 20, true), 10) << "the line held waiters of 50 ms";
  EXPECT_GT(longest(since, since + 20, false), 30);
}

TEST_F(OneWorker, ExplainSaysHowLongARequestWouldWaitNow) {
  run(1000, 1);
  while (!line.empty()) run(now + 1, 0);
  arrive();
  EXPECT_EQ(explained(), milliseconds(50));
  run(4200, 1);
  while (line.size() > 1) run(now + 1, 0);
  ASSERT_TRUE(standing());
  EXPECT_EQ(explained(), milliseconds(10));
  arrive();
  EXPECT_EQ(line.back().waiter->expires_at(), after_ms(now) + milliseconds(10));
}

TEST_F(OneWorker, WhenTheOverloadEndsTheTierHoldsAgain) {
  run(3000, 1);
  ASSERT_TRUE(standing());
  run(4000, 0);
  EXPECT_FALSE(standing());
  run(4100, 1);
  EXPECT_EQ(longest(4050, 4100, true), 49);
}

// Eight clients that ask again when they have an answer or a refusal need 40 ms each: all could be
// served. After an overload they must be, though with 10 ms two thirds of them are refused.
TEST_F(OneWorker, ClientsThatWaitForTheirAnswersAreServedAgainAfterAnOverload) {
  run(3000, 1);
  ASSERT_TRUE(standing());
  const auto closed_loop = [&](std::int64_t until) {
    while (now < until) {
      run(now + 1, 0);
      while (line.size() < 8) {
        const std::size_t before = line.size();
        arrive();
        if (line.size() == before) break;  // refused: it asks again in a millisecond
      }
    }
  };
  closed_loop(6000);
  EXPECT_FALSE(standing());
  EXPECT_EQ(count(5000, 6000, false), 0U);
  EXPECT_EQ(count(5000, 6000, true), 200U);
}

TEST_F(OneWorker, DeadlinesOfTheirOwnDoNotMakeTheLineStand) {
  AdmissionRequest hurried = request_of(Priority::kNormal);
  for (; now < 5000; ++now) {
    if (now % kServes == 0) {
      std::move(working).finish(Outcome::kOk, after_ms(now));
      take_decided();
      arrive();  // as many as can be served
      while (line.size() < 2) arrive();
    }
    hurried.deadline = after_ms(now + 1);
    Waiter waiter;
    if (controller.enter(hurried, waiter, after_ms(now)).kind == Kind::kWaiting) {
      controller.expire(after_ms(now + 1));
      EXPECT_EQ(controller.collect(waiter, after_ms(now + 1)).error(), Reason::kDeadline);
    }
  }
  EXPECT_FALSE(standing());
}

TEST(StandingRoom, AThreadThatGivesUpIsARefusalOfTheLine) {
  AdmissionController controller(plain_config(1), Rng(1));
  const Permit held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  TimePoint now = kStart;
  Duration last{};
  for (int i = 0; i < 60; ++i) {
    ScriptedParker parker([&](TimePoint until) {
      last = until - now;
      return now = until;
    });
    EXPECT_FALSE(controller.admit(request_of(Priority::kNormal), parker, now).has_value());
  }
  EXPECT_EQ(last, milliseconds(10));
}

TEST(StandingRoom, AStallOfTheProcessIsForgivenInAStandingLineToo) {
  AdmissionController controller(plain_config(1), Rng(1));
  controller.forgive_pauses(milliseconds(5));
  Permit held = controller.try_admit(request_of(Priority::kHigh), kStart).value();
  TimePoint now = kStart;
  for (int i = 0; i < 300; ++i, now += milliseconds(10)) {
    Waiter waiter;
    ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, now).kind, Kind::kWaiting);
    controller.expire(waiter.expires_at());
    now = std::max(now, waiter.expires_at() - milliseconds(10));
    ASSERT_FALSE(controller.collect(waiter, now).has_value());
  }
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, now).kind, Kind::kWaiting);
  ASSERT_EQ(waiter.expires_at(), now + milliseconds(10)) << "it stands";
  now += milliseconds(300);
  controller.expire(now);
  ASSERT_EQ(waiter.expires_at(), now + milliseconds(10)) << "as long once more";
  std::move(held).finish(Outcome::kOk, now + milliseconds(5));
  EXPECT_TRUE(controller.collect(waiter, now + milliseconds(5)).has_value());
}

}  // namespace
}  // namespace weir::inline v0::inline control
