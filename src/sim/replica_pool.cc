#include "replica_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace weir::inline v0::sim {
namespace {

using policy::HealthEvent;

constexpr Duration kWindow = std::chrono::seconds(1);
constexpr std::uint32_t kWindowsPerHistogram = 5;

std::vector<policy::HashRing::Member> ring_members(const ReplicasSpec& spec) {
  std::vector<policy::HashRing::Member> members;
  for (std::uint64_t i = 0; i < spec.each.size(); ++i) {
    members.push_back({.key = i + 1, .weight = spec.each[i].weight});
  }
  return members;
}

}  // namespace

ReplicaPool::ReplicaPool(const ReplicasSpec& spec, Rng rng)
    : shared_budget_(spec.budget),
      spec_(spec),
      rng_(rng),
      replicas_(spec.each.size()),
      ring_(ring_members(spec)),
      slow_(spec.each.size()),
      window_ends_(TimePoint{} + kWindow) {
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    replicas_[i].weight = spec.each[i].weight;
    replicas_[i].budget.set_rules(spec.budget);
  }
  refresh_cohort({});
}

double ReplicaPool::effective_weight(const Replica& replica, TimePoint now) const noexcept {
  const bool ramp = policy::ramp_applies(cohort_);
  return replica.weight * (ramp ? replica.health.return_ratio(now, health_rules_) : 1);
}

policy::ReplicaView ReplicaPool::View::view(std::uint32_t i) const noexcept {
  const Replica& replica = pool.replicas_[i];
  policy::ReplicaView view;
  view.openness = replica.health.openness();
  view.in_flight = replica.in_flight;
  view.weight = pool.effective_weight(replica, now);
  view.in_flight_max = policy::share_max(pool.limit_, view.weight, pool.cohort_);
  view.score_ns = policy::projected_ns(replica.score, pool.latency_, {}, now);
  return view;
}

policy::Choice ReplicaPool::choose(std::span<const std::uint32_t> tried, TimePoint now) {
  policy::ChoiceAsk ask{.balance = spec_.balance, .cohort = cohort_, .tried = tried};
  ask.ring = &ring_;
  ask.hash = rng_.next_u64();
  for (const Replica& replica : replicas_) ask.in_flight_total += replica.in_flight;
  return policy::choose_replica(View{*this, now}, ask, cursor_, rng_);
}

bool ReplicaPool::other_open(std::span<const std::uint32_t> tried) const {
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    const bool fresh = std::ranges::find(tried, i) == tried.end();
    if (fresh && replicas_[i].health.openness() <= policy::Openness::kTrial) return true;
  }
  return false;
}

ReplicaCandidates ReplicaPool::candidates(std::span<const std::uint32_t> tried, TimePoint now) {
  ReplicaCandidates found;
  std::vector<std::uint32_t> used(tried.begin(), tried.end());
  const auto add = [&](std::uint32_t i) {
    const policy::ReplicaView view = View{*this, now}.view(i);
    found.targets[found.count].target = {.openness = view.openness,
                                         .in_flight = view.in_flight,
                                         .in_flight_max = view.in_flight_max};
    found.targets[found.count].budget = &replicas_[i].budget;
    found.replicas[found.count++] = i;
    used.push_back(i);
  };
  const auto fresh = [&used](std::uint32_t i) { return std::ranges::find(used, i) == used.end(); };
  while (found.count < found.targets.size()) {
    const policy::Choice choice = choose(used, now);
    if (!choice.found() || !fresh(choice.index)) break;
    add(choice.index);
  }
  // None can be used: one of the others says why.
  for (std::uint32_t i = 0; i < replicas_.size() && found.count == 0; ++i) {
    if (fresh(i)) add(i);
  }
  return found;
}

bool ReplicaPool::caught_in_silence(std::uint32_t replica, TimePoint sent_at,
                                    TimePoint now) const noexcept {
  const Replica& one = replicas_[replica];
  return policy::caught_in_silence(sent_at, silent(one) ? now : one.suspected_until);
}

void ReplicaPool::sent(std::uint32_t replica, TimePoint now) {
  replicas_[replica].budget.deposit();
  sent_again(replica, now);
}

void ReplicaPool::sent_again(std::uint32_t replica, TimePoint now) {
  Replica& to = replicas_[replica];
  ++to.in_flight;
  to.unanswered.push_back(now);
  if (to.health.openness() == policy::Openness::kTrial) apply(to, HealthEvent::kTrialStarted, now);
}

