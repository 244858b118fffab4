#include "run.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "weir/base/assert.h"

#include "diagnosis_watch.h"

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

double ratio(auto part, auto whole) noexcept {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool selects(const VerdictSpec& verdict, const Cohort& cohort) noexcept {
  return (!verdict.priority || *verdict.priority == cohort.priority) &&
         (!verdict.load || *verdict.load == cohort.load);
}

double slow_ratio(const CallTotals& calls, Duration above) noexcept {
  const std::uint64_t in_time = calls.latency.count() - calls.latency.above(above);
  const auto ended = static_cast<double>(calls.ended_all());
  return ratio(ended - static_cast<double>(in_time), ended);
}

// By Little's law.
double in_flight_mean(const ServiceTotals& service, double seconds) noexcept {
  return to_seconds(service.dispatch.mean()) * static_cast<double>(service.dispatch.count()) /
         seconds;
}

double fair_share(const VerdictSpec& verdict, const SpanTotals& span) noexcept {
  std::uint64_t all = 0;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < verdict.gateways; ++i) {
    const std::uint64_t completed = span.services[verdict.first_gateway + i].completed;
    all += completed;
    least = std::min(least, completed);
    most = std::max(most, completed);
  }
  const std::uint64_t one = verdict.measure == Measure::kFairShareMin ? least : most;
  return ratio(one * verdict.gateways, all);
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

// Of the seconds that lie in the span; second n is diagnosed at its end.
std::optional<double> diagnosed_share(const VerdictSpec& verdict, const Recorder& recorder) {
  const auto& causes = recorder.causes(verdict.service);
  const auto from = static_cast<std::size_t>(to_seconds(verdict.from));
  const auto to = std::min(static_cast<std::size_t>(to_seconds(verdict.to)), causes.size());
  if (from >= to) return std::nullopt;
  const auto first = causes.begin() + static_cast<std::ptrdiff_t>(from);
  const auto last = causes.begin() + static_cast<std::ptrdiff_t>(to);
  const auto right = std::count(first, last, static_cast<policy::Cause>(verdict.reason));
  return ratio(right, last - first);
}

double measured(const VerdictSpec& v, const CallTotals& c, const ServiceTotals& s, double seconds) {
  switch (v.measure) {
#define WEIR_X(enumerator, name, of, unit, formula) \
  case Measure::enumerator:                         \
    return formula;
    WEIR_MEASURES(WEIR_X)
#undef WEIR_X
  }
  WEIR_UNREACHABLE();
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

// The value of one load, divided by that of the other.
static std::optional<double> compared(const VerdictSpec& verdict, const Recorder& recorder,
                                      const Balance& balance) {
  VerdictSpec own = verdict;
  own.against.reset();
  VerdictSpec other = own;
  other.load = verdict.against;
  const std::optional<double> value = measure(own, recorder, balance);
  const std::optional<double> base = measure(other, recorder, balance);
  if (!value || !base || *base == 0) return std::nullopt;
  return *value / *base;
}

std::optional<double> measure(const VerdictSpec& verdict, const Recorder& recorder,
                              const Balance& balance) {
  if (verdict.measure == Measure::kDiagnosed) return diagnosed_share(verdict, recorder);
  const SpanTotals& span = recorder.span({verdict.from, verdict.to});
  const ServiceTotals& service = span.services[verdict.service];
  if (verdict.measure == Measure::kCriticalShed) return static_cast<double>(balance.critical_shed);
  if (verdict.measure == Measure::kRecoveryTime) return recovery_time(verdict, recorder);
  if (verdict.measure == Measure::kFairShareMin || verdict.measure == Measure::kFairShareMax) {
    if (verdict.gateways < 2) return std::nullopt;
    return fair_share(verdict, span);
  }
  if (verdict.measure == Measure::kRefused) {
    return static_cast<double>(service.refused[verdict.reason]);
  }
  if (verdict.measure == Measure::kNoHedge) {
    return static_cast<double>(service.hedges.not_sent[verdict.reason]);
  }
  if (verdict.against) return compared(verdict, recorder, balance);
  const CallTotals calls = select(span, recorder.cohorts(), verdict.priority, verdict.load);
  const MeasureFacts& facts = facts_of(verdict.measure);
  const bool latency = facts.of == MeasureOf::kCalls && facts.unit == MeasureUnit::kMillis;
  if (latency && calls.latency.count() == 0) return std::nullopt;
  return measured(verdict, calls, service, span.seconds());
}

bool RunResult::passed() const noexcept {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const VerdictResult& v) { return v.holds; });
}

RunResult run_scenario(const Scenario& scenario, const PolicyMaker& make_policy,
                       const Progress& progress) {
  World world(scenario, make_policy);
  DiagnosisWatch watch(world, scenario.services.size());
  TimePoint second{std::chrono::seconds(1)};
  constexpr int kSteps = 200;
  for (int i = 1; i <= kSteps; ++i) {
    const TimePoint step(world.end().time_since_epoch() * i / kSteps);
    for (; second <= std::min(step, TimePoint(scenario.duration));
         second += std::chrono::seconds(1)) {
      world.run_until(second);
      watch.second();
    }
    world.run_until(step);
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
