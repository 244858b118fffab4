#include "replay_math.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

TEST(ReplayMath, AgreesWithTheCLibraryToFourteenDigits) {
  for (double x = 1e-18; x < 1e18; x *= 1.37) {
    const double expected = std::log(x);
    EXPECT_NEAR(replay_log(x), expected, 1e-14 * std::max(1.0, std::abs(expected))) << x;
  }
  for (double x = -40; x < 40; x += 0.173) {
    EXPECT_NEAR(replay_exp(x) / std::exp(x), 1.0, 2e-14) << x;
  }
  EXPECT_NEAR(replay_pow(2.0, 10.0), 1024.0, 1e-9);
  EXPECT_NEAR(replay_pow(0.3, -1.7) / std::pow(0.3, -1.7), 1.0, 1e-13);
}

TEST(ReplayMath, KnownPointsAreExact) {
  EXPECT_EQ(replay_log(1.0), 0.0);
  EXPECT_EQ(replay_exp(0.0), 1.0);
  EXPECT_EQ(replay_exp(1e9), replay_exp(700.0));
  EXPECT_GT(replay_exp(-1e9), 0.0);
}

TEST(ReplayMath, GivesTheSameBitsWithEveryCompiler) {
  // Recorded once; every compiler and machine must give the same bits.
  double sum = 0;
  for (int i = 1; i <= 1000; ++i) sum += replay_log(i * 0.0137) + replay_exp(-i * 0.0071);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sum), 0x409b87fe8f90a4b3U)
      << std::hex << std::bit_cast<std::uint64_t>(sum);
}

}  // namespace
}  // namespace weir::sim
