// Thirty-two simultaneous attempts at a bound of sixteen: exactly sixteen succeed, in each of ten
// thousand rounds. Every bound of the controller is checked and taken in one atomic step.
#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

constexpr std::size_t kTries = 32;
constexpr std::size_t kBound = 16;
constexpr int kRounds = rounds(10'000);

/// A race at one bound. In each round all threads try at once, and each attempt keeps what it got.
/// The last thread to finish counts, gives everything back and starts the next round.
class Race {
 public:
  explicit Race(const AdmissionConfig& config) : controller(config, Rng(1)) {}

  /// `attempt(i)`, i < 32: takes one, into held[i] if it is a permit; returns whether it succeeded.
  void run(std::size_t threads, const std::function<bool(std::size_t)>& attempt) {
    const std::size_t tries_each = kTries / threads;
    std::barrier round(static_cast<std::ptrdiff_t>(threads), [this]() noexcept { end_round(); });
    before_round();
    run_together(threads, [&](std::size_t t) {
      for (int r = 0; r < kRounds; ++r) {
        std::size_t mine = 0;
        for (std::size_t i = 0; i < tries_each; ++i) {
          mine += attempt(t * tries_each + i) ? 1U : 0U;
        }
        succeeded_.fetch_add(mine, std::memory_order_relaxed);
        round.arrive_and_wait();
      }
    });
    EXPECT_EQ(rounds_run_, kRounds);
    EXPECT_EQ(wrong_rounds_, 0);
    for (Permit& permit : held) permit = Permit();
    after_all();
    EXPECT_TRUE(all_is_given_back(controller));
  }

  bool admit(std::size_t i, const AdmissionRequest& request) {
    auto permit = controller.try_admit(request, kStart);
    if (!permit) return false;
    held[i] = std::move(permit).value();
    return true;
  }

  AdmissionController controller;
  std::array<Permit, kTries> held;
  std::function<void()> before_round = [] {};
  std::function<void()> after_all = [] {};
  std::function<bool()> at_the_bound = [] { return true; };  // evaluated when all have tried

 private:
  void end_round() noexcept {
    const bool right = succeeded_.exchange(0, std::memory_order_relaxed) == kBound;
    if (!right || !at_the_bound()) ++wrong_rounds_;
    ++rounds_run_;
    for (Permit& permit : held) permit = Permit();
    before_round();
  }
  std::atomic<std::size_t> succeeded_{0};
  int wrong_rounds_ = 0;
  int rounds_run_ = 0;
};

AdmissionConfig wide_config() {
  AdmissionConfig config = plain_config(1000);
  config.inflight_max = 1000;
  config.per_peer_limit = 1000;
  return config;
}

TEST(ActorAdmissionRace, DoesNotExceedCap) {
  AdmissionConfig config = wide_config();
  config.inflight_max = kBound;
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = race.controller.identify("alice");
  race.at_the_bound = [&] { return race.controller.top_actors(1).at(0).in_flight == kBound; };
  race.run(kTries, [&](std::size_t i) { return race.admit(i, request); });
}

TEST(ActorAdmissionRace, DoesNotExceedByteCap) {
  AdmissionConfig config = wide_config();
  config.bytes_max = 1000 * kBound + 999;
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = race.controller.identify("alice");
  request.bytes = 1000;
  race.at_the_bound = [&] { return race.controller.top_actors(1).at(0).bytes == 1000 * kBound; };
  race.run(kTries, [&](std::size_t i) { return race.admit(i, request); });
}

// Fewer threads with several attempts each: more of the attempts are truly simultaneous.
constexpr std::size_t kRacers = 4;

TEST(AdmissionRace, DoesNotExceedTheActorsCapAmongManyActors) {
  AdmissionConfig config = wide_config();
  config.inflight_max = kBound / 4;
  Race race(config);
  std::array<AdmissionRequest, 4> requests;
  requests.fill(request_of(Priority::kNormal));
  constexpr std::array<std::string_view, 4> kNames = {"a", "b", "c", "d"};
  for (std::size_t a = 0; a < requests.size(); ++a) {
    requests[a].actor = race.controller.identify(kNames[a]);
  }
  race.run(kRacers, [&](std::size_t i) { return race.admit(i, requests[i % 4]); });
}

TEST(AdmissionRace, DoesNotExceedThePeersLimit) {
  AdmissionConfig config = wide_config();
  config.per_peer_limit = kBound;
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.peer = race.controller.identify("node");
  race.run(kRacers, [&](std::size_t i) { return race.admit(i, request); });
}

TEST(AdmissionRace, DoesNotExceedTheProcessWideBytes) {
  AdmissionConfig config = wide_config();
  config.total_bytes_max = 100 * kBound + 99;
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.bytes = 100;
  race.at_the_bound = [&] { return race.controller.stats().bytes == 100 * kBound; };
  race.run(kRacers, [&](std::size_t i) { return race.admit(i, request); });
}

TEST(AdmissionRace, DoesNotExceedTheClassCap) {
  AdmissionConfig config = wide_config();
  config.classes.caps[index_of(Priority::kLow)] = kBound;
  Race race(config);
  race.run(kRacers, [&](std::size_t i) { return race.admit(i, request_of(Priority::kLow)); });
}

TEST(AdmissionRace, DoesNotExceedTheScopesLimit) {
  AdmissionConfig config = wide_config();
  config.limit.initial_limit = kBound;
  Race race(config);
  race.at_the_bound = [&] { return race.controller.stats().in_flight == kBound; };
  race.run(kRacers, [&](std::size_t i) {
    return race.admit(i, request_of(i % 2 == 0 ? Priority::kHigh : Priority::kNormal));
  });
}

TEST(AdmissionRace, DoesNotExceedMaxConcurrentInOneScope) {
  AdmissionConfig config = wide_config();
  config.max_concurrent = kBound;
  Race race(config);
  race.run(kRacers, [&](std::size_t i) { return race.admit(i, request_of(Priority::kNormal)); });
}

TEST(AdmissionRace, DoesNotExceedMaxConcurrentOverTwoScopes) {
  AdmissionConfig config = wide_config();
  config.max_concurrent = kBound;
  config.scopes_max = 2;
  Race race(config);
  const ScopeId other = race.controller.add_scope("other", config.limit);
  race.at_the_bound = [&] { return race.controller.stats().in_flight == kBound; };
  race.run(kRacers, [&](std::size_t i) {
    return race.admit(i, request_of(Priority::kNormal, i % 2 == 0 ? ScopeId::kFirst : other));
  });
}

TEST(AdmissionRace, DoesNotExceedStreamsMax) {
  AdmissionConfig config = wide_config();
  config.streams_max = kBound;
  Race race(config);
  race.before_round = [&] {
    for (std::size_t i = 0; i < kTries; ++i) {
      EXPECT_TRUE(race.admit(i, request_of(Priority::kNormal)));
    }
  };
  race.at_the_bound = [&] {
    const AdmissionStats stats = race.controller.stats();
    return stats.streaming == kBound && stats.in_flight == kTries - kBound;
  };
  race.run(kRacers, [&](std::size_t i) { return race.held[i].to_streaming(kStart); });
}

// Growth by many requests of one actor, which must stay within two budgets.
TEST(AdmissionRace, GrowthExceedsNeitherTheActorsNorTheProcessWideBytes) {
  for (const bool actor_is_tighter : {true, false}) {
    AdmissionConfig config = wide_config();
    config.bytes_max = actor_is_tighter ? 10 * kBound : 1000 * kBound;
    config.total_bytes_max = actor_is_tighter ? 1000 * kBound : 10 * kBound;
    Race race(config);
    AdmissionRequest request = request_of(Priority::kNormal);
    request.actor = race.controller.identify("alice");
    race.before_round = [&] {
      for (std::size_t i = 0; i < kTries; ++i) EXPECT_TRUE(race.admit(i, request));
    };
    race.at_the_bound = [&] { return race.controller.stats().bytes == 10 * kBound; };
    race.run(kRacers, [&](std::size_t i) { return race.held[i].try_grow(10).has_value(); });
  }
}

// Of requests that began together, exactly as many get a place as there are, and all hold their
// actor's count until then.
TEST(AdmissionRace, TicketsDoNotExceedTheLimitWhenTheyAreUsedTogether) {
  AdmissionConfig config = wide_config();
  config.limit.initial_limit = kBound;
  config.normal_wait_max = Duration(0);
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = race.controller.identify("alice");
  std::array<Ticket, kTries> tickets;
  race.before_round = [&] {
    for (Ticket& ticket : tickets) ticket = race.controller.take_ticket(request, kStart).value();
    EXPECT_EQ(race.controller.top_actors(1).at(0).in_flight, kTries);
  };
  race.after_all = [&] {
    for (Ticket& ticket : tickets) ticket = Ticket();
  };
  race.at_the_bound = [&] {
    return race.controller.stats().in_flight == kBound &&
           race.controller.top_actors(1).at(0).in_flight == kBound;
  };
  race.run(kRacers, [&](std::size_t i) {
    Waiter waiter;
    Entered entered = race.controller.enter(std::move(tickets[i]), waiter, kStart);
    race.held[i] = std::move(entered.permit);
    return entered.kind == Entered::Kind::kAdmitted;
  });
}

TEST(ActorAdmissionRace, TicketsDoNotExceedTheCap) {
  AdmissionConfig config = wide_config();
  config.inflight_max = kBound;
  Race race(config);
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = race.controller.identify("alice");
  std::array<Ticket, kTries> tickets;
  race.before_round = [&] {
    for (Ticket& ticket : tickets) ticket = Ticket();
  };
  race.at_the_bound = [&] {
    return race.controller.top_actors(1).at(0).in_flight == kBound &&
           race.controller.stats().in_flight == 0;
  };
  race.run(kTries, [&](std::size_t i) {
    auto ticket = race.controller.take_ticket(request, kStart);
    if (!ticket) return false;
    tickets[i] = std::move(ticket).value();
    return true;
  });
}

// A waiting room of sixteen: its bound is exact as well.
TEST(AdmissionRace, DoesNotExceedTheWaitingRoom) {
  AdmissionConfig config = wide_config();
  config.max_concurrent = config.limit.initial_limit = 1;
  config.waiting_max = kBound;
  Race race(config);
  Permit full = race.controller.try_admit(request_of(Priority::kHigh), kStart).value();
  std::array<Waiter, kTries> waiters;
  std::size_t cancelled = 0;
  race.before_round = [&] {
    for (Waiter& w : waiters) cancelled += race.controller.cancel(w) ? 1U : 0U;
  };
  race.after_all = [&] { full = Permit(); };
  race.run(kRacers, [&](std::size_t i) {
    return race.controller.enter(request_of(Priority::kNormal), waiters[i], kStart).kind ==
           Entered::Kind::kWaiting;
  });
  EXPECT_EQ(cancelled, kBound * static_cast<std::size_t>(kRounds));
}

// ---- the same bounds without rounds: threads take and give back as fast as they can

/// Threads take and give back at a bound of `most`; what is held is counted separately.
template <class Take>
void hammer(AdmissionController& controller, int most, Take take) {
  constexpr int kEach = rounds(400'000);
  std::atomic<int> held{0};
  std::atomic<int> exceeded{0};
  std::atomic<int> taken{0};
  run_together(3, [&](std::size_t t) {
    int mine = 0;
    for (int i = 0; i < kEach; ++i) {
      auto permit = take(t);
      if (!permit) continue;
      ++mine;
      if (held.fetch_add(1, std::memory_order_relaxed) + 1 > most) exceeded.fetch_add(1);
      held.fetch_sub(1, std::memory_order_relaxed);
    }
    taken.fetch_add(mine);
  });
  EXPECT_EQ(exceeded.load(), 0);
  EXPECT_GT(taken.load(), 0);
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionHammer, TheLimitHolds) {
  AdmissionController controller(plain_config(1), Rng(1));
  const AdmissionRequest request = request_of(Priority::kNormal);
  hammer(controller, 1, [&](std::size_t) { return controller.try_admit(request, kStart); });
}

TEST(AdmissionHammer, TheLimitHoldsAcrossClasses) {
  AdmissionController controller(plain_config(2), Rng(1));
  hammer(controller, 2, [&](std::size_t t) {
    return controller.try_admit(request_of(kPriorities[1 + t % 3]), kStart);
  });
}

TEST(AdmissionHammer, TheActorsAndThePeersCountsHold) {
  AdmissionConfig config = wide_config();
  config.inflight_max = 1;
  AdmissionController by_actor(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = by_actor.identify("alice");
  hammer(by_actor, 1, [&](std::size_t) { return by_actor.try_admit(request, kStart); });
  config.inflight_max = 1000;
  config.per_peer_limit = 1;
  AdmissionController by_peer(config, Rng(1));
  request.peer = by_peer.identify("node");
  hammer(by_peer, 1, [&](std::size_t) { return by_peer.try_admit(request, kStart); });
}

TEST(AdmissionHammer, TheActorsAndTheProcessWideBytesHold) {
  AdmissionConfig config = wide_config();
  config.bytes_max = 199;
  AdmissionController by_actor(config, Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = by_actor.identify("alice");
  request.bytes = 100;
  hammer(by_actor, 1, [&](std::size_t) { return by_actor.try_admit(request, kStart); });
  config.bytes_max = 1000;
  config.total_bytes_max = 199;
  AdmissionController in_all(config, Rng(1));
  hammer(in_all, 1, [&](std::size_t) { return in_all.try_admit(request, kStart); });
}

TEST(AdmissionHammer, MaxConcurrentHoldsOverTwoScopes) {
  AdmissionConfig config = wide_config();
  config.max_concurrent = 1;
  config.scopes_max = 2;
  AdmissionController controller(config, Rng(1));
  const ScopeId other = controller.add_scope("other", config.limit);
  hammer(controller, 1, [&](std::size_t t) {
    const ScopeId scope = t % 2 == 0 ? ScopeId::kFirst : other;
    return controller.try_admit(request_of(Priority::kNormal, scope), kStart);
  });
}

}  // namespace
}  // namespace weir::inline v0::inline control
