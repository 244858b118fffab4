// Sixteen threads use one controller at random: they admit, wait by callback and by blocking,
// cancel each other's waiters, finish, destroy and pass on permits, stream, grow, shrink, expire,
// take tickets and use or drop them, and read statistics, some with modes of their own; in every
// second epoch one of them also changes every rule and mode. No bound is ever exceeded and critical
// is never refused. At the end of each epoch, when nothing is held, every counter is zero and every
// request was counted exactly once.
#include <array>
#include <atomic>
#include <barrier>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_model_testing.h"
#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

constexpr std::size_t kThreads = 16;
constexpr int kEpochs = 10;
constexpr int kSteps = rounds(8000);

struct Running {
  Permit permit;
  Facts facts;
};

struct Begun {
  Ticket ticket;
  Facts facts;
};

/// A waiter that other threads may try to cancel.
struct Parked {
  Waiter waiter;
  Facts facts;
  std::atomic<int> visitors{0};  // other threads that use it now
  std::atomic<bool> open{false};
};

constexpr std::array<std::string_view, kActors> kActorNames = {"ada",  "ben", "cleo",
                                                               "dora", "eve", "fay"};
constexpr std::array<std::string_view, kPeers> kPeerNames = {"north", "south", "west"};

struct World {
  World() : controller(fixed_rules(), Rng(4)) {
    LimitConfig limit = fixed_rules().limit;
    static_cast<void>(controller.add_scope("second", limit));
    for (std::size_t i = 0; i < kActors; ++i) {
      actors[i] = controller.identify(kActorNames[i]);
    }
    for (std::size_t i = 0; i < kPeers; ++i) {
      peers[i] = controller.identify(kPeerNames[i]);
    }
  }
  [[nodiscard]] TimePoint now() const noexcept { return kStart + Duration(elapsed.load()); }
  void note(std::atomic<std::uint64_t>& count) noexcept { count.fetch_add(1); }

  AdmissionController controller;
  std::array<Identity, kActors + 1> actors{};
  std::array<Identity, kPeers + 1> peers{};
  std::atomic<std::int64_t> elapsed{0};
  Model model;
  std::atomic<std::uint64_t> admitted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> growth_refused{0};
  std::atomic<std::uint64_t> cancelled{0};
  std::atomic<std::uint64_t> waited{0};
  std::atomic<std::uint64_t> tickets_used{0};
  std::atomic<std::uint64_t> tickets_dropped{0};
  std::atomic<std::uint64_t> critical_refused{0};
  std::mutex mailbox_mutex;
  std::vector<Running> mailbox;
  std::array<Parked, kThreads * 2> parked;
};

/// Blocks for a few turns of the scheduler, then returns as timed out.
class BriefParker final : public Parker {
 public:
  TimePoint park_until(TimePoint until) noexcept override {
    for (int i = 0; i < 20; ++i) {
      if (unparked_.exchange(false)) return kStart;
      std::this_thread::yield();
    }
    return until;
  }
  void unpark() noexcept override { unparked_.store(true); }

 private:
  std::atomic<bool> unparked_{false};
};

class Worker {
 public:
  Worker(World& world, std::size_t index) : world_(world), index_(index), rng_(1000 + index) {}

  void step(bool may_reconfigure) {
    switch (rng_.below(may_reconfigure ? 18 : 17)) {
      case 0:
      case 1:
      case 2:
        return try_admit();
      case 3:
      case 4:
      case 5:
        return enter(mine(rng_.below(2)));
      case 6:
        return block();
      case 7:
        return settle(mine(rng_.below(2)));
      case 8:
        return cancel_a_strangers();
      case 9:
      case 10:
        return end_one();
      case 11:
        return stream_one();
      case 12:
        return resize_one();
      case 13:
        return rng_.chance(0.5) ? tick() : look();
      case 14:
        return lend_units_of_one();
      case 15:
        return take_ticket();
      case 16:
        return end_ticket(mine(rng_.below(2)));
      default:
        return reconfigure();
    }
  }

