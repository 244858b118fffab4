#include "live/upstream_history.h"

#include <algorithm>
#include <cmath>

namespace weir::inline v0::gateway {
namespace {

constexpr double kSecondsKept = 900;  // then what a bin holds counts for half
constexpr double kSecondsMin = 5;     // fewer say nothing

std::string rounded(double value) {
  return std::to_string(static_cast<std::int64_t>(std::lround(value)));
}

}  // namespace

std::size_t UpstreamHistory::bin_of(double in_flight) noexcept {
  constexpr double kSingle = 8;
  if (in_flight < kSingle) return static_cast<std::size_t>(std::max(in_flight, 0.0));
  const double beyond = 4 * std::log2(in_flight / kSingle);
  return std::min(static_cast<std::size_t>(kSingle + beyond), kKneeBins - 1);
}

void UpstreamHistory::note_answers(double answered, double latency_ms, double p99_ms) noexcept {
  if (answered <= 0 || latency_ms <= 0) return;
  const double in_flight = answered * latency_ms / 1000;
  Bin& bin = bins_[bin_of(in_flight)];
  if (bin.seconds >= kSecondsKept) {
    bin = {bin.in_flight / 2, bin.answered / 2, bin.p99_ms / 2, bin.seconds / 2};
  }
  bin.in_flight += in_flight;
  bin.answered += answered;
  bin.p99_ms += p99_ms;
  bin.seconds += 1;
}

std::vector<KneePoint> UpstreamHistory::knee() const {
  std::vector<KneePoint> points;
  for (const Bin& bin : bins_) {
    if (bin.seconds <= 0) continue;
    points.push_back({.in_flight = bin.in_flight / bin.seconds,
                      .answered = bin.answered / bin.seconds,
                      .p99_ms = bin.p99_ms / bin.seconds,
                      .seconds = bin.seconds});
  }
  return points;
}

std::string knee_sentence(const std::vector<KneePoint>& knee) {
  std::vector<KneePoint> sure;
  for (const KneePoint& point : knee) {
    if (point.seconds >= kSecondsMin) sure.push_back(point);
  }
  if (sure.size() < 2) return "too few different loads were seen to judge the limit";
  const KneePoint& high = sure.back();
  const KneePoint& low = sure[sure.size() - 2];
  const double gain = high.answered / low.answered - 1;
  const double growth = high.in_flight / low.in_flight - 1;
  std::string text = rounded(low.in_flight) + " to " + rounded(high.in_flight) +
                     " in flight gave " + (gain < 0 ? "" : "+") + rounded(100 * gain) + " %: ";
  if (gain < growth / 4) return text + "a higher limit buys nothing";
  if (gain < growth / 2) return text + "a higher limit buys little";
  return text + "with more in flight, more was answered";
}

}  // namespace weir::inline v0::gateway
