#include "upstream/dispatcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/assert.h"

#include "connection_pool.h"
#include "endpoint_watch.h"
#include "health_check.h"
#include "loser_watch.h"
#include "policy/replica_choice.h"
#include "pool_endpoint.h"

namespace weir::inline v0::upstream {
namespace {

/// How often endpoints that refuse connections are tried while requests wait for them.
constexpr Duration kReconnectEvery = std::chrono::milliseconds(50);
/// How often held calls ask again while an endpoint is there and the limit keeps them back.
constexpr Duration kReleaseEvery = std::chrono::milliseconds(5);

/// The set as a choice sees it: each view is read from the shared values of one endpoint.
struct Replicas {
  const std::vector<EndpointSet::Member>& members;
  const Upstream::Published& published;
  std::uint32_t limit;  // 0: endpoints have no share
  bool queues;          // false: a queue may be as full as it likes
  TimePoint now;

  /// Until the latencies of all are known, they count as equal: otherwise the endpoint that was
  /// used first would be compared with a guess.
  [[nodiscard]] double score_of(const Endpoint& endpoint) const noexcept {
    if (published.latency.median == Duration(0)) return 1;
    return policy::projected_ns(endpoint.score(), published.latency, kScoreRules, now);
  }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(members.size());
  }
  [[nodiscard]] policy::ReplicaView view(std::uint32_t i) const noexcept {
    const Endpoint& endpoint = *members[i].endpoint;
    const double ratio = policy::ramp_applies(published.cohort) ? endpoint.return_ratio(now) : 1.0;
    const double weight = members[i].weight * ratio;
    return {.openness = endpoint.openness(),
            .queue = queues ? endpoint.queue_state() : policy::OutgoingState::kHealthy,
            .in_flight = endpoint.in_flight(),
            .in_flight_max = limit == 0 ? 0 : policy::share_max(limit, weight, published.cohort),
            .score_ns = score_of(endpoint),
            .weight = weight};
  }
};

/// The indexes of the endpoints that a call has used.
struct Tried {
  Tried(const std::vector<EndpointSet::Member>& members,
        std::span<const Endpoint* const> endpoints) noexcept {
    for (std::uint32_t i = 0; i < members.size() && !endpoints.empty(); ++i) {
      const bool was = std::find(endpoints.begin(), endpoints.end(), members[i].endpoint.get()) !=
                       endpoints.end();
      if (was) add(i);
    }
  }
  void add(std::uint32_t index) noexcept {
    if (count < indexes.size()) indexes[count++] = index;
  }
  [[nodiscard]] std::span<const std::uint32_t> span() const noexcept {
    return {indexes.data(), count};
  }

  std::array<std::uint32_t, 16> indexes;
  std::size_t count = 0;
};

}  // namespace

Dispatcher::Dispatcher(const Setup& setup)
    : loop_(setup.loop),
      loop_index_(setup.loop_index),
      upstream_(setup.upstream),
      memory_(setup.memory),
      rng_(setup.rng),
      review_(io::Callback<>::to<&Dispatcher::review>(*this)),
      tick_(io::Timer::Fired::to<&Dispatcher::on_tick>(*this)),
      hold_timer_(io::Timer::Fired::to<&Dispatcher::on_hold_timer>(*this)) {
  pool_ = std::make_unique<ConnectionPool>(ConnectionPool::Setup{.loop = setup.loop,
                                                                 .loop_index = setup.loop_index,
                                                                 .upstream = setup.upstream,
                                                                 .memory = setup.memory,
                                                                 .limits = setup.response_limits,
                                                                 .rng = rng_.fork()});
  losers_ = std::make_unique<LoserWatch>(*this);
  cursor_ = rng_.next_u64();
  hedge_ = upstream_.hedge();
  if (loop_index_ == 0) watch_ = std::make_unique<EndpointWatch>(upstream_);
  upstream_.add_dispatcher(*this);
  take_set();
  loop_.arm(tick_, loop_.now() + EndpointWatch::kTick);
}

Dispatcher::~Dispatcher() {
  WEIR_ASSERT(held_.empty());
  checks_.clear();  // they refer to the endpoints
  upstream_.remove_dispatcher(*this);
  loop_.cancel(tick_);
  loop_.cancel(hold_timer_);
}