  /// Gives everything back.
  void end_epoch() {
    for (const std::size_t i : {0U, 1U}) {
      Parked& parked = mine(i);
      close(parked);
      if (parked.waiter.state() == Waiter::State::kWaiting) cancel(parked);
      collect(parked);
    }
    while (!begun_.empty()) drop_ticket();
    while (!running_.empty()) end_one();
  }

 private:
  [[nodiscard]] Parked& mine(std::size_t i) { return world_.parked[2 * index_ + i]; }

  AdmissionRequest draw(Facts& facts) {
    facts = Facts{.scope = rng_.below(kScopes), .priority = kPriorities[rng_.below(4)]};
    facts.units = rng_.between(1, 3);
    // Critical ignores every bound, so the model does not count it.
    if (facts.priority != Priority::kCritical) {
      facts.actor = rng_.below(kActors + 1);
      facts.peer = rng_.below(kPeers + 1);
      facts.bytes = rng_.between(0, 60);
    }
    AdmissionRequest request;
    request.priority = facts.priority;
    request.scope = static_cast<ScopeId>(facts.scope);
    request.actor = world_.actors[facts.actor];
    request.peer = world_.peers[facts.peer];
    request.bytes = static_cast<std::uint64_t>(facts.bytes);
    request.cost = static_cast<std::uint32_t>(facts.units);
    request.hedge = rng_.chance(0.1);
    if (rng_.chance(0.4)) request.modes = draw_modes();
    if (rng_.chance(0.1))
      request.deadline = world_.now() + Duration(rng_.between(-5, 5) * 1'000'000);
    return request;
  }

  /// Modes of its own, like those of a route. While bounds are fixed they enforce, too.
  RuleOverrides draw_modes() {
    const bool enforce = world_.model.bounds_are_fixed.load();
    RuleOverrides modes;
    for (int rule = 0; rule <= static_cast<int>(Rule::kLimit); ++rule) {
      if (rng_.chance(0.5)) continue;
      const auto mode = static_cast<RuleMode>(rng_.below(3));
      modes.set(static_cast<Rule>(rule), enforce ? RuleMode::kEnforce : mode);
    }
    return modes;
  }

  void count_refusal(const Facts& facts) {
    world_.note(world_.refused);
    if (facts.priority == Priority::kCritical) world_.note(world_.critical_refused);
  }
  void keep(Permit permit, const Facts& facts) {
    world_.note(world_.admitted);
    world_.model.take_units(facts);
    running_.push_back({std::move(permit), facts});
  }

  void try_admit() {
    Facts facts;
    auto permit = world_.controller.try_admit(draw(facts), world_.now());
    if (!permit) return count_refusal(facts);
    world_.model.take_holdings(facts);
    keep(std::move(permit).value(), facts);
  }

  void block() {
    Facts facts;
    BriefParker parker;
    auto permit = world_.controller.admit(draw(facts), parker, world_.now());
    if (!permit) return count_refusal(facts);
    world_.model.take_holdings(facts);
    keep(std::move(permit).value(), facts);
  }

  void enter(Parked& parked) {
    if (parked.waiter.state() == Waiter::State::kWaiting || parked.open.load()) {
      return settle(parked);
    }
    const AdmissionRequest request = draw(parked.facts);
    Entered entered = world_.controller.enter(request, parked.waiter, world_.now());
    if (entered.kind == Entered::Kind::kRefused) return count_refusal(parked.facts);
    world_.model.take_holdings(parked.facts);
    keep_entered(parked, std::move(entered));
  }
  void keep_entered(Parked& parked, Entered entered) {
    if (entered.kind == Entered::Kind::kAdmitted) {
      return keep(std::move(entered.permit), parked.facts);
    }
    if (parked.facts.priority == Priority::kCritical) world_.note(world_.critical_refused);
    world_.note(world_.waited);
    parked.open.store(true);  // from here on others may cancel it
  }

