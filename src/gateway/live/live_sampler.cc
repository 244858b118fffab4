#include "live/live_sampler.h"

#include <algorithm>
#include <utility>

#include "live/live_json.h"

namespace weir::inline v0::gateway {
namespace {

constexpr Duration kVerdictPace = std::chrono::seconds(10);
constexpr std::size_t kEndpointEvents = 20;  // per second and upstream

std::uint64_t offered_by(const ScopeStats& scope, std::uint64_t ClassStats::*count) {
  std::uint64_t all = 0;
  for (const ClassStats& one : scope.classes) all += one.*count;
  return all;
}

/// What the gateway itself refused, by reason; and requests that a pool had no room for.
std::uint64_t read_own(const UpstreamPlace& place, LiveUpstream::Refusals& refusals) {
  std::uint64_t by_bounds = 0;
  for (const auto& loop : place.counters) {
    for (std::size_t i = 0; i < GatewayReason::kOwnCount; ++i) {
      const std::uint64_t count = loop->refused[kReasonCount + i].get();
      refusals.own[i] += count;
      // Refusals for lack of a place are overload; the others are about the request.
      if (GatewayReason::at(kReasonCount + i).facts().overload) by_bounds += count;
    }
    by_bounds += loop->no_room.get();
  }
  return by_bounds;
}

}  // namespace

std::string evidence_text(const policy::Evidence& evidence) {
  const auto text = [](std::string_view name, double value, std::string_view unit) {
    return std::string(name) + " " + number(value).dump() + std::string(unit);
  };
  return text("offered", evidence.offered, "/s, ") + text("usual", evidence.usual_offered, "/s; ") +
         text("answered", evidence.answered, "/s, ") +
         text("at best", evidence.best_answered, "/s; ") +
         text("refused", evidence.refused, "/s; ") + text("latency", evidence.latency_ms, " ms, ") +
         text("usual", evidence.usual_latency_ms, " ms");
}

const LiveUpstream* LiveSampler::find(std::string_view name) const noexcept {
  const auto found = std::find_if(upstreams_.begin(), upstreams_.end(),
                                  [name](const auto& one) { return one->name == name; });
  return found == upstreams_.end() ? nullptr : found->get();
}

const LiveUpstream* LiveSampler::worst() const noexcept {
  const auto better = [](const auto& a, const auto& b) {
    const bool a_trouble = a->diagnosis.cause != policy::Cause::kFine;
    const bool b_trouble = b->diagnosis.cause != policy::Cause::kFine;
    if (a_trouble != b_trouble) return b_trouble;
    if (a->scope.state != b->scope.state) return a->scope.state < b->scope.state;
    return a->diagnosis.evidence.refused < b->diagnosis.evidence.refused;
  };
  const auto found = std::max_element(upstreams_.begin(), upstreams_.end(), better);
  return found == upstreams_.end() ? nullptr : found->get();
}

void LiveSampler::second(TimePoint now, std::int64_t unix_seconds) {
  const Duration passed = seconds_ == 0 ? Duration(std::chrono::seconds(1)) : now - now_;
  ++seconds_;
  now_ = now;
  unix_seconds_ = unix_seconds;
  const AdmissionController& controller = view_.core.controller;
  const std::vector<BudgetRow> actors = controller.top_actors(RefusedParties::kLookedAt);
  actors_.read(actors, to_seconds(passed));
  peers_.read(controller.top_peers(RefusedParties::kLookedAt), to_seconds(passed));
  const std::shared_ptr<const UpstreamSet> set = view_.core.upstreams.in_force();
  match(*set);
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    read(*upstreams_[i], *set->all[i], passed, actors);
  }
  note_gateway();
}

/// Records stay with the names: what replaces an upstream goes on with its counters.
void LiveSampler::match(const UpstreamSet& set) {
  const std::size_t count = std::min(set.all.size(), bounds_.upstreams);
  std::vector<std::unique_ptr<LiveUpstream>> before = std::exchange(upstreams_, {});
  for (std::size_t i = 0; i < count; ++i) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const auto& one) {
      return one != nullptr && one->name == set.all[i]->name();
    });
    upstreams_.push_back(known != before.end()
                             ? std::move(*known)
                             : std::make_unique<LiveUpstream>(set.all[i]->name()));
  }
}

