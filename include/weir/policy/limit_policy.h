#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/base/time.h"

namespace weir::inline v0::policy {

/// One closed measurement window of one scope: what the limiter learns from. Built by control's
/// SampleWindow, replayed by tests and scenarios.
struct LimitSample {
  TimePoint opened_at{};
  TimePoint closed_at{};
  std::uint32_t sample_count = 0;     // latencies in this window
  std::uint32_t abandoned_count = 0;  // of those: the client left, so it would have been longer
  Duration latency_avg{};             // of those; zero when there are none
  Duration latency_min{};
  Duration latency_p10{};  // within 4 %: from a log histogram
  Duration latency_p50{};
  Duration latency_p90{};
  std::uint32_t in_flight = 0;       // units when the window closed
  std::uint32_t in_flight_max = 0;   // peak: an idle window must not grow the limit
  std::uint32_t overload_count = 0;  // finished with Outcome::kOverload
  std::uint32_t refused_count = 0;   // refused or made to wait by the limit
};

/// Why the limit is what it is now.
enum class LimitReason : std::uint8_t {
  kHold,        // inside the band: nothing to do
  kNoSamples,   // an empty or too thin window decides nothing
  kGrow,        // no queue, and the limit was used
  kNotUsed,     // would grow, but nobody used the limit
  kQueueing,    // latency says that work queues
  kOverload,    // the protected service said "overload"
  kAtFloor,     // would shrink, is at the minimum
  kAtCeiling,   // would grow, is at the maximum
  kStarting,    // exponential start
  kProbe,       // lowered for a moment to learn the baseline anew
  kProbeEnded,  // the probe is over, back to work
  kPeakBound,   // held to a multiple of the recent peak in flight
  kConfigured,  // set by configuration
};

[[nodiscard]] std::string_view name_of(LimitReason reason) noexcept;

struct LimitDecision {
  std::uint32_t limit = 0;
  LimitReason reason = LimitReason::kHold;
  double queue_estimate = 0;  // requests that wait inside the protected service
  Duration baseline{};        // latency without queueing, as believed now; zero when unknown
  /// Latencies of requests granted before this instant are to be left out of coming windows.
  TimePoint samples_from{};
};

/// When a window closes: at `duration`, or earlier once `early_close_samples` (0 = never) came in
/// and `duration_min` passed.
struct WindowRules {
  Duration duration = std::chrono::seconds(1);
  Duration duration_min = std::chrono::milliseconds(100);
  std::uint32_t early_close_samples = 0;
};

struct LimitBounds {
  std::uint32_t min = 8;
  std::uint32_t initial = 128;
  std::uint32_t max = 1024;
};

/// Turns closed windows into a concurrency limit: fixed, AIMD, Vegas, gradient, auto.
///
/// Promises: the limit stays in [min(min, initial), max] and is at least 1; equal construction and
/// equal windows give equal limits. Reads no clock, writes no log or metric: the caller publishes
/// what it returns.
/// Thread-safety: none, the owner serialises. Cost: O(1), no allocation.
class LimitPolicy {
 public:
  LimitPolicy() = default;
  LimitPolicy(const LimitPolicy&) = delete;
  LimitPolicy& operator=(const LimitPolicy&) = delete;
  virtual ~LimitPolicy() = default;

  [[nodiscard]] virtual LimitDecision on_window(const LimitSample& window) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t limit() const noexcept = 0;
  /// How the owner should cut windows for this policy from now on.
  [[nodiscard]] virtual WindowRules window_rules() const noexcept = 0;
  /// Live reconfiguration; the limit is clamped into the new bounds at once.
  virtual void set_bounds(const LimitBounds& bounds) noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

}  // namespace weir::inline v0::policy

namespace weir::inline v0 {
using policy::LimitBounds;
using policy::LimitDecision;
using policy::LimitPolicy;
using policy::LimitReason;
using policy::LimitSample;
using policy::name_of;
using policy::WindowRules;
}  // namespace weir::inline v0