bool Dispatcher::open(Call& call, io::Access access) noexcept {
  std::byte* block = memory_.heads.acquire(loop_index_, access);
  if (block == nullptr) return false;
  call.opened(*this, block, access);
  return true;
}

// ---- choice

policy::Choice Dispatcher::pick(const Ask& ask, std::span<const std::uint32_t> tried) noexcept {
  const std::vector<EndpointSet::Member>& members = set_->members;
  const Upstream::Published published = upstream_.published();
  policy::ChoiceAsk wanted{.balance = upstream_.config().balance,
                           .cohort = published.cohort,
                           .tried = tried,
                           .tried_again = ask.tried_again,
                           .local = set_->local,
                           .limit = upstream_.limit(),
                           .ring = set_->ring.empty() ? nullptr : &set_->ring,
                           .hash = ask.hash};
  if (wanted.ring != nullptr) {
    for (const EndpointSet::Member& member : members) {
      wanted.in_flight_total += member.endpoint->in_flight();
    }
  }
  Replicas replicas{members, published, upstream_.limit(), true, loop_.now()};
  const bool some_return = published.cohort.returning > 0;
  const std::optional<std::uint32_t> trial =
      ask.may_try && some_return ? on_trial(ask) : std::nullopt;
  policy::Choice choice =
      trial ? policy::Choice{.index = *trial, .reason = policy::ChoiceReason::kChosen}
            : policy::choose_replica(replicas, wanted, cursor_, rng_);
  if (choice.reason == policy::ChoiceReason::kAllFull) {
    // The limit has just fallen, or all queues are full. Admission is the bound, shares only spread
    // what it admits; a full queue keeps the newest.
    replicas.limit = 0;
    replicas.queues = false;
    choice = policy::choose_replica(replicas, wanted, cursor_, rng_);
  }
  return choice;
}

Dispatcher::Chosen Dispatcher::choose(const Ask& ask) noexcept {
  const policy::Choice choice = pick(ask, Tried(set_->members, ask.tried).span());
  if (!choice.found()) return {.endpoint = nullptr, .reason = choice.reason};
  PoolEndpoint& endpoint = *endpoints_[choice.index];
  note_begun(endpoint);
  return {.endpoint = &endpoint, .reason = choice.reason};
}

void Dispatcher::note_begun(PoolEndpoint& endpoint) noexcept {
  if (endpoint.shared->openness() != policy::Openness::kTrial) return;
  upstream_.note_health(*endpoint.shared, policy::HealthEvent::kTrialStarted, loop_.now());
}

/// Each choice is made among those that the ones before it left.
HedgeCandidates Dispatcher::candidates(const Ask& ask) noexcept {
  HedgeCandidates found;
  Tried tried(set_->members, ask.tried);
  Ask next = ask;
  next.tried_again = false;
  next.may_try = false;
  while (found.count < found.targets.size()) {
    const policy::Choice choice = pick(next, tried.span());
    if (!choice.found()) break;
    tried.add(choice.index);
    found.targets[found.count] = candidate_at(choice.index, ask.reads);
    found.endpoints[found.count++] = endpoints_[choice.index].get();
  }
  // None can be used: one of the others says why.
  for (std::uint32_t i = 0; i < endpoints_.size() && found.count == 0; ++i) {
    const std::span<const std::uint32_t> used = tried.span();
    if (std::find(used.begin(), used.end(), i) != used.end()) continue;
    found.targets[0] = candidate_at(i, ask.reads);
    found.endpoints[found.count++] = endpoints_[i].get();
  }
  return found;
}

control::HedgeCandidate Dispatcher::candidate_at(std::uint32_t index, ReadClass reads) noexcept {
  const Upstream::Published published = upstream_.published();
  const Replicas replicas{set_->members, published, upstream_.limit(), true, loop_.now()};
  const policy::ReplicaView view = replicas.view(index);
  PoolEndpoint& endpoint = *endpoints_[index];
  return {.target = {.openness = view.openness,
                     .queue = view.queue,
                     .own_zone = upstream_.config().zone.empty() || index < set_->local,
                     .pushed_back = endpoint.shared->pushed_back(loop_.now()),
                     .connection_ready = ConnectionPool::ready(endpoint),
                     .in_flight = view.in_flight,
                     .in_flight_max = view.in_flight_max,
                     .median = endpoint.shared->reads(reads).median()},
          .budget = &endpoint.shared->budget()};
}