void ReplicaPool::ended(std::uint32_t replica, ReplicaEnd end, TimePoint sent_at, TimePoint now) {
  Replica& from = replicas_[replica];
  --from.in_flight;
  const auto mine = std::ranges::find(from.unanswered, sent_at);
  if (mine != from.unanswered.end()) from.unanswered.erase(mine);
  learn(from, end, sent_at, now);
  if (end != ReplicaEnd::kCancelled && end != ReplicaEnd::kBeaten) {
    note_health(from, end, now);
  } else if (!silent(from) && policy::missing_answer(now - sent_at, latency_.p99, {})) {
    apply(from, HealthEvent::kBadAnswer, now);
  }
}

bool ReplicaPool::silent(const Replica& replica) noexcept {
  return replica.health.state() == policy::EndpointState::kSuspect ||
         replica.health.state() == policy::EndpointState::kHung;
}

void ReplicaPool::learn(Replica& replica, ReplicaEnd end, TimePoint sent_at, TimePoint now) {
  if (policy::caught_in_silence(sent_at, silent(replica) ? now : replica.suspected_until)) return;
  const Duration latency = now - sent_at;
  policy::LatencySample sample{.latency = latency};
  sample.beaten = end == ReplicaEnd::kBeaten;
  sample.censored = end == ReplicaEnd::kCancelled || sample.beaten;
  sample.error = end != ReplicaEnd::kOk && !sample.censored;
  replica.score = policy::with_sample(replica.score, sample, latency_, {}, now);
  if (end != ReplicaEnd::kOk) return;
  replica.window.add(latency);
  replica.compared_window.add(latency);
  recent_.add(latency);
}

void ReplicaPool::note_health(Replica& replica, ReplicaEnd end, TimePoint now) {
  const bool heard = end == ReplicaEnd::kOk || end == ReplicaEnd::kBadAnswer;
  if (heard) {
    replica.last_heard = now;
    apply(replica, HealthEvent::kConnected, now);
    apply(replica, HealthEvent::kHeard, now);
  }
  if (end == ReplicaEnd::kOk) {
    apply(replica, HealthEvent::kAnswered, now);
  } else if (end == ReplicaEnd::kConnectRefused) {
    apply(replica, HealthEvent::kConnectFailed, now);
  } else {
    apply(replica, HealthEvent::kBadAnswer, now);
  }
}

/// True if the state changed.
bool ReplicaPool::apply(Replica& replica, HealthEvent event, TimePoint now,
                        policy::SilenceEnd end) {
  const auto change = replica.health.apply(event, now, health_rules_, rng_);
  if (!change || change->from == change->to) return false;
  using enum policy::EndpointState;
  if (change->from == kHung || change->from == kSuspect) {
    const auto worst =
        change->from == kHung ? policy::SilenceVerdict::kHung : policy::SilenceVerdict::kSuspect;
    if (policy::silence_drops_samples(worst, end)) replica.suspected_until = now;
  }
  if (change->to == kEjected) ++counts_.ejections;
  if (change->to == kSuspect) ++counts_.suspicions;
  const bool was_out = change->from == kEjected || change->from == kHung;
  if (was_out && change->to == kReturning) {
    replica.score = policy::score_on_return(latency_, {}, now);
  }
  refresh_cohort(now);
  return true;
}

void ReplicaPool::wanted(TimePoint now) {
  for (Replica& replica : replicas_) apply(replica, HealthEvent::kWanted, now);
}

bool ReplicaPool::take_budget(std::uint32_t replica) noexcept {
  control::RedundancyToken token;
  const control::RedundancyBudgets from{shared_budget_, replicas_[replica].budget};
  if (token.take(from) != control::BudgetVerdict::kTaken) return false;
  token.spent();
  return true;
}

TimePoint ReplicaPool::others_heard(std::uint32_t index) const noexcept {
  TimePoint latest{};
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    if (i != index) latest = std::max(latest, replicas_[i].last_heard);
  }
  return latest;
}