  // Like a request whose body is received first: its bytes change, then it is complete or gone.
  void take_ticket() {
    Facts facts;
    auto ticket = world_.controller.take_ticket(draw(facts), world_.now());
    if (!ticket) return count_refusal(facts);
    world_.model.take_holdings(facts);
    begun_.push_back({std::move(ticket).value(), facts});
    resize(begun_.back().ticket, begun_.back().facts);
    if (begun_.size() > 3) drop_ticket();
  }
  [[nodiscard]] Begun one_of_the_begun() {
    std::swap(begun_[rng_.below(begun_.size())], begun_.back());
    Begun begun = std::move(begun_.back());
    begun_.pop_back();
    return begun;
  }
  void drop_ticket() {
    const Begun begun = one_of_the_begun();
    world_.note(world_.tickets_dropped);
    world_.model.give_holdings(begun.facts);
  }
  void end_ticket(Parked& parked) {
    if (begun_.empty()) return;
    if (rng_.chance(0.3)) return drop_ticket();
    if (parked.waiter.state() == Waiter::State::kWaiting || parked.open.load()) return;
    Begun begun = one_of_the_begun();
    parked.facts = begun.facts;
    world_.note(world_.tickets_used);
    world_.model.give_holdings(parked.facts);  // as long as it may be refused
    Entered entered = world_.controller.enter(std::move(begun.ticket), parked.waiter, world_.now());
    if (entered.kind == Entered::Kind::kRefused) return count_refusal(parked.facts);
    world_.model.take_holdings(parked.facts);
    keep_entered(parked, std::move(entered));
  }

  // After this, no other thread uses it.
  static void close(Parked& parked) {
    parked.open.store(false);
    while (parked.visitors.load() != 0) std::this_thread::yield();
  }
  void settle(Parked& parked) {
    if (parked.waiter.state() == Waiter::State::kWaiting && rng_.chance(0.7)) return;
    close(parked);
    if (parked.waiter.state() == Waiter::State::kWaiting) cancel(parked);
    collect(parked);
  }
  void cancel(Parked& parked) {
    world_.model.give_holdings(parked.facts);
    if (world_.controller.cancel(parked.waiter)) {
      world_.note(world_.cancelled);
    } else {
      world_.model.take_holdings(parked.facts);
    }
  }
  void collect(Parked& parked) {
    const Waiter::State state = parked.waiter.state();
    if (state == Waiter::State::kRefused) {
      world_.model.give_holdings(parked.facts);
      EXPECT_FALSE(world_.controller.collect(parked.waiter, world_.now()).has_value());
      count_refusal(parked.facts);
    } else if (state == Waiter::State::kGranted) {
      keep(world_.controller.collect(parked.waiter, world_.now()).value(), parked.facts);
    }
  }
  void cancel_a_strangers() {
    Parked& parked = world_.parked[rng_.below(world_.parked.size())];
    parked.visitors.fetch_add(1);
    if (parked.open.load()) cancel(parked);
    parked.visitors.fetch_sub(1);
  }

  void end_one() {
    if (running_.empty()) return take_from_mailbox();
    const std::size_t i = rng_.below(running_.size());
    std::swap(running_[i], running_.back());
    Running ended = std::move(running_.back());
    running_.pop_back();
    if (rng_.chance(0.2)) {  // another thread ends it
      const std::scoped_lock lock(world_.mailbox_mutex);
      world_.mailbox.push_back(std::move(ended));
      return;
    }
    end(std::move(ended));
  }
  void end(Running ended) {
    world_.model.give_holdings(ended.facts);
    if (ended.facts.streams) {
      world_.model.streaming.sub(ended.facts.units);
    } else {
      world_.model.give_units(ended.facts);
    }
    if (rng_.chance(0.2)) return;  // destroyed, not finished
    std::move(ended.permit).finish(static_cast<Outcome>(rng_.below(4)), world_.now());
  }
  void take_from_mailbox() {
    std::optional<Running> taken;
    {
      const std::scoped_lock lock(world_.mailbox_mutex);
      if (world_.mailbox.empty()) return;
      taken = std::move(world_.mailbox.back());
      world_.mailbox.pop_back();
    }
    end(std::move(*taken));
  }