std::optional<std::uint32_t> Dispatcher::on_trial(const Ask& ask) const noexcept {
  for (std::uint32_t i = 0; i < set_->members.size(); ++i) {
    const Endpoint* endpoint = set_->members[i].endpoint.get();
    if (endpoint->openness() != policy::Openness::kTrial) continue;
    if (std::find(ask.tried.begin(), ask.tried.end(), endpoint) == ask.tried.end()) return i;
  }
  return std::nullopt;
}

bool Dispatcher::other_open(std::span<const Endpoint* const> tried) const noexcept {
  return std::any_of(set_->members.begin(), set_->members.end(), [&](const auto& member) {
    const Endpoint* endpoint = member.endpoint.get();
    return endpoint->open() && std::find(tried.begin(), tried.end(), endpoint) == tried.end();
  });
}

// ---- the set

void Dispatcher::take_set() {
  std::shared_ptr<const EndpointSet> set = upstream_.endpoints();
  if (set == set_) return;
  set_ = std::move(set);
  std::vector<std::unique_ptr<PoolEndpoint>> before = std::exchange(endpoints_, {});
  for (auto& endpoint : leaving_) before.push_back(std::move(endpoint));
  leaving_.clear();
  for (const EndpointSet::Member& member : set_->members) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const auto& endpoint) {
      return endpoint != nullptr && endpoint->shared == member.endpoint;
    });
    endpoints_.push_back(known != before.end()
                             ? std::move(*known)
                             : std::make_unique<PoolEndpoint>(member.endpoint, loop_index_));
    endpoints_.back()->in_set = true;
  }
  for (auto& endpoint : before) {
    if (endpoint == nullptr) continue;
    endpoint->in_set = false;
    pool_->retire(*endpoint);
    leaving_.push_back(std::move(endpoint));
  }
}

void Dispatcher::pin(PoolEndpoint& endpoint) noexcept {
  ++endpoint.attempts;
}

// Freed by the next tick: callers up the stack may still use it.
void Dispatcher::unpin(PoolEndpoint& endpoint) noexcept {
  --endpoint.attempts;
}

void Dispatcher::review() {
  if (stopping_) return;
  hedge_ = upstream_.hedge();
  take_set();
  for (const auto& endpoint : endpoints_) {
    const policy::Openness openness = endpoint->shared->openness();
    if (openness == policy::Openness::kLastResort) {
      give_up_silent(*endpoint);
      const bool hung = endpoint->shared->health().state() == policy::EndpointState::kHung;
      if (hung && endpoint->queue.queued() == 0) pool_->close_idle(*endpoint);
    }
    if (openness == policy::Openness::kClosed && endpoint->queue.queued() == 0) {
      pool_->retire(*endpoint);
    }
  }
  serve_held();
}

/// The endpoint is silent: what may be sent again goes to another one; it is asked for a sign.
void Dispatcher::give_up_silent(PoolEndpoint& endpoint) noexcept {
  pool_->ping(endpoint);
  Attempt* attempt = endpoint.unanswered.front();
  while (attempt != nullptr) {
    // What the owner is told may have ended any other attempt: begins again at the front then. The
    // budget bounds how often that happens.
    Attempt* const next = endpoint.unanswered.next(*attempt);
    attempt = attempt->leave_silent() ? endpoint.unanswered.front() : next;
  }
}

void Dispatcher::on_tick(TimePoint now) {
  if (loop_index_ != 0) upstream_.note_tick(loop_index_, now, loop_.timer_lateness());
  if (watch_ != nullptr) {
    watch_->tick(now, loop_.timer_lateness());
    run_checks(now);
  }
  std::erase_if(leaving_, [](const auto& endpoint) { return endpoint->unused(); });
  // A warm connection is for a hedge or a retry, so it needs another endpoint. A service that
  // serves one connection after the other would be blocked by it.
  for (const auto& endpoint : endpoints_) {
    if (endpoints_.size() > 1) pool_->warm(*endpoint);
  }
  loop_.arm(tick_, now + EndpointWatch::kTick);
}

