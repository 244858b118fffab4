#include "upstream/upstream.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/siphash.h"

#include "connection_pool.h"
#include "endpoint_watch.h"
#include "h2_wire.h"
#include "pool_endpoint.h"
#include "upstream/dispatcher.h"

namespace weir::inline v0::upstream {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr unsigned kCountBits = 21;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

bool holds(const EndpointSet& set, const Endpoint& endpoint) noexcept {
  return std::any_of(set.members.begin(), set.members.end(),
                     [&](const EndpointSet::Member& m) { return m.endpoint.get() == &endpoint; });
}

/// How many endpoints of one set are not in another one.
std::size_t missing(const EndpointSet& from, const EndpointSet& in) noexcept {
  return static_cast<std::size_t>(
      std::count_if(from.members.begin(), from.members.end(),
                    [&](const EndpointSet::Member& m) { return !holds(in, *m.endpoint); }));
}

}  // namespace

std::size_t connection_bytes() noexcept {
  return sizeof(ClientConnection);
}

std::size_t session_block_bytes(std::size_t region_bytes) noexcept {
  return H2Wire::block_bytes(region_bytes);
}

UpstreamTimeouts timeouts_of(const UpstreamConfig& config) noexcept {
  return {.connect = config.connect_timeout,
          .first_byte = config.first_byte_timeout,
          .inactivity = config.inactivity_timeout,
          .overall = config.overall_timeout,
          .idle = config.idle_timeout,
          .age = config.connection_age_max,
          .hold = config.hold_max};
}

/// As many queues can be full of bytes at the same time.
constexpr std::uint64_t kFullQueues = 16;

// Critical ones are counted apart, with the bound of all others of a loop: they are few.
control::OutgoingConfig outgoing_of(const UpstreamConfig& config) noexcept {
  return {.queue_size = config.outgoing_queue_size,
          .overflow_size = config.outgoing_overflow_size,
          .critical_size = config.connection_queue_max,
          .destination_bytes_max = ByteSize(config.outgoing_bytes_max),
          .total_bytes_max = ByteSize(config.outgoing_bytes_max) * kFullQueues};
}

policy::RedundancyBudgetRules budget_rules_of(const UpstreamConfig& config,
                                              const policy::HedgeConfig& common) noexcept {
  return policy::redundancy_budget_rules(
      config.retry_budget_pct.value_or(common.budget_pct),
      config.retry_budget_tokens_max.value_or(common.max_budget_tokens));
}

Upstream::Upstream(Setup setup, std::vector<DiscoveredEndpoint> endpoints, TimePoint now)
    : config_(std::move(setup.config)),
      loops_(setup.loops),
      read_classes_(std::clamp(setup.read_classes, 1U, kReadClassesMax)),
      reserved_(std::min(setup.reserved, config_.max_connections / 4)),
      observer_(setup.observer),
      cancel_pace_(setup.cancel_pace),
      counters_(std::make_unique<CallCounters[]>(setup.loops)),
      ticked_ns_(std::make_unique<std::atomic<std::int64_t>[]>(setup.loops)),
      budget_(budget_rules_of(config_, {})),
      outgoing_(outgoing_of(config_)),
      tls_(std::move(setup.tls)),
      rng_(setup.rng) {
  hedge_.enabled = false;
  set_timeouts(timeouts_of(config_));
  set_ = make_set(endpoints, EndpointSet{}, true, now);
  changed_.clear();
  if (!set_->members.empty()) set_discovered();
}

Upstream::~Upstream() = default;

// ---- timeouts and TLS

UpstreamTimeouts Upstream::timeouts() const noexcept {
  const auto at = [&](std::size_t i) { return Duration(timeouts_ns_[i].load(kRelaxed)); };
  return {.connect = at(0),
          .first_byte = at(1),
          .inactivity = at(2),
          .overall = at(3),
          .idle = at(4),
          .age = at(5),
          .hold = at(6)};
}

void Upstream::set_timeouts(const UpstreamTimeouts& t) noexcept {
  const std::array values = {t.connect, t.first_byte, t.inactivity, t.overall,
                             t.idle,    t.age,        t.hold};
  for (std::size_t i = 0; i < values.size(); ++i) {
    timeouts_ns_[i].store(values[i].count(), kRelaxed);
  }
}

