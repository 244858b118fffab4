#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weir/policy/baseline_exchange.h"

namespace weir::inline v0::inline policy {

/// The baseline that the gateways before one service have in common, and the instants of their
/// probes.
///
/// One gateway cannot measure the service alone: what it gives up the others take, so latency stays
/// and it sees no queue at any length of the queue. If all lower their limits at one instant, each
/// sees what a single gateway would see.
///
///   shared    the median of the measured baselines: what fewer than half of the gateways say does
///             not count, and the lowest of many measurements would be too low by chance
///   replaced  once half of the reporting gateways have measured in the newest common probe, only
///             what was measured in it counts: what a probe cannot reproduce is gone
///   expires   120 s after it was measured
///   probes    every 45 s; if half of the gateways that are full want one, after 1.5 s, but not
///             before 2, 4, 8, 8 … s after the last probe; for slow services 150 (wanted:
///             20) round trips
///
/// Promises: the same calls give the same answers. A report that is older than 5 s is not `full`
/// and wants nothing; a gateway that is gone affects nothing after 120 s.
/// Thread-safety: none. Cost: O(gateways) per call; no allocation after construction.
class SharedBaseline {
 public:
  static constexpr Duration kExpires = std::chrono::seconds(120);
  static constexpr Duration kProbeEvery = std::chrono::seconds(45);
  static constexpr Duration kNotice = std::chrono::milliseconds(1500);
  static constexpr Duration kPauseFirst = std::chrono::seconds(2);
  static constexpr Duration kPauseLast = std::chrono::seconds(8);
  static constexpr Duration kReportCounts = std::chrono::seconds(5);

  SharedBaseline(std::uint32_t gateways, TimePoint start);

  void report(std::uint32_t gateway, const BaselineReport& report, TimePoint now) noexcept;
  [[nodiscard]] BaselineNews news(TimePoint now) noexcept;

 private:
  struct Member {
    BaselineReport report{};
    TimePoint reported_at{};
  };
  void advance(TimePoint now) noexcept;
  void bring_forward(TimePoint now) noexcept;
  [[nodiscard]] std::optional<ServiceBaseline> shared(TimePoint now) noexcept;
  [[nodiscard]] bool half_want_probe(TimePoint now) const noexcept;
  [[nodiscard]] bool half_measured_since(TimePoint instant, TimePoint now) const noexcept;

  std::vector<Member> members_;
  std::vector<ServiceBaseline> measured_;  // room for shared()
  TimePoint last_probe_;
  TimePoint next_probe_;
  Duration pause_ = kPauseFirst;  // between wanted probes
  bool wanted_ = false;           // the next probe is one
  Duration latency_{};            // of the shared baseline
};

}  // namespace weir::inline v0::inline policy
