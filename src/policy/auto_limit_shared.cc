// AutoLimit before a service that other gateways use too: one baseline, and probes at one instant.
#include <algorithm>
#include <cmath>

#include "auto_limit.h"
#include "auto_limit_terms.h"

namespace weir::inline v0::inline policy {
namespace {

constexpr Duration kNewsCount = std::chrono::seconds(10);  // longer without news: alone again
constexpr Duration kDoubtLasts = std::chrono::seconds(5);
constexpr Duration kTogether = std::chrono::seconds(1);  // a probe that begins later is not common

LatencyShape shape_of(const ServiceBaseline& baseline) noexcept {
  return {static_cast<double>(baseline.p10.count()), static_cast<double>(baseline.p50.count()),
          static_cast<double>(baseline.p90.count()), static_cast<double>(baseline.avg.count())};
}

Duration ns(double value) noexcept {
  return Duration(static_cast<std::int64_t>(value));
}

}  // namespace

BaselineReport AutoLimit::exchange(const BaselineNews& news) noexcept {
  shares_until_ = news.at + kNewsCount;
  const bool about_to_begin = common_probe_due(news.at);  // this window has not closed yet
  if (!about_to_begin) common_probe_ = news.probe_at;
  full_gateways_ = news.full;
  limit_mean_ = news.limit_mean;
  if (news.shared && news.shared != heard_) {
    heard_ = news.shared;
    baseline_ = shape_of(*news.shared);
    baseline_in_flight_ = in_flight_;
    known_ = verified_ = true;
    retake_ = false;
  }
  return {.measured = measured_,
          .full = full_,
          .limit = probing_ ? probe_from_ : limit_,
          .wants_probe = news.at < wants_probe_until_};
}

bool AutoLimit::common_probe_due(TimePoint now) const noexcept {
  if (common_probe_ == TimePoint{}) return false;
  return shares() && now >= common_probe_ && now < common_probe_ + kTogether;
}

// Nothing changes just before: a limit that has not settled could not begin with the others.
bool AutoLimit::common_probe_near(TimePoint now) const noexcept {
  return shares() && now < common_probe_ && now >= common_probe_ - kTogether;
}

Duration AutoLimit::until_common_probe() const noexcept {
  return shares() && closed_at_ < common_probe_ ? common_probe_ - closed_at_ : Duration::max();
}

// The queue is one, so the slack of the service is divided among those that fill it.
double AutoLimit::slack(double busy) const noexcept {
  if (!shares()) return slack_of(busy);
  const double gateways = std::max(1U, full_gateways_);
  return 1 + (slack_of(busy * gateways) - 1) / gateways;
}

// A queue between β / 2 and β is right whatever the shares of the gateways are, so nothing else
// would make them equal.
void AutoLimit::approach_mean() noexcept {
  const double distance = limit_mean_ - limit_;
  if (!shares() || limit_mean_ <= 0 || std::abs(distance) < 1) return;
  limit_ = clamped(limit_ + std::copysign(std::max(1.0, std::abs(distance) / 8), distance));
}

// A single gateway may doubt by chance, so a doubt does not last.
void AutoLimit::want_probe(TimePoint now) noexcept {
  wants_probe_until_ = now + kDoubtLasts;
}

// What all agree on replaces it with the next news, even if that has not changed.
void AutoLimit::publish(const View& view, TimePoint now) noexcept {
  heard_.reset();
  measured_ = ServiceBaseline{ns(view.shape.p10), ns(view.shape.p50), ns(view.shape.p90),
                              ns(view.shape.avg), now};
}

}  // namespace weir::inline v0::inline policy