/// True if the replica has become suspect or hung.
bool ReplicaPool::watch_silence(std::uint32_t index, TimePoint now, bool alive) {
  Replica& replica = replicas_[index];
  const bool was_silent = silent(replica);
  if (was_silent && spec_.probes && alive) {
    replica.last_heard = now;
    replica.probe_sent = {};
    apply(replica, HealthEvent::kHeard, now, policy::SilenceEnd::kProbe);
    return false;
  }
  policy::SilenceFacts facts;
  facts.last_heard = replica.last_heard;
  if (!replica.unanswered.empty()) facts.oldest_unanswered = replica.unanswered.front();
  facts.others_heard = others_heard(index);
  facts.probe_sent = replica.probe_sent;
  facts.cohort_p99 = latency_.p99;
  const policy::SilenceRules rules{};
  const policy::SilenceVerdict verdict = policy::judge_silence(facts, rules, now);
  const bool probe_late =
      replica.probe_sent != TimePoint{} && now - replica.probe_sent > rules.probe_timeout;
  bool changed = false;
  if (verdict == policy::SilenceVerdict::kSuspect) {
    changed = apply(replica, HealthEvent::kSuspected, now);
  } else if (verdict == policy::SilenceVerdict::kHung || (was_silent && probe_late)) {
    changed = apply(replica, HealthEvent::kHung, now);
    replica.probe_sent = {};
  }
  const bool probing = changed || was_silent;
  if (probing && spec_.probes && replica.probe_sent == TimePoint{}) replica.probe_sent = now;
  return changed;
}

std::span<const std::uint32_t> ReplicaPool::tick(TimePoint now,
                                                 const std::function<bool(std::uint32_t)>& alive) {
  silent_.clear();
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    apply(replicas_[i], HealthEvent::kTick, now);
    if (spec_.silence && watch_silence(i, now, alive(i))) silent_.push_back(i);
  }
  if (now >= window_ends_) close_window(now);
  refresh_latency();
  refresh_cohort(now);
  return silent_;
}

void ReplicaPool::refresh_latency() {
  LatencyHistogram both = earlier_;
  both.merge(recent_);
  if (both.count() > 0) latency_ = {.median = both.quantile(0.5), .p99 = both.quantile(0.99)};
}

void ReplicaPool::refresh_cohort(TimePoint now) {
  policy::Cohort sums{.endpoints = static_cast<std::uint32_t>(replicas_.size())};
  for (const Replica& replica : replicas_) {
    if (replica.health.openness() > policy::Openness::kTrialBusy) continue;
    ++sums.open;
    if (replica.health.state() == policy::EndpointState::kReturning) ++sums.returning;
  }
  cohort_.open = sums.open;
  cohort_.returning = sums.returning;  // effective_weight() asks for both
  sums.weight_max = 0;
  for (const Replica& replica : replicas_) {
    const double weight = effective_weight(replica, now);
    sums.weight_max = std::max(sums.weight_max, weight);
    if (replica.health.openness() <= policy::Openness::kTrialBusy) sums.open_weight += weight;
  }
  cohort_ = sums;
}

policy::EjectionCounts ReplicaPool::ejection_counts() const noexcept {
  policy::EjectionCounts counts{.endpoints = cohort_.endpoints, .available = cohort_.open};
  for (const Replica& replica : replicas_) {
    const bool ejected = replica.health.state() == policy::EndpointState::kEjected;
    if (ejected && replica.health.reason() == policy::HealthReason::kSlow) {
      ++counts.ejected_by_latency;
    }
  }
  return counts;
}

control::ReplicaSpread ReplicaPool::spread() const noexcept {
  return {.replicas = cohort_.endpoints, .open = cohort_.open, .worst = worst_};
}

void ReplicaPool::close_window(TimePoint now) {
  window_ends_ = now + kWindow;
  std::vector<policy::LatencyWindow> windows;
  std::vector<Duration> compared;
  for (Replica& replica : replicas_) {
    const LatencyHistogram& seen = replica.compared_window;
    if (replica.compared.on_second(seen.count(), seen.quantile(0.5))) {
      replica.compared_window.clear();
    }
    compared.push_back(replica.compared.median());
    windows.push_back({.samples = static_cast<std::uint32_t>(replica.window.count()),
                       .p50 = replica.window.quantile(0.5)});
    replica.window.clear();
  }
  worst_ = control::worst_of(std::move(compared));
  std::vector<Duration> scratch(windows.size());
  policy::close_latency_window(windows, slow_, scratch, {});
  std::vector<std::uint32_t> outliers;
  for (std::uint32_t i = 0; i < slow_.size(); ++i) {
    if (spec_.ejection && slow_[i].outlier()) outliers.push_back(i);
  }
  std::ranges::sort(outliers, std::greater<>(), [&](std::uint32_t i) { return windows[i].p50; });
  for (const std::uint32_t i : outliers) {
    if (!policy::may_eject_slow(ejection_counts(), {})) break;
    if (apply(replicas_[i], HealthEvent::kTooSlow, now)) slow_[i] = {};
  }
  if (++windows_ % kWindowsPerHistogram == 0) {
    earlier_ = recent_;
    recent_.clear();
  }
}

}  // namespace weir::inline v0::sim
