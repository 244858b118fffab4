#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/policy/baseline_exchange.h"

namespace weir::inline v0::inline policy {

/// One closed measurement window of one scope, the input of a limiter. Control's SampleWindow makes
/// it; tests and scenarios replay it.
struct LimitSample {
  TimePoint opened_at{};
  TimePoint closed_at{};
  std::uint32_t sample_count = 0;     // latencies in this window
  std::uint32_t abandoned_count = 0;  // of those: the client left before the end
  Duration latency_avg{};             // of those; zero when there are none
  Duration latency_min{};
  Duration latency_p10{};  // within 4 %: from a log histogram
  Duration latency_p50{};
  Duration latency_p90{};
  std::uint32_t in_flight = 0;       // units when the window closed
  std::uint32_t in_flight_max = 0;   // peak; the limit must not grow in an idle window
  std::uint32_t overload_count = 0;  // finished with Outcome::kOverload
  std::uint32_t refused_count = 0;   // refused or waiting because of the limit
};

/// The reason for the current limit.
enum class LimitReason : std::uint8_t {
  kHold,        // the queue is inside the target range
  kNoSamples,   // the window has too few samples
  kGrow,        // no queue, and the limit was used
  kNotUsed,     // would grow, but the limit was not used
  kQueueing,    // latency shows a queue
  kOverload,    // the protected service reported overload
  kAtFloor,     // would shrink, is at the minimum
  kAtCeiling,   // would grow, is at the maximum
  kStarting,    // exponential start
  kProbe,       // lowered for a short time to measure the baseline
  kProbeEnded,  // the probe is over
  kPeakBound,   // at most a multiple of the recent peak in flight
  kConfigured,  // set by configuration
};
WEIR_ENUM_NAMES(LimitReason, "hold", "no_samples", "grow", "not_used", "queueing", "overload",
                "at_floor", "at_ceiling", "starting", "probe", "probe_ended", "peak_bound",
                "configured")

struct LimitDecision {
  std::uint32_t limit = 0;
  LimitReason reason = LimitReason::kHold;
  double queue_estimate = 0;  // requests queued inside the protected service
  Duration baseline{};        // latency without a queue; zero if unknown
  /// Later windows must leave out the latencies of requests granted before this time.
  TimePoint samples_from{};
};

/// When a window closes: after `duration`, or earlier when it has `early_close_samples` (0 = never)
/// and `duration_min` has passed.
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

/// Computes a concurrency limit from closed windows: fixed, AIMD, Vegas, gradient, auto.
///
/// Promises: the limit stays in [min(min, initial), max] and is at least 1; the same construction
/// and the same windows give the same limits. It reads no clock and writes no log or metric; the
/// caller publishes what it returns.
/// Thread-safety: none; the owner serialises calls. Cost: O(1), no allocation.
class LimitPolicy {
 public:
  LimitPolicy() = default;
  LimitPolicy(const LimitPolicy&) = delete;
  LimitPolicy& operator=(const LimitPolicy&) = delete;
  virtual ~LimitPolicy() = default;

  [[nodiscard]] virtual LimitDecision on_window(const LimitSample& window) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t limit() const noexcept = 0;
  /// When the owner should close windows for this policy from now on.
  [[nodiscard]] virtual WindowRules window_rules() const noexcept = 0;
  /// Changes the bounds at run time; the limit is clamped to them at once.
  virtual void set_bounds(const LimitBounds& bounds) noexcept = 0;
  /// Hears what other gateways before the same service know, and says what this one knows. Call it
  /// about once a second if there are such gateways, and never otherwise. A policy without a
  /// baseline ignores it.
  [[nodiscard]] virtual BaselineReport exchange(const BaselineNews& /*news*/) noexcept {
    return {};
  }
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

}  // namespace weir::inline v0::inline policy