  [[nodiscard]] Running* one() {
    return running_.empty() ? nullptr : &running_[rng_.below(running_.size())];
  }
  void stream_one() {
    Running* r = one();
    // Critical ignores streams_max; a unit that stays in the limit may be tried again.
    if (r == nullptr || r->facts.streams || r->facts.priority == Priority::kCritical) return;
    world_.model.give_units(r->facts);
    r->facts.streams = r->permit.to_streaming(world_.now());
    if (r->facts.streams) {
      world_.model.check(world_.model.streaming, r->facts.units, 5);
    } else {
      world_.model.take_units(r->facts);
    }
  }
  /// Others may have its units for a while; if it does not get them back, it ends.
  void lend_units_of_one() {
    if (running_.empty()) return;
    const std::size_t i = rng_.below(running_.size());
    Running& r = running_[i];
    if (r.facts.streams) return;
    world_.model.give_units(r.facts);
    r.permit.give_units_back(world_.now());
    if (rng_.chance(0.5)) std::this_thread::yield();
    if (r.permit.try_take_units()) return world_.model.take_units(r.facts);
    if (r.facts.priority == Priority::kCritical) world_.note(world_.critical_refused);
    world_.model.give_holdings(r.facts);
    std::swap(r, running_.back());
    running_.pop_back();
  }
  void resize_one() {
    if (Running* r = one(); r != nullptr) resize(r->permit, r->facts);
  }
  template <class Holder>
  void resize(Holder& holder, Facts& facts) {
    if (facts.priority == Priority::kCritical) return;
    const std::int64_t amount = rng_.between(0, 40);
    if (rng_.chance(0.5)) {
      if (!holder.try_grow(static_cast<std::uint64_t>(amount))) {
        world_.growth_refused.fetch_add(1);
        return;
      }
      world_.model.take_bytes(facts, amount);
      facts.bytes += amount;
    } else if (amount <= facts.bytes) {
      world_.model.give_bytes(facts, amount);
      facts.bytes -= amount;
      holder.shrink(static_cast<std::uint64_t>(amount));
    }
  }

  void tick() {
    world_.elapsed.fetch_add(rng_.between(1, 4'000'000));
    world_.controller.expire(world_.now());
  }
  void look() {
    AdmissionController& c = world_.controller;
    const bool fixed = world_.model.bounds_are_fixed.load();
    const auto scope = static_cast<ScopeId>(rng_.below(kScopes));
    const ScopeStats s = c.scope_stats(scope, world_.now());
    const AdmissionStats all = c.stats();
    const bool broken = s.in_flight > 6 || s.waiting > 6 || all.streaming > 5 || all.bytes > 500 ||
                        s.classes[index_of(Priority::kLow)].in_flight > 3;
    if (fixed && world_.model.bounds_are_fixed.load() && broken) world_.model.broken.fetch_add(1);
    for (const BudgetRow& row : c.top_actors(10)) {
      if (fixed && world_.model.bounds_are_fixed.load() && (row.in_flight > 4 || row.bytes > 150)) {
        world_.model.broken.fetch_add(1);
      }
    }
    static_cast<void>(c.next_expiry());
    static_cast<void>(c.is_overloaded(scope, world_.now()));
    static_cast<void>(c.retry_after(scope, world_.now(), rng_));
  }

  void reconfigure() {
    AdmissionController& c = world_.controller;
    switch (rng_.below(4)) {
      case 0:
        return c.set_memory(rng_.unit(), rng_.chance(0.9));
      case 1: {
        LimitConfig limit = fixed_rules().limit;
        limit.policy = static_cast<LimitKind>(rng_.below(3));
        const auto scope = static_cast<ScopeId>(rng_.below(kScopes));
        return c.set_policy(scope, make_limit_policy(limit, rng_.fork()));
      }
      case 2: {
        const auto most = static_cast<std::uint32_t>(rng_.between(1, 12));
        LimitConfig limit = fixed_rules().limit;
        limit.min_limit = 1;
        limit.initial_limit = limit.max_limit = most;
        return c.set_limit(static_cast<ScopeId>(1), limit);
      }
      default:
        break;
    }
    AdmissionConfig next = fixed_rules();
    const auto draw_u32 = [this](std::int64_t low, std::int64_t high) {
      return static_cast<std::uint32_t>(rng_.between(low, high));
    };
    const auto mode = [this] { return static_cast<RuleMode>(rng_.below(3)); };
    next.max_concurrent = draw_u32(1, 16);
    next.limit.max_limit = draw_u32(3, 14);
    next.limit.initial_limit = draw_u32(1, next.limit.max_limit);
    next.inflight_max = draw_u32(1, 6);
    next.per_peer_limit = draw_u32(1, 8);
    next.bytes_max = draw_u32(1, 200);
    next.total_bytes_max = draw_u32(0, 600);
    next.streams_max = draw_u32(0, 8);
    next.waiting_max = draw_u32(0, 8);
    next.classes.caps[index_of(Priority::kLow)] = draw_u32(0, 4);
    next.classes.caps[index_of(Priority::kNormal)] = draw_u32(0, 8);
    next.classes.share_low_permille = draw_u32(1, 1000);
    next.high_wait_max = std::chrono::milliseconds(rng_.between(0, 100));
    if (rng_.chance(0.5)) {
      next.modes = {mode(), mode(), mode(), mode(), mode(), mode(), mode()};
    }
    c.reconfigure(next);
  }

