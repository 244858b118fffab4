#include "policy/shared_baseline.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

constexpr int kRegularTrips = 150;  // fewest round trips between two probes
constexpr int kWantedTrips = 20;

bool fresh(TimePoint at, Duration span, TimePoint now) noexcept {
  return at != TimePoint{} && now - at <= span;
}

}  // namespace

SharedBaseline::SharedBaseline(std::uint32_t gateways, TimePoint start)
    : members_(gateways), last_probe_(start), next_probe_(start + kProbeEvery) {
  measured_.reserve(gateways);
}

void SharedBaseline::report(std::uint32_t gateway, const BaselineReport& report,
                            TimePoint now) noexcept {
  members_[gateway] = {report, now};
  advance(now);
  if (report.wants_probe && half_want_probe(now)) bring_forward(now);
}

BaselineNews SharedBaseline::news(TimePoint now) noexcept {
  advance(now);
  BaselineNews news;
  news.at = now;
  news.shared = shared(now);
  latency_ = news.shared ? news.shared->avg : Duration{};
  news.probe_at = next_probe_;
  double limits = 0;
  for (const Member& m : members_) {
    if (!m.report.full || !fresh(m.reported_at, kReportCounts, now)) continue;
    ++news.full;
    limits += m.report.limit;
  }
  news.limit_mean = news.full > 0 ? limits / news.full : 0;
  return news;
}

void SharedBaseline::advance(TimePoint now) noexcept {
  if (now < next_probe_) return;
  last_probe_ = next_probe_;
  if (!wanted_) pause_ = kPauseFirst;
  wanted_ = false;
  next_probe_ = now + std::max(kProbeEvery, latency_ * kRegularTrips);
}

// Everybody must hear of it before it begins.
void SharedBaseline::bring_forward(TimePoint now) noexcept {
  const TimePoint soonest =
      std::max(now + kNotice, last_probe_ + std::max(pause_, latency_ * kWantedTrips));
  if (wanted_ || soonest >= next_probe_) return;
  next_probe_ = soonest;
  wanted_ = true;
  pause_ = std::min(pause_ * 2, kPauseLast);
}

// One gateway alone sees less than it believes; half of those that are full are right.
bool SharedBaseline::half_want_probe(TimePoint now) const noexcept {
  std::size_t full = 0;
  std::size_t want = 0;
  for (const Member& m : members_) {
    if (!fresh(m.reported_at, kReportCounts, now)) continue;
    if (m.report.full || m.report.wants_probe) ++full;
    if (m.report.wants_probe) ++want;
  }
  return want * 2 >= full;
}

bool SharedBaseline::half_measured_since(TimePoint instant, TimePoint now) const noexcept {
  std::size_t all = 0;
  std::size_t since = 0;
  for (const Member& m : members_) {
    if (!m.report.measured || !fresh(m.report.measured->measured_at, kExpires, now)) continue;
    ++all;
    if (m.report.measured->measured_at >= instant) ++since;
  }
  return since * 2 >= all && since > 0;
}

std::optional<ServiceBaseline> SharedBaseline::shared(TimePoint now) noexcept {
  const TimePoint from = half_measured_since(last_probe_, now) ? last_probe_ : now - kExpires;
  measured_.clear();
  for (const Member& m : members_) {
    if (m.report.measured && m.report.measured->measured_at >= from) {
      measured_.push_back(*m.report.measured);
    }
  }
  if (measured_.empty()) return std::nullopt;
  const auto chosen = measured_.begin() + static_cast<std::ptrdiff_t>((measured_.size() - 1) / 2);
  std::nth_element(
      measured_.begin(), chosen, measured_.end(),
      [](const ServiceBaseline& a, const ServiceBaseline& b) { return a.avg < b.avg; });
  return *chosen;
}

}  // namespace weir::inline v0::inline policy
