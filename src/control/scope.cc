#include "scope.h"

#include <algorithm>
#include <utility>

#include "memory_orders.h"

namespace weir::inline v0::inline control {

class Scope::Claim {
 public:
  enum class How : std::uint8_t { kTry, kWait };
  Claim(std::atomic_flag& flag, How how) noexcept : flag_(flag) {
    held_ = !flag_.test_and_set(std::memory_order_acquire);
    while (!held_ && how == How::kWait) {
      flag_.wait(true, kRelaxed);
      held_ = !flag_.test_and_set(std::memory_order_acquire);
    }
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() {
    if (!held_) return;
    flag_.clear(std::memory_order_release);
    flag_.notify_all();
  }
  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  std::atomic_flag& flag_;
  bool held_;
};

Scope::Scope(std::string_view name, std::unique_ptr<LimitPolicy> policy, ProcessGate& process)
    : room(gate, process), window(counters), evidence(counters), name_(name) {
  set_policy(std::move(policy));
}

Scope::Scope(std::string_view name, const LimitConfig& limit, Rng rng, ProcessGate& process)
    : Scope(name, make_limit_policy(limit, rng), process) {
  configured_ = limit;
  limit_min_.store(limit.effective_min(), kRelaxed);
  limit_max_.store(limit.max_limit, kRelaxed);
}

void Scope::set_policy(std::unique_ptr<LimitPolicy> policy) noexcept {
  {
    const Claim claim(claimed_, Claim::How::kWait);
    configured_.reset();
    limit_min_.store(1, kRelaxed);
    limit_max_.store(kClassUnitsMax, kRelaxed);
    install_policy(std::move(policy));
    install_limit(policy_->limit());
  }
  room.pump(TimePoint{});
}

void Scope::set_limit(const LimitConfig& next, Rng rng) noexcept {
  {
    const Claim claim(claimed_, Claim::How::kWait);
    if (configured_ == next) return;
    LimitConfig same_policy = next;
    if (configured_) same_policy.take_bounds_of(*configured_);
    if (configured_ != same_policy) {
      LimitConfig from_here = next;
      from_here.initial_limit = std::clamp(limit(), next.effective_min(), next.max_limit);
      install_policy(make_limit_policy(from_here, rng));
    }
    policy_->set_bounds(next.bounds());
    configured_ = next;
    limit_min_.store(next.effective_min(), kRelaxed);
    limit_max_.store(next.max_limit, kRelaxed);
    install_limit(policy_->limit());
  }
  room.pump(TimePoint{});
}

std::optional<LimitConfig> Scope::configured() noexcept {
  const Claim claim(claimed_, Claim::How::kWait);
  return configured_;
}

BaselineReport Scope::exchange_baseline(const BaselineNews& news) noexcept {
  const Claim claim(claimed_, Claim::How::kWait);
  const BaselineReport report = policy_->exchange(news);
  window.set_rules(policy_->window_rules());
  return report;
}

void Scope::install_policy(std::unique_ptr<LimitPolicy> policy) noexcept {
  policy_ = std::move(policy);
  window.set_rules(policy_->window_rules());
  window.ignore_before(TimePoint{});
  limit_reason_.store(LimitReason::kConfigured, kRelaxed);
}

void Scope::set_rules(const ClassRules& rules, const RuleModes& modes,
                      std::uint32_t process_max) noexcept {
  {
    const Claim claim(claimed_, Claim::How::kWait);
    rules_ = rules;
    modes_ = modes;
    process_max_ = process_max;
    install_limit(limit());
  }
  room.pump(TimePoint{});
}

// A policy or bounds that the caller supplies may exceed what the class word can count.
void Scope::install_limit(std::uint32_t wanted) noexcept {
  const std::uint32_t limit = std::min(wanted, kClassUnitsMax);
  limit_.store(limit, kRelaxed);
  gate.set_rules(rules_, modes_, limit, process_max_);
}

bool Scope::step_limiter(TimePoint now, LimitChange& change) noexcept {
  if (!window.is_due(now)) return false;
  bool raised = false;
  {
    const Claim claim(claimed_, Claim::How::kTry);
    if (!claim.held() || !window.is_due(now)) return false;
    LimitSample sample = window.close(now, gate.sheddable());
    if (sample.opened_at == TimePoint{}) return false;  // this call only opened the first window
    sample.overload_count = evidence.counted(sample);
    const LimitDecision decision = policy_->on_window(sample);
    const std::uint32_t old_limit = limit();
    const std::uint32_t new_limit = std::min(decision.limit, kClassUnitsMax);
    window.set_rules(policy_->window_rules());
    window.ignore_before(decision.samples_from);
    if (sample.sample_count > 0) latency_avg_ns_.store(sample.latency_avg.count(), kRelaxed);
    baseline_ns_.store(decision.baseline.count(), kRelaxed);
    queue_estimate_.store(decision.queue_estimate, kRelaxed);
    limit_reason_.store(decision.reason, kRelaxed);
    if (new_limit == old_limit) return false;
    install_limit(new_limit);
    change = {.scope = name_,
              .old_limit = old_limit,
              .new_limit = new_limit,
              .in_flight = gate.sheddable(),
              .queue_estimate = decision.queue_estimate,
              .latency_avg = sample.latency_avg,
              .latency_min = decision.baseline,
              .reason = decision.reason};
    raised = new_limit > old_limit;
  }
  if (raised) room.pump(now);
  return true;
}

ScopeStats Scope::stats(TimePoint now) const noexcept {
  ScopeStats out;
  out.name = name_;
  const ClassCounts counts = gate.counts();
  for (const Priority p : kPriorities) {
    const std::size_t i = index_of(p);
    ClassStats& c = out.classes[i];
    c.in_flight = counts.units[i];
    c.bound = p == Priority::kCritical ? 0 : gate.bound(p);
    c.cap = gate.cap(p);
    c.acquired = counters.sum_at(&ScopeCounters::acquired, i);
    c.shed = counters.sum_at(&ScopeCounters::shed, i);
    c.waited = room.waited(p);
    c.standing = room.standing(p, now);
  }
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    for (std::size_t p = 0; p < kPriorityCount; ++p) {
      out.refused_by_class[i][p] = counters.sum_at(&ScopeCounters::refused, i * kPriorityCount + p);
      out.refused[i] += out.refused_by_class[i][p];
    }
    out.would_refuse[i] = counters.sum_at(&ScopeCounters::would_refuse, i);
  }
  out.errors = counters.sum(&ScopeCounters::errors);
  out.overloads = counters.sum(&ScopeCounters::overloads);
  out.samples = counters.sum(&ScopeCounters::samples);
  out.latency_sum = Duration(static_cast<std::int64_t>(counters.sum(&ScopeCounters::latency_ns)));
  out.in_flight = counts.sheddable();
  out.waiting = room.waiting();
  out.limit = limit();
  out.limit_min = limit_min_.load(kRelaxed);
  out.limit_max = limit_max_.load(kRelaxed);
  out.queue_estimate = queue_estimate_.load(kRelaxed);
  out.latency_avg = Duration(latency_avg_ns_.load(kRelaxed));
  out.baseline = baseline();
  out.limit_reason = limit_reason_.load(kRelaxed);
  out.drain_per_second = drain.per_second(now);
  out.state = gate.state();
  out.overloaded = overload.persists(now);
  return out;
}

}  // namespace weir::inline v0::inline control
