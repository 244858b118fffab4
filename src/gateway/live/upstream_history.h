#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/policy/limit_policy.h"

#include "live/latest.h"
#include "policy/diagnosis.h"

namespace weir::inline v0::gateway {

/// One second of one upstream. Rates are per second; a latency of 0 is not known.
struct UpstreamRow {
  float offered = 0;
  float admitted = 0;
  float refused = 0;
  float failed = 0;
  float in_flight = 0;
  float waiting = 0;
  float limit = 0;
  float p50_ms = 0;
  float p99_ms = 0;
  float baseline_ms = 0;
  policy::Cause cause = policy::Cause::kFine;
};

/// A change of the limit within a second.
struct LimitMove {
  std::int64_t unix_seconds = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  LimitReason reason = LimitReason::kHold;
};

/// What the service did with that many requests in flight.
struct KneePoint {
  double in_flight = 0;
  double answered = 0;  // per second
  double p99_ms = 0;
  double seconds = 0;  // that it rests on; old ones count for less
};

/// A quarter of an hour of one upstream, and how its throughput depends on what is in flight.
///
/// Thread-safety: none. Cost: O(1) per second, fixed memory.
class UpstreamHistory {
 public:
  static constexpr std::size_t kSeconds = 900;
  static constexpr std::size_t kMoves = 64;
  static constexpr std::size_t kKneeBins = 32;

  void push(const UpstreamRow& row) noexcept { rows_.push(row); }
  void moved(const LimitMove& move) noexcept { moves_.push(move); }
  /// A second with so many answers, of this mean latency. What was in flight follows of both
  /// (Little's law): a count at one instant would scatter.
  void note_answers(double answered, double latency_ms, double p99_ms) noexcept;

  [[nodiscard]] const Latest<UpstreamRow, kSeconds>& rows() const noexcept { return rows_; }
  [[nodiscard]] const Latest<LimitMove, kMoves>& moves() const noexcept { return moves_; }
  /// The bins that hold anything, by what was in flight.
  [[nodiscard]] std::vector<KneePoint> knee() const;

  /// The bin for so many in flight: one each up to 8, then four per factor of two.
  [[nodiscard]] static std::size_t bin_of(double in_flight) noexcept;

 private:
  struct Bin {  // sums
    double in_flight = 0;
    double answered = 0;
    double p99_ms = 0;
    double seconds = 0;
  };
  Latest<UpstreamRow, kSeconds> rows_;
  Latest<LimitMove, kMoves> moves_;
  std::array<Bin, kKneeBins> bins_{};
};

/// What the knee says of the limit, for people.
[[nodiscard]] std::string knee_sentence(const std::vector<KneePoint>& knee);

}  // namespace weir::inline v0::gateway
