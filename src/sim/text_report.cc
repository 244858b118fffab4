#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "weir/base/duration_text.h"

#include "report.h"

namespace weir::inline v0::sim {
namespace {

using Out = std::back_insert_iterator<std::string>;

double percent(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Wraps the description at 96 columns, indented by two blanks.
void add_story(std::string& out, const std::string& story) {
  std::string line;
  std::string word;
  const auto flush = [&] {
    if (!line.empty()) out += "  " + line + "\n";
    line.clear();
  };
  for (const char c : story + " ") {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > 96) flush();
    line += (line.empty() ? "" : " ") + word;
    word.clear();
  }
  flush();
}

void add_calls(Out out, const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  fmt::format_to(out, "\n  {:<20} {:<8} {:>11} {:>11} {:>9} {:>8} {:>9} {:>9} {:>6}\n", "load",
                 "class", "offered/s", "goodput/s", "success", "shed", "p50 ms", "p99 ms", "tries");
  for (std::size_t i = 0; i < span.calls.size(); ++i) {
    const Cohort& cohort = result.recorder.cohorts()[i];
    const CallTotals& c = span.calls[i];
    fmt::format_to(out,
                   "  {:<20} {:<8} {:>11.1f} {:>11.1f} {:>8.2f}% {:>7.2f}% {:>9.2f} {:>9.2f} "
                   "{:>6.2f}\n",
                   scenario.loads[cohort.load].name, name_of(cohort.priority),
                   static_cast<double>(c.offered) / span.seconds(),
                   static_cast<double>(c.ok()) / span.seconds(), percent(c.ok(), c.ended_all()),
                   percent(c.refused, c.arrived), to_millis(c.latency.quantile(0.5)),
                   to_millis(c.latency.quantile(0.99)), percent(c.attempts, c.offered) / 100);
  }
}

void add_services(Out out, const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  fmt::format_to(out, "  {:<20} {:<10} {:>15} {:>6} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "service",
                 "limiter", "limit", "at end", "in flight", "queue", "p50 ms", "p99 ms", "crashes");
  for (std::size_t i = 0; i < span.services.size(); ++i) {
    const ServiceSpec& spec = scenario.services[i];
    const ServiceTotals& s = span.services[i];
    const bool open = !spec.admission;
    fmt::format_to(out, "  {:<20} {:<10} {:>15} {:>6} {:>10} {:>10} {:>10.2f} {:>10.2f} {:>7}\n",
                   spec.name, open ? "none" : name_of(spec.admission->limit.policy),
                   open ? "-" : fmt::format("{} to {}", s.limit_min, s.limit_max),
                   open ? "-" : fmt::format("{}", s.limit_end), s.in_flight_max, s.queue_max,
                   to_millis(s.dispatch.quantile(0.5)), to_millis(s.dispatch.quantile(0.99)),
                   s.crashes);
  }
}

/// Where reads are hedged: how many, how often they won, and why others were not sent.
void add_hedges(Out out, const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  bool titled = false;
  for (std::size_t i = 0; i < span.services.size(); ++i) {
    const ServiceSpec& spec = scenario.services[i];
    if (!spec.replicas || !spec.replicas->hedge) continue;
    if (!std::exchange(titled, true)) {
      fmt::format_to(out, "  {:<20} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "hedging",
                     "requests", "hedges", "more load", "won", "p99 ms", "not sent");
    }
    const ServiceTotals& s = span.services[i];
    std::string reasons;
    for (std::size_t r = 0; r < policy::kNoHedgeCount; ++r) {
      if (s.hedges.not_sent[r] == 0 || r == static_cast<std::size_t>(policy::NoHedge::kNotNeeded)) {
        continue;
      }
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", policy::kNoHedgeNames[r],
                             s.hedges.not_sent[r]);
    }
    fmt::format_to(out, "  {:<20} {:>10} {:>10} {:>9.2f}% {:>9.1f}% {:>10.2f}  {}\n", spec.name,
                   s.dispatched, s.hedges.sent, percent(s.hedges.sent, s.dispatched),
                   percent(s.hedges.won, s.hedges.sent), to_millis(s.dispatch.quantile(0.99)),
                   reasons.empty() ? "-" : reasons);
  }
}

/// What the diagnosis of each service said, and for how long.
void add_diagnoses(Out out, const Scenario& scenario, const RunResult& result) {
  for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
    const std::vector<policy::Cause>& causes = result.recorder.causes(i);
    std::array<std::size_t, policy::kCauseCount> seconds{};
    for (const policy::Cause cause : causes) ++seconds[static_cast<std::size_t>(cause)];
    std::string said;
    for (std::size_t c = 0; c < seconds.size(); ++c) {
      if (seconds[c] == 0) continue;
      said += fmt::format("{}{} {} s", said.empty() ? "" : ", ", policy::kCauseFacts[c].name,
                          seconds[c]);
    }
    if (!said.empty()) {
      fmt::format_to(out, "  diagnosis of {}: {}\n", scenario.services[i].name, said);
    }
  }
}