io::TlsContext::Ptr Upstream::tls() const {
  const std::scoped_lock lock(mutex_);
  return tls_;
}

void Upstream::set_tls(io::TlsContext::Ptr context) {
  const std::scoped_lock lock(mutex_);
  tls_ = std::move(context);
}

void Upstream::set_budget_rules(const policy::RedundancyBudgetRules& rules) {
  const std::scoped_lock lock(mutex_);
  budget_.set_rules(rules);
  for (const EndpointSet::Member& member : set_->members)
    member.endpoint->budget().set_rules(rules);
  for (const std::shared_ptr<Endpoint>& endpoint : left_) endpoint->budget().set_rules(rules);
}

// ---- hedging

policy::HedgeConfig Upstream::hedge() const {
  const std::scoped_lock lock(mutex_);
  return hedge_;
}

void Upstream::set_hedge(const policy::HedgeConfig& config) {
  {
    const std::scoped_lock lock(mutex_);
    hedge_ = config;
    for (const EndpointSet::Member& member : set_->members) {
      member.endpoint->set_hedge(config);
    }
    for (const std::shared_ptr<Endpoint>& endpoint : left_) endpoint->set_hedge(config);
  }
  post_review();
}

policy::HedgeCohort Upstream::hedge_cohort(ReadClass of) const noexcept {
  const Cohort& cohort = cohorts_[of];
  return {.delay = Duration(cohort.delay_ns.load(kRelaxed)),
          .median = Duration(cohort.median_ns.load(kRelaxed)),
          .slow = cohort.slow.load(kRelaxed)};
}

void Upstream::publish(ReadClass of, const policy::HedgeCohort& cohort) noexcept {
  cohorts_[of].delay_ns.store(cohort.delay.count(), kRelaxed);
  cohorts_[of].median_ns.store(cohort.median.count(), kRelaxed);
  cohorts_[of].slow.store(cohort.slow, kRelaxed);
}

policy::HedgeCohort Upstream::slowest_cohort() const noexcept {
  policy::HedgeCohort slowest = hedge_cohort(0);
  for (std::uint32_t i = 1; i < read_classes_; ++i) {
    const policy::HedgeCohort one = hedge_cohort(static_cast<ReadClass>(i));
    if (one.slow && (!slowest.slow || one.median > slowest.median)) slowest = one;
  }
  return slowest;
}

// ---- endpoints

std::shared_ptr<const EndpointSet> Upstream::endpoints() const {
  const std::scoped_lock lock(mutex_);
  return set_;
}

/// The members of the set, in the order of `all`, which it sorts: our own zone first.
std::shared_ptr<EndpointSet> Upstream::make_set(std::vector<DiscoveredEndpoint>& all,
                                                const EndpointSet& before, bool first,
                                                TimePoint now) {
  auto set = std::make_shared<EndpointSet>();
  policy::EndpointHealthRules rules;
  rules.checks_rise = config_.health.rise;
  rules.checks_fall = config_.health.fall;
  const auto known = [&](const io::SocketName& name) -> std::shared_ptr<Endpoint> {
    for (const EndpointSet::Member& member : before.members) {
      if (member.endpoint->name() == name) return member.endpoint;
    }
    for (auto it = left_.begin(); it != left_.end(); ++it) {
      if ((*it)->name() != name) continue;
      std::shared_ptr<Endpoint> back = std::move(*it);
      left_.erase(it);
      return back;
    }
    return nullptr;
  };
  std::stable_partition(all.begin(), all.end(), [&](const DiscoveredEndpoint& e) {
    return !config_.zone.empty() && e.zone == config_.zone;
  });
  std::vector<policy::HashRing::Member> ring;
  for (DiscoveredEndpoint& e : all) {
    std::shared_ptr<Endpoint> endpoint = known(e.address);
    if (endpoint == nullptr) {
      const auto health =
          first ? policy::EndpointHealth(now) : policy::EndpointHealth::joined(now, rules);
      endpoint = std::make_shared<Endpoint>(
          Endpoint::Identity{.name = e.address,
                             .host = std::move(e.host),
                             .rules = rules,
                             .read_classes = read_classes_},
          loops_, health, budget_.rules(),
          Endpoint::Outgoing{.config = outgoing_, .totals = outgoing_totals_}, rng_.fork());
      endpoint->set_hedge(hedge_);
    }
    note_drain(endpoint, e.draining, now);
    if (!config_.zone.empty() && e.zone == config_.zone) ++set->local;
    ring.push_back({.key = std::hash<std::string>()(endpoint->label()),
                    .weight = static_cast<double>(e.weight)});
    set->members.push_back({.endpoint = std::move(endpoint),
                            .weight = e.weight,
                            .zone = std::move(e.zone),
                            .draining = e.draining});
  }
  if (config_.balance == policy::Balance::kHash) set->ring = policy::HashRing(ring);
  return set;
}