void LiveSampler::read(LiveUpstream& record, const ServedUpstream& upstream, Duration passed,
                       const std::vector<BudgetRow>& actors) {
  constexpr std::size_t kActorsJudged = 10;
  const double seconds = std::max(to_seconds(passed), 1e-3);
  record.scope = view_.core.controller.scope_stats(upstream.scope(), now_);
  const std::size_t others = [&] {
    std::size_t lines = 0;
    for (const auto& one : upstreams_)
      lines += one.get() == &record ? 0 : one->endpoints.all().size();
    return lines;
  }();
  const std::vector<EndpointChange> changes =
      record.endpoints.read(*upstream.upstream.endpoints(), now_, seconds,
                            bounds_.endpoints - std::min(bounds_.endpoints, others));
  record.cohort = upstream.upstream.published().latency;
  LiveUpstream::Refusals refusals{.by_class = record.scope.refused_by_class,
                                  .shadow = record.scope.would_refuse};
  const std::uint64_t own = read_own(upstream.place, refusals);
  record.refusals.push(refusals);
  record.second = record.seconds.next(
      record.scope, passed, own, std::span(actors).first(std::min(actors.size(), kActorsJudged)),
      record.endpoints.spread());
  const policy::Cause before = record.diagnosis.cause;
  record.diagnosis = record.diagnoser.on_second(record.second);
  record.cause_seconds = record.diagnosis.cause == before ? record.cause_seconds + 1 : 1;

  const std::uint64_t admitted = offered_by(record.scope, &ClassStats::acquired);
  const std::uint64_t refused = offered_by(record.scope, &ClassStats::shed) + own;
  const auto rate = [seconds](std::uint64_t now, std::uint64_t earlier) {
    return static_cast<float>(static_cast<double>(now - std::min(now, earlier)) / seconds);
  };
  const upstream::LatencySummary& latency = record.endpoints.second();
  const policy::ScopeSecond& s = record.second;
  record.history.push({.offered = static_cast<float>(s.offered),
                       .admitted = rate(admitted, std::exchange(record.admitted, admitted)),
                       .refused = rate(refused, std::exchange(record.refused, refused)),
                       .failed = static_cast<float>(s.failed),
                       .in_flight = static_cast<float>(s.in_flight),
                       .waiting = static_cast<float>(s.waiting),
                       .limit = static_cast<float>(s.limit),
                       .p50_ms = static_cast<float>(to_millis(latency.p50)),
                       .p99_ms = static_cast<float>(to_millis(latency.p99)),
                       .baseline_ms = static_cast<float>(s.baseline_ms),
                       .cause = record.diagnosis.cause});
  record.history.note_answers(s.answered, s.latency_ms, to_millis(latency.p99));
  note_limit(record);
  note_endpoints(record, changes);
  note_verdict(record);
}

void LiveSampler::note_limit(LiveUpstream& record) {
  const std::uint32_t limit = record.scope.limit;
  const std::uint32_t before = std::exchange(record.limit, limit);
  if (before == 0) {
    record.limit_told = limit;
    return;
  }
  if (limit != before) {
    record.history.moved({.unix_seconds = unix_seconds_,
                          .from = before,
                          .to = limit,
                          .reason = record.scope.limit_reason});
  }
  if (!OperatorLog::worth_telling(record.limit_told, limit)) return;
  const std::uint32_t told = std::exchange(record.limit_told, limit);
  events_.add({.unix_seconds = unix_seconds_,
               .kind = LiveEventKind::kLimit,
               .upstream = record.name,
               .text = "limit " + std::to_string(told) + " to " + std::to_string(limit) + ": " +
                       std::string(name_of(record.scope.limit_reason))});
}

