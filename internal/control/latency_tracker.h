#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "weir/base/time.h"
#include "weir/policy/hedge_config.h"

#include "control/latency_histogram.h"
#include "policy/hedge_delay.h"

namespace weir::inline v0::inline control {

/// How an attempt ended, as its latency sees it.
enum class AttemptEnd : std::uint8_t {
  kAnswered,   // it took this long
  kCancelled,  // our side ended it, because another attempt won or the client left: it would have
               // taken longer than this
  kTimedOut,   // an error that took this long
  kFailed,     // an error; its time says nothing about how fast the endpoint answers
};

struct AttemptLatency {
  Duration latency{};  // from the last byte of the request to the first of the answer, or the end
  AttemptEnd end = AttemptEnd::kAnswered;
};

/// What a tracker knows at one moment.
struct LatencyReading {
  policy::HedgeDelay delay{};  // of this endpoint alone
  std::uint32_t samples = 0;   // in the window
  Duration mean{};
  Duration median{};
  double error_rate = 0;  // exponential average, [0, 1]

  [[nodiscard]] bool known() const noexcept { return samples >= policy::kMeanSamplesMin; }
};

/// The latencies of one endpoint and one class of operations over the last window (30 s), which
/// give its hedge delay.
///
/// Two log histograms of half a window each: a sample is forgotten after one half to one window.
/// Every end of an attempt is recorded. An error is never a fast answer: it counts in the error
/// rate only, unless it is a timeout, which counts as a latency too. A cancelled attempt has taken
/// at least its time, so it counts only if it is above the delay that is known: it can raise the
/// delay and not lower it.
///
/// Promises: below 65,535 samples per bucket and half window no sample is lost or counted twice;
/// then all counts of that half are halved, which keeps their proportions. Time that runs backwards
/// counts as no time.
/// Thread-safety: any member, any thread; a lock per tracker.
/// Cost: record() O(1); hedge_delay() O(1), and a scan of the histogram after every 32nd part of
/// the window's samples; reading() one scan. No allocation; 2 KB.
/// Lifetime: independent of its endpoint.
class LatencyTracker {
 public:
  explicit LatencyTracker(const policy::HedgeConfig& config = {}) noexcept : config_(config) {}
  LatencyTracker(const LatencyTracker&) = delete;
  LatencyTracker& operator=(const LatencyTracker&) = delete;

  void record(const AttemptLatency& sample, TimePoint now) noexcept;
  /// How long to wait for this endpoint; a call then applies policy::capped_by().
  [[nodiscard]] policy::HedgeDelay hedge_delay(TimePoint now) noexcept;
  [[nodiscard]] LatencyReading reading(TimePoint now) noexcept;
  /// Holds from the next call on; what is known stays.
  void set_config(const policy::HedgeConfig& config) noexcept;

 private:
  struct Half {
    std::array<std::uint16_t, LatencyBuckets::kCount> counts{};
    std::uint32_t samples = 0;
  };
  /// Both halves, as percentile() reads them.
  struct Sum {
    const Half& a;
    const Half& b;
    std::uint32_t operator[](std::size_t i) const noexcept { return a.counts[i] + b.counts[i]; }
  };

  void forget_before(TimePoint now) noexcept;
  void add(Duration latency) noexcept;
  [[nodiscard]] std::uint32_t samples() const noexcept {
    return halves_[0].samples + halves_[1].samples;
  }
  [[nodiscard]] policy::HedgeDelay current_delay(const policy::HedgeConfig& config) noexcept;

  std::mutex mutex_;
  policy::HedgeConfig config_;
  std::array<Half, 2> halves_{};
  std::uint32_t current_ = 0;  // the half that is being filled
  std::uint32_t unread_ = 0;   // samples since quantile_ was computed
  TimePoint began_{};          // of the current half; zero: nothing was recorded
  Duration quantile_{};
  policy::LatencyMean mean_{};
  double error_rate_ = 0;
};

}  // namespace weir::inline v0::inline control