void Upstream::note_drain(const std::shared_ptr<Endpoint>& endpoint, bool by_source,
                          TimePoint now) {
  const bool drains =
      by_source || std::find(drained_.begin(), drained_.end(), endpoint->name()) != drained_.end();
  const auto change = endpoint->note(
      drains ? policy::HealthEvent::kOperatorDrain : policy::HealthEvent::kOperatorUndrain, now);
  if (change) changed_.push_back({endpoint, *change});
}

void Upstream::set_drained(std::vector<io::SocketName> names, TimePoint now) {
  std::vector<Changed> changed;
  {
    const std::scoped_lock lock(mutex_);
    if (drained_ == names) return;
    drained_ = std::move(names);
    for (const EndpointSet::Member& member : set_->members) {
      note_drain(member.endpoint, member.draining, now);
    }
    changed.swap(changed_);
  }
  for (const Changed& one : changed) report(*one.endpoint, one.change);
  post_review();
}

void Upstream::set_endpoints(std::vector<DiscoveredEndpoint> all, TimePoint now) {
  std::size_t added = 0;
  std::size_t removed = 0;
  const std::size_t count = all.size();
  std::vector<Changed> changed;
  {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<const EndpointSet> before = set_;
    set_ = make_set(all, *before, before->members.empty(), now);
    added = missing(*set_, *before);
    removed = missing(*before, *set_);
    changed.swap(changed_);
    for (const EndpointSet::Member& member : before->members) {
      if (!holds(*set_, *member.endpoint)) left_.push_back(member.endpoint);
    }
    settle_left();
  }
  for (const Changed& one : changed) report(*one.endpoint, one.change);
  if (observer_ != nullptr && (added > 0 || removed > 0)) {
    observer_->on_set_change(config_.name, added, removed, count);
  }
  post_review();
}

void Upstream::note_health(Endpoint& endpoint, policy::HealthEvent event, TimePoint now) {
  const std::optional<policy::HealthChange> change = endpoint.note(event, now);
  if (!change) return;
  report(endpoint, *change);
  post_review();
}

void Upstream::report(const Endpoint& endpoint, const policy::HealthChange& change) {
  if (change.to == policy::EndpointState::kEjected || change.to == policy::EndpointState::kHung) {
    ejections_[static_cast<std::size_t>(change.reason)].fetch_add(1, kRelaxed);
  }
  if (observer_ != nullptr) observer_->on_endpoint_change(config_.name, endpoint, change);
}

void Upstream::settle_left() {
  std::erase_if(left_, [this](const std::shared_ptr<Endpoint>& endpoint) {
    if (endpoint.use_count() > 1) return false;
    gone_.add(*endpoint);
    return true;
  });
}

EndpointTotals Upstream::totals() {
  const std::scoped_lock lock(mutex_);
  settle_left();
  EndpointTotals all = gone_;
  for (const std::shared_ptr<Endpoint>& endpoint : left_) all.add(*endpoint);
  for (const EndpointSet::Member& member : set_->members) all.add(*member.endpoint);
  return all;
}

void Upstream::note_tls_failure(const PoolEndpoint& endpoint, std::string_view why) {
  if (observer_ != nullptr) observer_->on_tls_failure(config_.name, *endpoint.shared, why);
}

bool Upstream::any_open() const {
  const std::shared_ptr<const EndpointSet> set = endpoints();
  return std::any_of(set->members.begin(), set->members.end(),
                     [](const EndpointSet::Member& m) { return m.endpoint->open(); });
}

bool Upstream::all_failing() const {
  const std::shared_ptr<const EndpointSet> set = endpoints();
  return std::none_of(set->members.begin(), set->members.end(), [](const EndpointSet::Member& m) {
    return m.endpoint->openness() == policy::Openness::kOpen;
  });
}

