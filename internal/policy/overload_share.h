#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/policy/limit_policy.h"

namespace weir::inline v0::inline policy {

/// Answers of the protected service: good ones, and those that reported overload.
struct OutcomeCounts {
  std::uint64_t good = 0;
  std::uint64_t overloaded = 0;

  [[nodiscard]] std::uint64_t all() const noexcept { return good + overloaded; }
};

/// The same answers, divided by where they came from. Each dimension has a few buckets; a request
/// whose actor, route or endpoint is not known is in no bucket of that dimension.
struct OutcomeSources {
  enum class Dimension : std::uint8_t { kActor, kRoute, kEndpoint };
  static constexpr std::size_t kDimensions = 3;
  static constexpr std::size_t kBuckets = 16;

  OutcomeCounts total;
  std::array<std::array<OutcomeCounts, kBuckets>, kDimensions> buckets{};
};

/// Which share of the answers counts as overload of the service, so that nobody can pull the limit
/// down with answers that a client can choose.
///
///   share = overloaded / all, over at least 24 answers of which 20 report overload, or over 100
///   and for each source: the same without that source, if the others gave at least 8 answers
///   counts: the smallest of these, if it is at least 0.2; else nothing
///
/// So a few overload answers among many good ones change nothing, and neither does one actor, route
/// or endpoint whose answers all report overload while the others' are good. A service that answers
/// most requests this way is overloaded whoever asks.
///
/// Promises: the result is 0 or in [0.2, 1], and never above the plain share.
/// Thread-safety: holds no state. Cost: O(buckets).
struct OverloadShare {
  static constexpr std::uint64_t kAnswersMin = 24;
  // Of 24 answers five report overload by chance once in 20 times if one in eleven does; of 100, 20
  // once in two thousand times.
  static constexpr std::uint64_t kOverloadedMin = 20;
  static constexpr std::uint64_t kAnswersEnough = 100;
  static constexpr std::uint64_t kOthersMin = 8;
  static constexpr double kCountsFrom = 0.2;

  /// None: too few answers to tell. With `wait_for_others` also if a source may have caused it
  /// alone and the others have given some answers, but not enough.
  [[nodiscard]] static std::optional<double> of(const OutcomeSources& outcomes,
                                                bool wait_for_others = false) noexcept;
};

/// The number of overload answers that, beside `good` answers, makes this share of all.
/// `at_most`: as many as there were.
[[nodiscard]] std::uint32_t overloads_for_share(double share, std::uint32_t good,
                                                std::uint32_t at_most) noexcept;

/// The share of a window's answers that reported overload; zero for a window without answers.
[[nodiscard]] inline double overload_share_of(const LimitSample& window) noexcept {
  const double all = static_cast<double>(window.sample_count) + window.overload_count;
  return all > 0 ? window.overload_count / all : 0;
}

}  // namespace weir::inline v0::inline policy