/// What became of messages, by destination.
void add_messages(Out out, const Scenario& scenario, const RunResult& result) {
  const SpanTotals& span = result.recorder.spans().front();
  if (scenario.senders.empty()) return;
  fmt::format_to(out, "  {:<20} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "messages to", "offered",
                 "dropped", "refused", "expired", "queued");
  for (std::size_t i = 0; i < span.services.size(); ++i) {
    const MessageTotals& m = span.services[i].messages;
    if (m.offered == 0) continue;
    fmt::format_to(out, "  {:<20} {:>10} {:>10} {:>10} {:>10} {:>10}\n", scenario.services[i].name,
                   m.offered, m.dropped, m.refused, m.expired, m.queued_max);
  }
}

}  // namespace

std::string printed(const VerdictSpec& verdict, double value) {
  // In the order of MeasureUnit.
  constexpr std::array<const char*, 5> kFormats = {"{:.1f}/s", "{:.4f}", "{:.2f} ms", "{:.0f}",
                                                   "{:.2f} s"};
  const auto unit = static_cast<std::size_t>(unit_of(verdict));
  return fmt::format(fmt::runtime(kFormats[unit]), value);
}

std::string described(const Scenario& scenario, const VerdictSpec& verdict) {
  const MeasureFacts& facts = facts_of(verdict.measure);
  std::string text(facts.name);
  if (verdict.measure == Measure::kRefused) {
    text += fmt::format(" ({})", kReasonFacts[verdict.reason].name);
  }
  if (verdict.measure == Measure::kDiagnosed) {
    text += fmt::format(" ({})", policy::kCauseFacts[verdict.reason].name);
  }
  if (verdict.measure == Measure::kNoHedge) {
    text += fmt::format(" ({})", policy::kNoHedgeNames[verdict.reason]);
  }
  if (verdict.against) text += " / that of " + scenario.loads[*verdict.against].name;
  if (verdict.min && verdict.max) {
    text +=
        fmt::format(" {} to {}", printed(verdict, *verdict.min), printed(verdict, *verdict.max));
  } else if (verdict.min) {
    text += " ≥ " + printed(verdict, *verdict.min);
  } else if (verdict.max) {
    text += " ≤ " + printed(verdict, *verdict.max);
  }
  if (verdict.priority) text += fmt::format(", class {}", name_of(*verdict.priority));
  if (verdict.load) text += ", load " + scenario.loads[*verdict.load].name;
  if (facts.of == MeasureOf::kService && scenario.services.size() > 1) {
    text += ", service " + scenario.services[verdict.service].name;
  }
  if (verdict.measure == Measure::kRecoveryTime) {
    text += fmt::format(" (after {}, {:.0f}/s)", to_string(verdict.after), verdict.level);
  } else if (verdict.from.count() > 0 || verdict.to != scenario.duration) {
    text += fmt::format(", {} to {}", to_string(verdict.from), to_string(verdict.to));
  }
  return text;
}

std::string text_report(const Scenario& scenario, const RunResult& result,
                        const std::string& reproduce) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "{}  (seed {}, {} simulated)\n", scenario.name, scenario.seed,
                 to_string(scenario.duration));
  add_story(text, scenario.story);
  add_calls(out, scenario, result);
  add_services(out, scenario, result);
  add_hedges(out, scenario, result);
  add_messages(out, scenario, result);
  add_diagnoses(out, scenario, result);
  text += "\n";
  bool failed = false;
  for (const VerdictResult& verdict : result.verdicts) {
    failed = failed || !verdict.holds;
    const std::string value = verdict.known ? printed(verdict.spec, verdict.value) : "never";
    fmt::format_to(out, "  {} {}: {} [{}]\n", verdict.holds ? "ok  " : "FAIL", verdict.spec.name,
                   value, described(scenario, verdict.spec));
  }
  if (failed) fmt::format_to(out, "       see it again: {}\n", reproduce);
  const Balance& b = result.balance;
  fmt::format_to(out,
                 "  {} calls: {} ok, {} refused, {} failed, {} timed out, {} unfinished; "
                 "{} attempts; digest {:016x}\n",
                 b.started, b.ended[0], b.ended[1], b.ended[2], b.ended[3], b.unfinished,
                 b.attempts, result.digest);
  return text;
}

}  // namespace weir::inline v0::sim
