#include "policy/diagnosis.h"

#include <algorithm>
#include <cmath>

namespace weir::inline v0::inline policy {
namespace {

constexpr double kRefusedIsTrouble = 0.01;   // share of what is offered
constexpr double kFailedIsTrouble = 0.05;    // share of what ends
constexpr double kSlower = 1.5;              // × the usual latency
constexpr double kMoreDemand = 1.2;          // × the usual demand
constexpr double kLessThroughput = 0.8;      // × the most that was ever answered
constexpr double kKeepsUp = 0.9;             // share of what is offered
constexpr double kSickReplica = 3;           // × the median of all replicas
constexpr double kDominantClient = 0.4;      // share of all that clients hold
constexpr double kUnloaded = 0.25;           // × the limit: a queue that is none
constexpr double kAtMaximum = 0.8;           // × the maximum: probes lower the limit for moments
constexpr double kSilentSeconds = 2;         // without any answer
constexpr double kSilentLatencies = 4;       // or this × the usual latency
constexpr std::uint32_t kClientsForOne = 4;  // fewer cannot say that one of them dominates
constexpr std::size_t kSlotSeconds = 5;      // one entry of the history: at least so long,
constexpr double kSlotRequests = 400;        // and until so much was asked, because fewer scatter
constexpr std::size_t kSlotSecondsMax = 60;  // but no longer

double all_refused(const ScopeSecond& s) noexcept {
  return s.refused_limit + s.refused_client + s.refused_memory + s.refused_own;
}

bool calm(const ScopeSecond& s) noexcept {
  return all_refused(s) <= kRefusedIsTrouble * s.offered &&
         s.failed <= kFailedIsTrouble * (s.failed + s.answered) && s.answered > 0;
}

// What is asked is answered: nothing piles up in the service.
bool keeps_up(const ScopeSecond& sums) noexcept {
  return sums.answered + 2 * std::sqrt(sums.offered) >= kKeepsUp * sums.offered;
}

void add(ScopeSecond& sum, const ScopeSecond& s) noexcept {
  sum.offered += s.offered;
  sum.refused_limit += s.refused_limit;
  sum.refused_client += s.refused_client;
  sum.refused_memory += s.refused_memory;
  sum.refused_own += s.refused_own;
  sum.latency_ms += s.latency_ms * s.answered;  // weighted; divided by all answers afterwards
  sum.answered += s.answered;
  sum.failed += s.failed;
  sum.in_flight += s.in_flight;
  sum.waiting += s.waiting;
  sum.limit += s.limit;
  sum.queue += s.queue;
  sum.top_client_in_flight += s.top_client_in_flight;
}

}  // namespace

void Diagnoser::History::push(double value) noexcept {
  values[next] = static_cast<float>(value);
  next = (next + 1) % kSlots;
  count = std::min(count + 1, kSlots);
}

double Diagnoser::History::quantile(double q) const noexcept {
  if (count == 0) return 0;
  std::array<float, kSlots> sorted = values;
  const auto at = static_cast<std::size_t>(q * static_cast<double>(count - 1));
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<double>(*middle);
}

Diagnosis Diagnoser::on_second(const ScopeSecond& second) noexcept {
  last_[seconds_ % kWindow] = second;
  ++seconds_;
  average();
  note_silence(second);
  const Cause cause = judge();
  learn(second);
  return {.cause = cause,
          .evidence = {.offered = mean_.offered,
                       .answered = mean_.answered,
                       .refused = all_refused(mean_),
                       .latency_ms = mean_.latency_ms,
                       .usual_offered = usual_offered_,
                       .usual_latency_ms = usual_latency_,
                       .best_answered = best_answered_}};
}

// Means; the bounds of the limit, the replicas that are open and the baseline are the newest.
void Diagnoser::average() noexcept {
  const std::size_t count = std::min(seconds_, kWindow);
  const auto seconds = static_cast<double>(count);
  const ScopeSecond& newest = last_[(seconds_ - 1) % kWindow];
  ScopeSecond sum;
  struct {
    double sum = 0;
    double count = 0;
  } worst;
  replica_was_out_ = false;
  for (std::size_t i = 0; i < count; ++i) {
    add(sum, last_[i]);
    replica_was_out_ = replica_was_out_ || last_[i].replicas_open < last_[i].replicas;
    worst.sum += last_[i].worst_replica;
    worst.count += last_[i].worst_replica > 0 ? 1 : 0;
  }
  mean_ = newest;
  mean_.latency_ms = sum.answered > 0 ? sum.latency_ms / sum.answered : 0;
  mean_.offered = sum.offered / seconds;
  mean_.refused_limit = sum.refused_limit / seconds;
  mean_.refused_client = sum.refused_client / seconds;
  mean_.refused_memory = sum.refused_memory / seconds;
  mean_.refused_own = sum.refused_own / seconds;
  mean_.answered = sum.answered / seconds;
  mean_.failed = sum.failed / seconds;
  mean_.in_flight = sum.in_flight / seconds;
  mean_.waiting = sum.waiting / seconds;
  mean_.limit = sum.limit / seconds;
  mean_.queue = sum.queue / seconds;
  mean_.worst_replica = worst.count > 0 ? worst.sum / worst.count : 0;
  mean_.top_client_in_flight = sum.top_client_in_flight / seconds;
}

void Diagnoser::note_silence(const ScopeSecond& second) noexcept {
  if (second.answered > 0)
    silent_seconds_ = 0;
  else if (second.in_flight + second.failed + second.waiting > 0)
    ++silent_seconds_;
}

bool Diagnoser::silent() const noexcept {
  const double usual = std::max(usual_latency_, mean_.baseline_ms) / 1000;
  return silent_seconds_ >= std::max(kSilentSeconds, kSilentLatencies * usual);
}

// Places go by turns, so one client that asks for most of them still gets more than its part.
bool Diagnoser::one_client_dominates() const noexcept {
  return mean_.clients_active >= kClientsForOne && mean_.top_client_in_flight >= kDominantClient &&
         mean_.top_client_in_flight * mean_.clients_active >= 3;
}

// Few answers scatter: a mean of n exponential times by 1 / √n.
double Diagnoser::scatter() const noexcept {
  const double answers = mean_.answered * static_cast<double>(std::min(seconds_, kWindow));
  return answers > 0 ? 2 / std::sqrt(answers) : 1;
}

bool Diagnoser::slower() const noexcept {
  return usual_latency_ > 0 && mean_.latency_ms > kSlower * (1 + scatter()) * usual_latency_;
}

Cause Diagnoser::judge() const noexcept {
  const double refused = all_refused(mean_);
  const bool refuses = refused > kRefusedIsTrouble * mean_.offered && refused > 0;
  if (refuses && mean_.refused_own >= refused / 2) return Cause::kOwnBound;
  if (refuses && mean_.refused_memory >= refused / 2) return Cause::kMemory;
  if (silent()) return Cause::kUnreachable;
  const bool some_out = mean_.replicas_open < mean_.replicas;
  if (mean_.replicas > 0 && mean_.replicas_open == 0) return Cause::kUnreachable;
  // What a replica held while it was out is in the latencies of these seconds.
  const bool of_one_that_was_out = replica_was_out_ && (refuses || slower());
  if (mean_.replicas > 1 &&
      (some_out || of_one_that_was_out || mean_.worst_replica > kSickReplica)) {
    return Cause::kSickReplica;
  }
  if (refuses && mean_.refused_client >= refused / 2) return Cause::kClient;
  if (refuses || slower()) return judge_load(refused);
  if (mean_.failed > kFailedIsTrouble * (mean_.failed + mean_.answered)) return Cause::kUnclear;
  return Cause::kFine;
}

// Too much is asked of the service, or it can do less than before, or the limit is too low. If no
// calm time was seen yet, what was asked until now takes its place.
Cause Diagnoser::judge_load(double refused) const noexcept {
  const bool refuses = refused > kRefusedIsTrouble * mean_.offered;
  const bool was_calm = usual_offered_ > 0;
  const double usual = was_calm ? usual_offered_ : usual_demand_;
  const bool asked_more = mean_.offered > kMoreDemand * usual;
  const bool does_less = mean_.answered * (1 + scatter()) < kLessThroughput * best_answered_;
  if (slower() && !asked_more) return Cause::kServiceSlower;
  if (refuses && does_less && (slower() || !asked_more)) return Cause::kServiceSlower;
  if (!refuses) return asked_more ? Cause::kDemand : Cause::kUnclear;
  if (one_client_dominates()) return Cause::kClient;
  const bool at_maximum = mean_.limit >= kAtMaximum * mean_.limit_max;
  const bool unloaded = mean_.baseline_ms > 0 && mean_.queue < kUnloaded * mean_.limit;
  if (at_maximum && unloaded) return Cause::kLimitLow;
  return (asked_more || !was_calm) && !does_less ? Cause::kDemand : Cause::kUnclear;
}

void Diagnoser::learn(const ScopeSecond& second) noexcept {
  add(slot_, second);
  slot_calm_ = slot_calm_ && calm(second);
  if (++slot_seconds_ < kSlotSeconds) return;
  if (slot_.offered < kSlotRequests && slot_seconds_ < kSlotSecondsMax) return;
  const auto seconds = static_cast<double>(slot_seconds_);
  if (slot_.answered > 0) {
    throughput_.push(slot_.answered / seconds);
    best_answered_ = throughput_.quantile(0.9);
    demand_.push(slot_.offered / seconds);
    usual_demand_ = demand_.quantile(0.5);
    const double latency = slot_.latency_ms / slot_.answered;
    const bool usual = usual_latency_ == 0 || latency <= kSlower * usual_latency_;
    if (slot_calm_ && usual && keeps_up(slot_)) {
      offered_.push(slot_.offered / seconds);
      latency_.push(latency);
      usual_offered_ = offered_.quantile(0.5);
      usual_latency_ = latency_.quantile(0.5);
    }
  }
  slot_ = {};
  slot_seconds_ = 0;
  slot_calm_ = true;
}

}  // namespace weir::inline v0::inline policy
