#include "run.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "measure.h"

namespace weir::inline v0::sim {
namespace {

// FNV-1a over 64-bit words.
class Digest {
 public:
  void add(std::uint64_t word) noexcept {
    for (int i = 0; i < 8; ++i) {
      hash_ = (hash_ ^ (word & 0xFFU)) * 0x100000001B3U;
      word >>= 8U;
    }
  }
  void add(double value) noexcept { add(std::bit_cast<std::uint64_t>(value)); }
  void add(Duration value) noexcept { add(static_cast<std::uint64_t>(value.count())); }
  [[nodiscard]] std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325U;
};

std::uint64_t digest_of(const Recorder& recorder, const Balance& balance) {
  Digest digest;
  for (const SeriesPoint& point : recorder.series()) {
    for (const SeriesPoint::Calls& c : point.calls) {
      digest.add(std::uint64_t{c.offered});
      digest.add(std::uint64_t{c.ok});
      digest.add(std::uint64_t{c.refused});
    }
    for (const SeriesPoint::Service& s : point.services) {
      digest.add(std::uint64_t{s.limit});
      digest.add(std::uint64_t{s.in_flight});
      digest.add(std::uint64_t{s.queue});
      digest.add(s.memory);
    }
    digest.add(double{point.p99_ms});
  }
  for (const SpanTotals& span : recorder.spans()) {
    for (const CallTotals& c : span.calls) digest.add(c.latency.mean());
    for (const ServiceTotals& s : span.services) digest.add(s.dispatch.mean());
  }
  digest.add(balance.started);
  digest.add(balance.attempts);
  digest.add(balance.events);
  for (const std::uint64_t ended : balance.ended) digest.add(ended);
  return digest.value();
}

double ratio(double part, double whole) noexcept {
  return whole > 0 ? part / whole : 0;
}

double millis_at(const LatencyHistogram& histogram, double q) noexcept {
  return to_millis(histogram.quantile(q));
}

bool selects(const VerdictSpec& verdict, const Cohort& cohort) noexcept {
  return (!verdict.priority || *verdict.priority == cohort.priority) &&
         (!verdict.load || *verdict.load == cohort.load);
}

double slow_ratio(const VerdictSpec& verdict, const CallTotals& calls) noexcept {
  const std::uint64_t in_time = calls.latency.count() - calls.latency.above(verdict.above);
  const auto ended = static_cast<double>(calls.ended_all());
  return ratio(ended - static_cast<double>(in_time), ended);
}

// The first instant after `after` from which goodput, averaged over `hold`, is at least `level`.
std::optional<double> recovery_time(const VerdictSpec& verdict, const Recorder& recorder) {
  const auto& series = recorder.series();
  const Duration bucket = recorder.bucket();
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(1, verdict.hold / bucket));
  const double needed = verdict.level * to_seconds(bucket) * static_cast<double>(width);
  const auto first = static_cast<std::size_t>(verdict.after / bucket);
  for (std::size_t at = first; at + width <= series.size(); ++at) {
    double ok = 0;
    for (std::size_t i = at; i < at + width; ++i) {
      for (std::size_t c = 0; c < series[i].calls.size(); ++c) {
        if (selects(verdict, recorder.cohorts()[c])) ok += series[i].calls[c].ok;
      }
    }
    if (ok >= needed) return to_seconds(bucket * static_cast<std::int64_t>(at) - verdict.after);
  }
  return std::nullopt;
}

std::optional<double> measure_calls(const VerdictSpec& verdict, const SpanTotals& span,
                                    const Recorder& recorder) {
  const CallTotals calls = select(span, recorder.cohorts(), verdict.priority, verdict.load);
  const double seconds = span.seconds();
  const bool none = calls.latency.count() == 0;
  const auto latency = [&](double value) { return none ? std::nullopt : std::optional(value); };
  switch (verdict.measure) {
    case Measure::kOffered:
      return static_cast<double>(calls.offered) / seconds;
    case Measure::kGoodput:
      return static_cast<double>(calls.ok()) / seconds;
    case Measure::kSuccessRatio:
      return ratio(static_cast<double>(calls.ok()), static_cast<double>(calls.ended_all()));
    case Measure::kShedRatio:
      return ratio(static_cast<double>(calls.refused), static_cast<double>(calls.arrived));
    case Measure::kAmplification:
      return ratio(static_cast<double>(calls.attempts), static_cast<double>(calls.offered));
    case Measure::kSlowRatio:
      return slow_ratio(verdict, calls);
    case Measure::kLatencyP50:
      return latency(millis_at(calls.latency, 0.5));
    case Measure::kLatencyP90:
      return latency(millis_at(calls.latency, 0.9));
    case Measure::kLatencyP99:
      return latency(millis_at(calls.latency, 0.99));
    case Measure::kLatencyP999:
      return latency(millis_at(calls.latency, 0.999));
    case Measure::kLatencyMean:
      return latency(to_millis(calls.latency.mean()));
    default:
      return recovery_time(verdict, recorder);
  }
}

double measure_service(const VerdictSpec& verdict, const ServiceTotals& s, double seconds) {
  switch (verdict.measure) {
    case Measure::kDispatchP50:
      return millis_at(s.dispatch, 0.5);
    case Measure::kDispatchP99:
      return millis_at(s.dispatch, 0.99);
    case Measure::kDispatchMean:
      return to_millis(s.dispatch.mean());
    case Measure::kQueueMean:
      return to_millis(s.queue.mean());
    case Measure::kWaitP99:
      return millis_at(s.wait, 0.99);
    case Measure::kRefusalP50:
      return millis_at(s.refusal, 0.5);
    case Measure::kRefusalP99:
      return millis_at(s.refusal, 0.99);
    case Measure::kLimitMin:
      return s.limit_min;
    case Measure::kLimitMax:
      return s.limit_max;
    case Measure::kLimitEnd:
      return s.limit_end;
    case Measure::kInFlightMax:
      return s.in_flight_max;
    case Measure::kQueueMax:
      return s.queue_max;
    case Measure::kMemoryMax:
      return s.memory_max;
    case Measure::kCrashes:
      return static_cast<double>(s.crashes);
    case Measure::kWastedRatio:
      return ratio(s.wasted_ns, s.busy_ns);
    case Measure::kDispatched:
      return static_cast<double>(s.dispatched) / seconds;
    case Measure::kReplicaTries:
      return ratio(static_cast<double>(s.replica_tries), static_cast<double>(s.dispatched));
    case Measure::kEjections:
      return static_cast<double>(s.ejections);
    case Measure::kSuspicions:
      return static_cast<double>(s.suspicions);
    default:
      return static_cast<double>(s.refused[verdict.reason]);
  }
}

VerdictResult judge(const VerdictSpec& spec, const Recorder& recorder, const Balance& balance) {
  VerdictResult result{spec, 0, false, false};
  const std::optional<double> value = measure(spec, recorder, balance);
  result.known = value.has_value();
  result.value = value.value_or(0);
  result.holds = value && (!spec.min || *value >= *spec.min) && (!spec.max || *value <= *spec.max);
  return result;
}

}  // namespace

