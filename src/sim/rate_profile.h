#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/base/time.h"

namespace weir::inline v0::sim {

/// A rate that changes over time: steps, or straight lines between points.
struct RatePoint {
  Duration at{};     // since the start of the run
  double value = 0;  // per second
  bool operator==(const RatePoint&) const = default;
};

enum class RateShape : std::uint8_t { kSteps, kRamps };

/// Turns a changing rate into instants: advances until the integral of the rate reaches the
/// requested amount. Amounts of one give a constant stream, unit exponential amounts a Poisson
/// stream whose rate follows the profile exactly, not by thinning.
///
/// Promises: instants never go back. Before the first point the rate is zero; after the last it is
/// constant. Thread-safety: none. Cost: O(1) amortised, no allocation.
class RateProfile {
 public:
  RateProfile() = default;
  RateProfile(std::vector<RatePoint> points, RateShape shape);

  /// Advances by `amount` and returns the instant; nullopt if it is never reached.
  [[nodiscard]] std::optional<Duration> advance(double amount);
  /// Skips everything before an instant.
  void seek(Duration t) noexcept {
    position_ = position_ < to_seconds(t) ? to_seconds(t) : position_;
  }
  /// The rate at an instant.
  [[nodiscard]] double at(Duration t) const noexcept;

 private:
  struct Segment {
    double start = 0;  // seconds
    double end = 0;    // seconds; infinity for the last
    double rate = 0;   // at its start
    double slope = 0;  // per second squared
  };
  std::vector<Segment> segments_;
  std::size_t current_ = 0;
  double position_ = 0;  // seconds
};

/// A quantity on straight lines between points (for example memory in use); constant outside them.
[[nodiscard]] double interpolate(const std::vector<RatePoint>& points, Duration t) noexcept;

}  // namespace weir::inline v0::sim
