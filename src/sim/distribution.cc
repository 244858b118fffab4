#include "distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "latency_histogram.h"
#include "replay_math.h"

namespace weir::inline v0::sim {
namespace {

Duration from_double(double ns) noexcept {
  return Duration(static_cast<std::int64_t>(std::clamp(ns, 0.0, 9.0e18)));
}
double as_double(Duration d) noexcept {
  return static_cast<double>(d.count());
}

// The area under e^-x in layers of equal area, from the bottom layer, which includes the tail, up.
struct Ziggurat {
  static constexpr std::size_t kCount = 256;
  static constexpr double kTail = 7.69711747013104972;  // where the tail begins
  static constexpr double kArea = 0.0039496598225815571993;

  Ziggurat() noexcept {
    right[0] = kArea / replay_exp(-kTail);
    right[1] = kTail;
    for (std::size_t i = 2; i < kCount; ++i) {
      right[i] = -replay_log(kArea / right[i - 1] + replay_exp(-right[i - 1]));
    }
    right[kCount] = 0;
    for (std::size_t i = 0; i <= kCount; ++i) height[i] = replay_exp(-right[i]);
  }

  std::array<double, kCount + 1> right{};   // right end of a layer
  std::array<double, kCount + 1> height{};  // e^-right: its lower edge
};

// The polar method; its second value is dropped, so that a draw has no state.
double draw_normal(Rng& rng) noexcept {
  for (;;) {
    const double x = 2 * rng.unit() - 1;
    const double y = 2 * rng.unit() - 1;
    const double s = x * x + y * y;
    if (s > 1e-300 && s < 1) return x * std::sqrt(-2 * replay_log(s) / s);
  }
}

Duration at_share(const Distribution& d, double u) {
  const auto above = std::upper_bound(d.shares.begin(), d.shares.end(), u);
  if (above == d.shares.end()) return d.values.back();
  if (above == d.shares.begin()) return d.values.front();
  const auto i = static_cast<std::size_t>(above - d.shares.begin());
  const double span = d.shares[i] - d.shares[i - 1];
  const double part = span <= 0 ? 0 : (u - d.shares[i - 1]) / span;
  const double low = std::max(1.0, as_double(d.values[i - 1]));
  const double high = std::max(1.0, as_double(d.values[i]));
  return from_double(low * replay_pow(high / low, part));
}

LatencyHistogram sample_of(const Distribution& d) {
  LatencyHistogram histogram;
  Rng rng(20240229);
  for (int i = 0; i < 200000; ++i) histogram.add(d.draw(rng));
  return histogram;
}

}  // namespace

// Marsaglia and Tsang's ziggurat. 99 of 100 draws lie completely inside a layer and cost one random
// word, one multiplication and one comparison.
double draw_unit_exponential(Rng& rng) noexcept {
  static const Ziggurat kLayers;
  for (;;) {
    const std::uint64_t word = rng.next_u64();
    const std::size_t layer = word % Ziggurat::kCount;
    const double x = static_cast<double>(word >> 11U) * 0x1.0p-53 * kLayers.right[layer];
    if (x < kLayers.right[layer + 1]) return x;
    if (layer == 0) return Ziggurat::kTail - replay_log(1.0 - rng.unit());
    const double low = kLayers.height[layer];
    const double high = kLayers.height[layer + 1];
    if (low + rng.unit() * (high - low) < replay_exp(-x)) return x;
  }
}

Duration Distribution::draw_usual(Rng& rng) const {
  switch (kind) {
    case DistributionKind::kConstant:
      return a;
    case DistributionKind::kUniform:
      return rng.between(a, b);
    case DistributionKind::kExponential:
      return from_double(as_double(a) * draw_unit_exponential(rng));
    case DistributionKind::kLognormal:
      return from_double(as_double(a) * replay_exp(shape * draw_normal(rng)));
    case DistributionKind::kBimodal:
      return rng.chance(share) ? b : a;
    case DistributionKind::kPareto:
      return std::min(b, from_double(as_double(a) * replay_pow(1.0 - rng.unit(), -1.0 / shape)));
    case DistributionKind::kEmpirical:
      return shares.empty() ? values[rng.below(values.size())] : at_share(*this, rng.unit());
  }
  return a;
}

Duration Distribution::draw(Rng& rng) const {
  const Duration usual = draw_usual(rng);
  if (straggler_share <= 0 || !rng.chance(straggler_share)) return usual;
  return from_double(as_double(usual) * straggler_factor);
}

Duration Distribution::mean() const {
  const double stragglers = 1 + straggler_share * (straggler_factor - 1);
  return straggler_share > 0 ? from_double(as_double(mean_usual()) * stragglers) : mean_usual();
}

Duration Distribution::mean_usual() const {
  switch (kind) {
    case DistributionKind::kConstant:
    case DistributionKind::kExponential:
      return a;
    case DistributionKind::kUniform:
      return (a + b) / 2;
    case DistributionKind::kLognormal:
      return from_double(as_double(a) * replay_exp(shape * shape / 2));
    case DistributionKind::kBimodal:
      return from_double(as_double(a) * (1 - share) + as_double(b) * share);
    case DistributionKind::kPareto:
    case DistributionKind::kEmpirical:
      break;
  }
  Distribution usual = *this;
  usual.straggler_share = 0;
  return sample_of(usual).mean();
}

Duration Distribution::quantile(double q) const {
  if (straggler_share > 0) return sample_of(*this).quantile(q);
  if (kind == DistributionKind::kConstant) return a;
  if (kind == DistributionKind::kExponential) return from_double(-as_double(a) * replay_log(1 - q));
  return sample_of(*this).quantile(q);
}

}  // namespace weir::inline v0::sim