CallTotals select(const SpanTotals& span, const std::vector<Cohort>& cohorts,
                  std::optional<Priority> priority, std::optional<std::uint32_t> load) {
  CallTotals all;
  VerdictSpec which;
  which.priority = priority;
  which.load = load;
  for (std::size_t i = 0; i < cohorts.size(); ++i) {
    if (selects(which, cohorts[i])) all.merge(span.calls[i]);
  }
  return all;
}

std::optional<double> measure(const VerdictSpec& verdict, const Recorder& recorder,
                              const Balance& balance) {
  if (verdict.measure == Measure::kCriticalShed) {
    return static_cast<double>(balance.critical_shed);
  }
  const SpanTotals& span = recorder.span({verdict.from, verdict.to});
  if (facts_of(verdict.measure).of == MeasureOf::kCalls) {
    return measure_calls(verdict, span, recorder);
  }
  return measure_service(verdict, span.services[verdict.service], span.seconds());
}

bool RunResult::passed() const noexcept {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const VerdictResult& v) { return v.holds; });
}

RunResult run_scenario(const Scenario& scenario, const PolicyMaker& make_policy,
                       const Progress& progress) {
  World world(scenario, make_policy);
  constexpr int kSteps = 200;
  for (int i = 1; i <= kSteps; ++i) {
    world.run_until(TimePoint(world.end().time_since_epoch() * i / kSteps));
    if (progress) progress(static_cast<double>(i) / kSteps, world.balance().attempts);
  }
  RunResult result{world.recorder(), world.balance()};
  result.digest = digest_of(result.recorder, result.balance);
  for (const VerdictSpec& spec : scenario.verdicts) {
    result.verdicts.push_back(judge(spec, result.recorder, result.balance));
  }
  return result;
}

}  // namespace weir::inline v0::sim