// ---- published values

Upstream::Published Upstream::published() const noexcept {
  const std::uint64_t counts = cohort_counts_.load(kRelaxed);
  const auto count = [&](unsigned i) {
    return static_cast<std::uint32_t>(counts >> (i * kCountBits) & kCountMask);
  };
  return {.cohort = {.endpoints = count(0),
                     .open = count(1),
                     .returning = count(2),
                     .open_weight = open_weight_.load(kRelaxed),
                     .weight_max = weight_max_.load(kRelaxed)},
          .latency = {.median = Duration(median_ns_.load(kRelaxed)),
                      .p99 = Duration(p99_ns_.load(kRelaxed))}};
}

void Upstream::publish(const Published& now) noexcept {
  const policy::Cohort& cohort = now.cohort;
  cohort_counts_.store(std::uint64_t{cohort.endpoints} | std::uint64_t{cohort.open} << kCountBits |
                           std::uint64_t{cohort.returning} << (2 * kCountBits),
                       kRelaxed);
  queues_overflow_.store(policy::queues_overflow(cohort), kRelaxed);
  open_weight_.store(cohort.open_weight, kRelaxed);
  weight_max_.store(cohort.weight_max, kRelaxed);
  median_ns_.store(now.latency.median.count(), kRelaxed);
  p99_ns_.store(now.latency.p99.count(), kRelaxed);
}

// A late tick comes before the sockets are read: only the next one that is in time counts.
void Upstream::note_tick(std::uint32_t loop, TimePoint now, Duration lateness) noexcept {
  if (lateness <= EndpointWatch::kLate) ticked_ns_[loop].store(to_ns(now), kRelaxed);
}

bool Upstream::is_late(std::uint32_t loop, TimePoint now) const noexcept {
  const std::int64_t at = ticked_ns_[loop].load(kRelaxed);
  return at != 0 && now - time_from_ns(at) > EndpointWatch::kTick + EndpointWatch::kLate;
}

// ---- connections

bool Upstream::try_add_connection(io::Access access) noexcept {
  const std::uint32_t kept = access == io::Access::kCritical ? 0 : reserved_;
  return connections_.try_add(1, config_.max_connections - kept);
}

// Each time another loop is the first to be told, so that none of them always loses the race.
void Upstream::drop_connection() noexcept {
  connections_.sub(1);
  if (waiting_.load(std::memory_order_seq_cst) == 0) return;
  const std::scoped_lock lock(mutex_);
  if (pools_.empty()) return;
  next_pool_ = (next_pool_ + 1) % pools_.size();
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    pools_[(next_pool_ + i) % pools_.size()]->post_serve();
  }
}

void Upstream::add_pool(ConnectionPool& pool) {
  const std::scoped_lock lock(mutex_);
  pools_.push_back(&pool);
}

void Upstream::remove_pool(ConnectionPool& pool) noexcept {
  const std::scoped_lock lock(mutex_);
  std::erase(pools_, &pool);
}

std::uint64_t Upstream::idle() const noexcept {
  std::uint64_t total = 0;
  const std::shared_ptr<const EndpointSet> set = endpoints();
  for (const EndpointSet::Member& member : set->members) {
    total += member.endpoint->sum([](const EndpointCounters& c) { return c.idle.get(); });
  }
  return total;
}

void Upstream::ask_for_idle(const ConnectionPool& asker) noexcept {
  const std::scoped_lock lock(mutex_);
  for (ConnectionPool* pool : pools_) {
    if (pool != &asker) pool->post_give();
  }
}

// ---- loops

void Upstream::add_dispatcher(Dispatcher& dispatcher) {
  const std::scoped_lock lock(mutex_);
  dispatchers_.push_back(&dispatcher);
}

void Upstream::remove_dispatcher(Dispatcher& dispatcher) noexcept {
  const std::scoped_lock lock(mutex_);
  std::erase(dispatchers_, &dispatcher);
}

void Upstream::post_review() noexcept {
  const std::scoped_lock lock(mutex_);
  for (Dispatcher* dispatcher : dispatchers_) dispatcher->post_review();
}

}  // namespace weir::inline v0::upstream
