#include "replica_links.h"

#include <algorithm>
#include <utility>

#include "policy/replica_choice.h"

namespace weir::inline v0::grpc {
namespace {

constexpr policy::PeakEwmaRules kScores;

/// Of all attempts: median and 99th percentile, without a clamp.
policy::HedgeConfig plain_latencies(policy::HedgeConfig config) {
  config.quantile = 0.99;
  config.min_delay = config.default_delay = Duration(0);
  config.max_delay = std::chrono::hours(24);
  return config;
}

bool names(std::span<const std::string> among, const std::string& target) {
  return among.empty() || std::find(among.begin(), among.end(), target) != among.end();
}

}  // namespace

/// The set as policy::choose_replica() reads it.
struct ReplicaLinks::View {
  const ReplicaLinks& set;
  std::span<const std::string> among;
  TimePoint now;

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(set.links_.size());
  }
  [[nodiscard]] policy::ReplicaView view(std::uint32_t i) const noexcept {
    const ReplicaLink& link = *set.links_[i];
    const bool ramps = policy::ramp_applies(set.cohort_);
    const policy::OutgoingState queue = link.queue.state();
    return {
        .openness = names(among, link.target) ? link.openness() : policy::Openness::kClosed,
        // One that asked for fewer requests is used if no other can be.
        .queue = link.pushed_back(now) ? std::max(queue, policy::OutgoingState::kOverflow) : queue,
        .in_flight = link.in_flight,
        // Until the latencies are known, they count as equal.
        .score_ns = set.latency_.median == Duration(0)
                        ? 1
                        : policy::projected_ns(link.score, set.latency_, kScores, now),
        .weight = ramps ? link.health.return_ratio(now, link.rules) : 1.0};
  }
};

ReplicaLinks::ReplicaLinks(const HedgedChannelConfig& config, std::uint32_t read_classes)
    : config_(config), all_(plain_latencies(config.hedge)), hedge_cohorts_(read_classes) {}

void ReplicaLinks::set(const std::vector<HedgedReplica>& replicas, const Make& make, TimePoint now,
                       Rng& rng) {
  std::vector<std::shared_ptr<ReplicaLink>> before = std::exchange(links_, {});
  const bool first = before.empty();
  for (auto& link : std::exchange(leaving_, {})) before.push_back(std::move(link));
  for (const HedgedReplica& replica : replicas) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const auto& link) {
      return link != nullptr && link->target == replica.target;
    });
    links_.push_back(known != before.end() ? std::move(*known) : make(replica.target, first));
    ReplicaLink& link = *links_.back();
    link.in_set = true;
    link.note(replica.draining ? policy::HealthEvent::kOperatorDrain
                               : policy::HealthEvent::kOperatorUndrain,
              now, rng);
  }
  for (auto& link : before) {
    if (link == nullptr) continue;
    link->in_set = false;
    leaving_.push_back(std::move(link));
  }
  publish(now);
}

// ---- choice

std::vector<std::uint32_t> ReplicaLinks::indexes(std::span<const ReplicaLink* const> of) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    if (std::find(of.begin(), of.end(), links_[i].get()) != of.end()) found.push_back(i);
  }
  return found;
}

policy::Choice ReplicaLinks::pick(const Ask& ask, std::span<const std::uint32_t> tried,
                                  bool tried_again, TimePoint now, Rng& rng) {
  const View view{.set = *this, .among = ask.among, .now = now};
  const auto was_tried = [&](std::uint32_t i) {
    return std::find(tried.begin(), tried.end(), i) != tried.end();
  };
  for (std::uint32_t i = 0; i < links_.size() && ask.may_try; ++i) {
    const bool trial = view.view(i).openness == policy::Openness::kTrial;
    if (trial && !was_tried(i)) return {.index = i, .reason = policy::ChoiceReason::kChosen};
  }
  return policy::choose_replica(view,
                                {.balance = policy::Balance::kPeakEwma,
                                 .cohort = cohort_,
                                 .tried = tried,
                                 .tried_again = tried_again},
                                cursor_, rng);
}

ReplicaLinks::Chosen ReplicaLinks::choose(const Ask& ask, TimePoint now, Rng& rng) {
  const policy::Choice choice = pick(ask, indexes(ask.tried), true, now, rng);
  return {.link = choice.found() ? links_[choice.index].get() : nullptr,
          .all_full = choice.reason == policy::ChoiceReason::kAllFull};
}

