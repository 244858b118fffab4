#include "replay_math.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace weir::inline v0::sim {
constexpr double kLn2High = 0x1.62e42fefa38p-1;  // the low bits are zero: k × this is exact
constexpr double kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kSqrt2 = 1.4142135623730951;
constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52U) - 1U;
constexpr std::uint64_t kExponentOfOne = std::uint64_t{1023} << 52U;

// x = m × 2^e with m in [1/√2, √2]; log m = 2 atanh((m-1)/(m+1)) as a power series.
double replay_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52U) - 1023;
  auto m = std::bit_cast<double>((bits & kMantissa) | kExponentOfOne);
  if (m > kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  // 1/3 + z/5 + z²/7 + … + z⁹/21, in two halves that the processor can compute in parallel.
  const double z2 = z * z;
  const double even =
      1.0 / 3 + z2 * (1.0 / 7 + z2 * (1.0 / 11 + z2 * (1.0 / 15 + z2 * (1.0 / 19))));
  const double odd = 1.0 / 5 + z2 * (1.0 / 9 + z2 * (1.0 / 13 + z2 * (1.0 / 17 + z2 * (1.0 / 21))));
  const double series = even + z * odd;
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (2.0 * s * (1.0 + z * series) + e * kLn2Low);
}

// x = k ln 2 + r with |r| ≤ ln2 / 2; e^r by its Taylor series.
double replay_exp(double x) noexcept {
  const double held = std::clamp(x, -700.0, 700.0);
  const double scaled = held / (kLn2High + kLn2Low);
  const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const auto kd = static_cast<double>(k);
  const double r = (held - kd * kLn2High) - kd * kLn2Low;
  double series = 1.0;
  for (int n = 14; n >= 1; --n) series = series * r / static_cast<double>(n) + 1.0;
  const auto power = static_cast<std::uint64_t>(k + 1023) << 52U;
  return series * std::bit_cast<double>(power);
}

double replay_pow(double x, double y) noexcept {
  return replay_exp(y * replay_log(x));
}

}  // namespace weir::inline v0::sim