  World& world_;
  std::size_t index_;
  Rng rng_;
  std::vector<Running> running_;
  std::vector<Begun> begun_;
};

// Runs alone, when no thread holds anything.
void judge_epoch(World& world, int epoch) {
  AdmissionController& c = world.controller;
  EXPECT_TRUE(all_is_given_back(c)) << "epoch " << epoch;
  EXPECT_TRUE(world.model.zero()) << "epoch " << epoch;
  EXPECT_EQ(world.model.broken.load(), 0) << "epoch " << epoch;
  EXPECT_EQ(world.critical_refused.load(), 0U);
  EXPECT_EQ(c.stats().critical_shed, 0U);
  EXPECT_EQ(c.stats().admitted, world.admitted.load());
  EXPECT_EQ(c.stats().rejected, world.refused.load());
  std::uint64_t by_reason = 0;
  for (std::size_t s = 0; s < kScopes; ++s) {
    for (const std::uint64_t n : c.scope_stats(static_cast<ScopeId>(s), kStart).refused) {
      by_reason += n;
    }
  }
  // Refused growth is counted by reason, but not as a rejected request: the request was admitted.
  EXPECT_EQ(by_reason, world.refused.load() + world.growth_refused.load());
  // Restores the rules that the model knows, for the next epoch.
  c.set_memory(0, true);
  c.reconfigure(fixed_rules());
  for (std::size_t s = 0; s < kScopes; ++s) {
    c.set_policy(static_cast<ScopeId>(s), make_limit_policy(fixed_rules().limit, Rng(1)));
  }
}

TEST(AdmissionInterleaving, KeepsEveryBoundAndBalancesAtEveryQuiescentPoint) {
  const auto world = std::make_unique<World>();
  int epoch = 0;
  const auto end_of_epoch = [&world, &epoch]() noexcept {
    while (!world->mailbox.empty()) {
      Running& last = world->mailbox.back();
      world->model.give_holdings(last.facts);
      if (last.facts.streams) {
        world->model.streaming.sub(last.facts.units);
      } else {
        world->model.give_units(last.facts);
      }
      world->mailbox.pop_back();
    }
    judge_epoch(*world, epoch);
    ++epoch;
    world->model.bounds_are_fixed.store(epoch % 2 == 0);
  };
  std::barrier turn(static_cast<std::ptrdiff_t>(kThreads), end_of_epoch);
  run_together(kThreads, [&](std::size_t t) {
    Worker worker(*world, t);
    for (int e = 0; e < kEpochs; ++e) {
      for (int i = 0; i < kSteps; ++i) worker.step(t == 0 && e % 2 == 1);
      worker.end_epoch();
      turn.arrive_and_wait();
    }
  });
  // All of these did happen: waiting, cancelling, refusing, admitting, in one part and in two.
  EXPECT_GT(world->tickets_used.load(), 0U);
  EXPECT_GT(world->tickets_dropped.load(), 0U);
  EXPECT_GT(world->admitted.load(), 0U);
  EXPECT_GT(world->refused.load(), 0U);
  EXPECT_GT(world->waited.load(), 0U);
  EXPECT_GT(world->cancelled.load(), 0U);
  RecordProperty("admitted", std::to_string(world->admitted.load()));
  RecordProperty("waited", std::to_string(world->waited.load()));
}

}  // namespace
}  // namespace weir::inline v0::inline control