void LiveSampler::note_verdict(LiveUpstream& record) {
  const policy::Cause cause = record.diagnosis.cause;
  const bool paced =
      record.cause_told_at != TimePoint{} && now_ < record.cause_told_at + kVerdictPace;
  if (cause == record.cause_told || paced) return;
  record.cause_told = cause;
  record.cause_told_at = now_;
  view_.log.on_verdict(record.name, cause, evidence_text(record.diagnosis.evidence));
  events_.add(
      {.unix_seconds = unix_seconds_,
       .kind = LiveEventKind::kVerdict,
       .upstream = record.name,
       .text = std::string(facts_of(cause).name) + ": " + std::string(facts_of(cause).sentence)});
}

void LiveSampler::note_endpoints(const LiveUpstream& record,
                                 const std::vector<EndpointChange>& changes) {
  const auto add = [&](std::string text) {
    events_.add({.unix_seconds = unix_seconds_,
                 .kind = LiveEventKind::kEndpoint,
                 .upstream = record.name,
                 .text = std::move(text)});
  };
  const std::size_t shown = std::min(changes.size(), kEndpointEvents);
  for (std::size_t i = 0; i < shown; ++i) add(changes[i].endpoint + " " + changes[i].text);
  if (changes.size() > shown) {
    add("and " + std::to_string(changes.size() - shown) + " changes of other endpoints");
  }
}

void LiveSampler::note_gateway() {
  const auto add = [&](LiveEventKind kind, std::string text) {
    events_.add({.unix_seconds = unix_seconds_, .kind = kind, .text = std::move(text)});
  };
  const bool draining = view_.draining.load();
  if (draining != std::exchange(draining_, draining)) {
    add(LiveEventKind::kDrain, "the gateway drains: it takes no new connections");
  }
  const std::uint64_t ok = view_.reloads_ok.load();
  if (ok != std::exchange(reloads_ok_, ok)) {
    add(LiveEventKind::kReload, "a new configuration is in force");
  }
  const std::uint64_t refused = view_.reloads_refused.load();
  if (refused != std::exchange(reloads_refused_, refused)) {
    add(LiveEventKind::kReload, "a reload was refused; the log says why");
  }
  const std::vector<Override> overrides = view_.core.overrides();
  const auto has = [](const std::vector<Override>& all, const Override& wanted) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Override& one) { return one.number == wanted.number; });
  };
  for (const Override& one : overrides) {
    if (has(overrides_, one)) continue;
    add(LiveEventKind::kOverride,
        one.sentence() + " for " + std::to_string(one.seconds_left(now_)) + " s");
  }
  for (const Override& one : overrides_) {
    if (!has(overrides, one)) add(LiveEventKind::kOverride, one.sentence() + " is over");
  }
  overrides_ = overrides;
  const AdmissionConfig rules = view_.core.controller.config();
  const double usage = view_.core.controller.stats().memory_usage;
  const std::size_t level = (usage >= rules.memory.memory_pressure_threshold ? 1U : 0U) +
                            (usage >= rules.memory.memory_critical_threshold ? 1U : 0U);
  if (level == std::exchange(memory_level_, level)) return;
  constexpr std::array<const char*, 3> kMeanings = {"no request is refused for it",
                                                    "low-class requests are refused",
                                                    "normal and low-class requests are refused"};
  add(LiveEventKind::kMemory,
      "memory " + number(usage * 100).dump() + " % used: " + kMeanings[level]);
}

std::uint64_t LiveSampler::memory_bytes(const Bounds& bounds) noexcept {
  constexpr std::uint64_t kText = 320;   // labels, zones and what the allocator adds
  constexpr std::uint64_t kParty = 256;  // an actor or a peer, and its entry of a table
  return sizeof(LiveSampler) + bounds.upstreams * (sizeof(LiveUpstream) + kText) +
         bounds.endpoints * (sizeof(EndpointLine) + kText) + 2 * RefusedParties::kLookedAt * kParty;
}

}  // namespace weir::inline v0::gateway
