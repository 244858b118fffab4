#include "rate_profile.h"

#include <cmath>
#include <limits>

namespace weir::inline v0::sim {

RateProfile::RateProfile(std::vector<RatePoint> points, RateShape shape) {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool last = i + 1 == points.size();
    Segment segment{to_seconds(points[i].at), last ? kForever : to_seconds(points[i + 1].at),
                    points[i].value, 0};
    if (!last && shape == RateShape::kRamps && segment.end > segment.start) {
      segment.slope = (points[i + 1].value - points[i].value) / (segment.end - segment.start);
    }
    segments_.push_back(segment);
  }
  if (!segments_.empty()) position_ = segments_.front().start;
}

std::optional<Duration> RateProfile::advance(double amount) {
  for (; current_ < segments_.size(); ++current_) {
    const Segment& s = segments_[current_];
    if (position_ < s.start) position_ = s.start;
    if (position_ >= s.end) continue;
    if (s.slope == 0 && position_ + amount / s.rate < s.end) {  // the usual case; not at rate 0
      position_ += amount / s.rate;
      return Duration(static_cast<std::int64_t>(position_ * 1e9));
    }
    const double here = s.rate + s.slope * (position_ - s.start);
    const double square = here * here + 2 * s.slope * amount;
    // Time until the area under the line reaches `amount`, in the form that is exact at slope 0.
    if (square > 0 && here + std::sqrt(square) > 0) {
      const double reached = position_ + 2 * amount / (here + std::sqrt(square));
      if (reached < s.end) {
        position_ = reached;
        return Duration(static_cast<std::int64_t>(position_ * 1e9));
      }
    }
    if (current_ + 1 == segments_.size()) return std::nullopt;
    const double rest = s.end - position_;
    amount -= rest * (here + s.slope * rest / 2);
    if (amount < 0) amount = 0;
    position_ = s.end;
  }
  return std::nullopt;
}

double RateProfile::at(Duration t) const noexcept {
  const double seconds = to_seconds(t);
  double rate = 0;
  for (const Segment& s : segments_) {
    if (seconds < s.start) break;
    rate = s.rate + s.slope * (seconds - s.start);
  }
  return rate;
}

double interpolate(const std::vector<RatePoint>& points, Duration t) noexcept {
  if (points.empty()) return 0;
  if (t <= points.front().at) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (t > points[i].at) continue;
    const double span = to_seconds(points[i].at - points[i - 1].at);
    const double part = span <= 0 ? 1 : to_seconds(t - points[i - 1].at) / span;
    return points[i - 1].value + part * (points[i].value - points[i - 1].value);
  }
  return points.back().value;
}

}  // namespace weir::inline v0::sim
