#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weir/base/time.h"

namespace weir::inline v0::inline control {

/// The median latency of the newest answers of one endpoint, for the comparison with the others.
///
/// Its window is open until it has kSamples answers: an endpoint that is slow gets few requests,
/// and a window of one second would leave out just the one that is looked for. A few answers
/// scatter too much to be compared. The caller keeps the answers. Thread-safety: none.
class ComparedLatency {
 public:
  static constexpr std::uint32_t kSamples = 16;
  static constexpr std::uint32_t kSecondsMax = 10;  // then it is not known

  /// A second has passed; what is in the window now. True: begin a new one.
  [[nodiscard]] bool on_second(std::uint64_t samples, Duration p50) noexcept {
    ++seconds_;
    const bool enough = samples >= kSamples;
    if (!enough && seconds_ < kSecondsMax) return false;
    median_ = enough ? p50 : Duration(0);
    seconds_ = 0;
    return true;
  }
  /// 0: not known.
  [[nodiscard]] Duration median() const noexcept { return median_; }

 private:
  Duration median_{};
  std::uint32_t seconds_ = 0;
};

/// The longest of these medians divided by the (lower) median of them; 0 if fewer than two are
/// known.
[[nodiscard]] inline double worst_of(std::vector<Duration> medians) {
  std::erase(medians, Duration(0));
  if (medians.size() < 2) return 0;
  std::sort(medians.begin(), medians.end());
  const Duration usual = medians[(medians.size() - 1) / 2];
  return to_millis(medians.back()) / std::max(to_millis(usual), 1e-3);
}

}  // namespace weir::inline v0::inline control