/// One check per endpoint of the set; those of endpoints that left it end.
void Dispatcher::run_checks(TimePoint now) {
  const HealthCheckConfig& config = upstream_.config().health;
  if (config.kind == HealthCheckKind::kOff) return;
  for (const auto& check : checks_) {
    if (!check->endpoint().in_set) check->stop();
  }
  std::erase_if(checks_,
                [](const auto& check) { return !check->endpoint().in_set && check->idle(); });
  for (const auto& endpoint : endpoints_) {
    const bool known = std::any_of(checks_.begin(), checks_.end(), [&](const auto& check) {
      return &check->endpoint() == endpoint.get();
    });
    if (!known) checks_.push_back(std::make_unique<HealthCheck>(*this, *endpoint, config));
  }
  for (const auto& check : checks_) {
    if (check->endpoint().in_set) check->tick(now);
  }
}

// ---- held calls

bool Dispatcher::hold(Call& call) noexcept {
  if (stopping_ || !upstream_.try_hold()) return false;
  held_.push_back(call);
  if (!hold_timer_.armed()) loop_.arm(hold_timer_, loop_.now() + kReconnectEvery);
  return true;
}

void Dispatcher::release(Call& call) noexcept {
  held_.remove(call);
  upstream_.drop_held();
}

/// Each held call tries again once, if an endpoint is open; the first one only, if it is on trial.
/// Those that their owner keeps back (the limit has no room for their class) let the others pass;
/// after a whole round they are in the same order as before.
void Dispatcher::serve_held() noexcept {
  bool kept_back = false;
  for (std::size_t n = held_.size(); n > 0; --n) {
    Call* call = held_.front();
    if (call == nullptr || !other_open({})) break;
    if (call->try_again()) continue;
    kept_back = true;
    held_.remove(*call);
    held_.push_back(*call);
  }
  if (kept_back && !stopping_) loop_.arm(hold_timer_, loop_.now() + kReleaseEvery);
}

void Dispatcher::on_hold_timer(TimePoint now) {
  Call* call = held_.front();
  while (call != nullptr) {
    Call* const next = held_.next(*call);
    if (call->held_until() <= now) {
      call->hold_expired();
      call = held_.front();  // the event may have ended others
      continue;
    }
    call = next;
  }
  serve_held();
  if (held_.empty() || stopping_) return;
  // Asks each endpoint that refused: one that listens again should not have to wait for its turn.
  for (const auto& endpoint : endpoints_) {
    const policy::EndpointHealth health = endpoint->shared->health();
    if (health.reason() == policy::HealthReason::kConnectFailed) pool_->probe(*endpoint);
  }
  if (other_open({})) return loop_.arm(hold_timer_, now + kReleaseEvery);
  loop_.arm(hold_timer_, now + rng_.between(kReconnectEvery / 2, kReconnectEvery));
}

// ---- silence

void Dispatcher::add_unanswered(Attempt& attempt) noexcept {
  PoolEndpoint& endpoint = attempt.endpoint();
  endpoint.unanswered.push_back(attempt);
  if (endpoint.unanswered.size() == 1) {
    endpoint.counters.oldest_unanswered_ns.store(to_ns(attempt.sent_at()),
                                                 std::memory_order_relaxed);
  }
}

void Dispatcher::remove_unanswered(Attempt& attempt) noexcept {
  PoolEndpoint& endpoint = attempt.endpoint();
  endpoint.unanswered.remove(attempt);
  const Attempt* oldest = endpoint.unanswered.front();
  endpoint.counters.oldest_unanswered_ns.store(oldest != nullptr ? to_ns(oldest->sent_at()) : 0,
                                               std::memory_order_relaxed);
}

// ---- the end

void Dispatcher::stop() noexcept {
  stopping_ = true;
  loop_.cancel(tick_);
  loop_.cancel(hold_timer_);
  while (Call* call = held_.front()) call->hold_expired();
  for (const auto& check : checks_) check->stop();
  losers_->stop();
  upstream_.remove_dispatcher(*this);
  pool_->stop();
}

bool Dispatcher::stopped() const noexcept {
  return pool_->stopped() && !review_.queued() &&
         std::all_of(checks_.begin(), checks_.end(), [](const auto& c) { return c->idle(); });
}

std::size_t Dispatcher::idle_connections() const noexcept {
  return pool_->idle();
}

}  // namespace weir::inline v0::upstream
