#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/base/time.h"

namespace weir::inline v0 {

/// SplitMix64: turns a counter into well mixed words; used to expand a 64-bit seed to a state.
[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// A seeded random stream (xoshiro256++), passed as an argument so that every decision can be
/// replayed.
///
/// Promises: equal seeds give equal streams with every compiler and library (it uses no std
/// distribution, and its only floating point step is exact). Copying copies the position. Do not
/// use it for secrets: its outputs reveal the state.
/// Thread-safety: none; give every owner its own, by fork(). Cost: about 1 ns a draw, 32 bytes.
class Rng {
 public:
  constexpr explicit Rng(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) word = splitmix64(seed);
  }

  /// The generator at a given state; for known-answer tests and recorded runs. Not all zero.
  [[nodiscard]] static constexpr Rng from_state(const std::array<std::uint64_t, 4>& state) {
    WEIR_ASSERT((state[0] | state[1] | state[2] | state[3]) != 0);
    Rng rng(0);
    rng.state_ = state;
    return rng;
  }

  constexpr std::uint64_t next_u64() noexcept {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, n), without bias: multiply-shift; the few words that would cause a bias are
  /// drawn again. n must be positive.
  constexpr std::uint64_t below(std::uint64_t n) {
    WEIR_ASSERT(n > 0);
    Wide product = Wide{next_u64()} * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next_u64()} * n;
    }
    return static_cast<std::uint64_t>(product >> 64U);
  }

  /// Uniform in [low, high], both included.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
    WEIR_ASSERT(low <= high);
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t offset = span == ~std::uint64_t{0} ? next_u64() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
  }
  constexpr Duration between(Duration low, Duration high) {
    return Duration(between(low.count(), high.count()));
  }

  /// Uniform in [0, 1): a multiple of 2^-53, so never 1.
  constexpr double unit() noexcept { return static_cast<double>(next_u64() >> 11U) * 0x1.0p-53; }

  /// True with probability p: never at 0 or below (or NaN), always at 1 or above. Draws once.
  constexpr bool chance(double p) noexcept { return unit() < p; }

  /// A child stream, independent of the later draws of this one; advances this one by four draws.
  constexpr Rng fork() noexcept {
    Rng child(0);
    for (std::uint64_t& word : child.state_) {
      std::uint64_t drawn = next_u64();
      word ^= splitmix64(drawn);
    }
    if ((child.state_[0] | child.state_[1] | child.state_[2] | child.state_[3]) == 0) {
      child = Rng(0);  // the all-zero state would produce only zeros
    }
    return child;
  }

  bool operator==(const Rng&) const = default;

 private:
  __extension__ using Wide = unsigned __int128;
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace weir::inline v0