control::HedgeCandidate ReplicaLinks::candidate(std::uint32_t index, ReadClass reads,
                                                TimePoint now) const {
  ReplicaLink& link = *links_[index];
  return {.target = {.openness = link.openness(),
                     .queue = link.queue.state(),
                     .own_zone = true,
                     .pushed_back = link.pushed_back(now),
                     .connection_ready = link.connected(),
                     .in_flight = link.in_flight,
                     .in_flight_max = config_.in_flight_per_replica,
                     .median = link.medians[reads]},
          .budget = &link.budget};
}

/// Each choice is made among those that the ones before it left.
ReplicaCandidates ReplicaLinks::candidates(const Ask& ask, TimePoint now, Rng& rng) {
  ReplicaCandidates found;
  std::vector<std::uint32_t> tried = indexes(ask.tried);
  Ask next = ask;
  next.may_try = false;
  const auto add = [&](std::uint32_t index) {
    tried.push_back(index);
    found.targets[found.count] = candidate(index, ask.reads, now);
    found.links[found.count++] = links_[index].get();
  };
  while (found.count < found.targets.size()) {
    const policy::Choice choice = pick(next, tried, false, now, rng);
    if (!choice.found()) break;
    add(choice.index);
  }
  // None can be used: one of the others says why.
  for (std::uint32_t i = 0; i < links_.size() && found.count == 0; ++i) {
    const bool used = std::find(tried.begin(), tried.end(), i) != tried.end();
    if (!used && names(ask.among, links_[i]->target)) add(i);
  }
  return found;
}

ReplicaLink* ReplicaLinks::ready(const ReplicaCandidates& candidates) {
  for (std::size_t i = 0; i < candidates.count; ++i) {
    const bool can =
        policy::may_hedge_at(candidates.targets[i].target, std::nullopt) == policy::NoHedge::kNone;
    if (can) return candidates.links[i];
  }
  return nullptr;
}

bool ReplicaLinks::other_open(const Ask& ask) const {
  return std::any_of(links_.begin(), links_.end(), [&](const auto& link) {
    return link->openness() <= policy::Openness::kTrial && names(ask.among, link->target) &&
           std::find(ask.tried.begin(), ask.tried.end(), link.get()) == ask.tried.end();
  });
}

// ---- latencies

void ReplicaLinks::learn(ReplicaLink& link, const policy::LatencySample& sample, TimePoint now) {
  link.score = policy::with_sample(link.score, sample, latency_, kScores, now);
  if (!sample.error && !sample.censored) all_.record({.latency = sample.latency}, now);
}

Duration ReplicaLinks::hedge_delay(ReplicaLink& link, ReadClass reads, TimePoint now) {
  const policy::HedgeDelay own = link.reads[reads]->hedge_delay(now);
  return policy::capped_by(hedge_cohorts_[reads], own, config_.hedge).delay;
}

void ReplicaLinks::tick(TimePoint now) {
  std::vector<policy::CohortMember> members;
  for (std::size_t of = 0; of < hedge_cohorts_.size() && config_.hedge.enabled; ++of) {
    members.clear();
    for (const auto& link : links_) {
      const control::LatencyReading reading = link->reads[of]->reading(now);
      link->medians[of] = reading.known() ? reading.median : Duration(0);
      if (reading.known()) {
        members.push_back({.delay = reading.delay.delay, .median = reading.median});
      }
    }
    hedge_cohorts_[of] = policy::judge_cohort(members, hedge_cohorts_[of], config_.hedge);
  }
  const control::LatencyReading all = all_.reading(now);
  if (all.known()) {
    const Duration p99 = std::max(all.delay.delay, all.median);
    latency_ = {.median = std::max(all.median, Duration(1)), .p99 = p99};
  }
  std::erase_if(leaving_, [](const auto& link) { return link->unused(); });
  publish(now);
}

void ReplicaLinks::publish(TimePoint now) {
  cohort_ = {};
  cohort_.weight_max = 0;
  for (const auto& link : links_) {
    if (link->health.state() == policy::EndpointState::kDraining) continue;
    ++cohort_.endpoints;
    if (link->openness() > policy::Openness::kTrial) continue;
    ++cohort_.open;
    cohort_.returning += link->health.state() == policy::EndpointState::kReturning ? 1U : 0U;
  }
  const bool ramps = policy::ramp_applies(cohort_);
  for (const auto& link : links_) {
    if (link->openness() > policy::Openness::kTrial) continue;
    const double weight = ramps ? link->health.return_ratio(now, link->rules) : 1.0;
    cohort_.open_weight += weight;
    cohort_.weight_max = std::max(cohort_.weight_max, weight);
  }
  if (cohort_.weight_max <= 0) cohort_.weight_max = 1;
}

}  // namespace weir::inline v0::grpc
