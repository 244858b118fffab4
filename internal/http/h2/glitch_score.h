#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"

namespace weir::inline v0::http::h2 {

enum class GlitchVerdict : std::uint8_t {
  kBearable,
  kGoaway,  // finish open streams, accept no new ones
  kClose,
};

/// The score of one connection: glitches raise it, and it decays with time.
///
///   score(now) = (empty_at - now) × decay, at least 0
///
/// so its whole state is one time. Promises: the verdict is monotone in the score; a peer that
/// stays below `decay` points per second is never closed.
/// Thread-safety: none. Cost: a few instructions.
class GlitchScore {
 public:
  explicit GlitchScore(const H2Limits& limits) noexcept : limits_(&limits) {}

  GlitchVerdict add(H2Glitch glitch, TimePoint now) noexcept {
    ++counts_[static_cast<std::size_t>(glitch)];
    ++total_;
    const std::uint32_t weight = limits_->weight_of(glitch);
    empty_at_ = std::max(empty_at_, now) + time_of(weight);
    return verdict(now);
  }

  [[nodiscard]] double score(TimePoint now) const noexcept {
    return empty_at_ <= now ? 0 : to_seconds(empty_at_ - now) * limits_->glitch_decay_per_second;
  }
  [[nodiscard]] std::uint64_t count(H2Glitch glitch) const noexcept {
    return counts_[static_cast<std::size_t>(glitch)];
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return total_; }

 private:
  [[nodiscard]] Duration time_of(std::uint32_t points) const noexcept {
    const std::int64_t one = 1'000'000'000 / std::int64_t{limits_->glitch_decay_per_second};
    return Duration(one * points);
  }
  [[nodiscard]] GlitchVerdict verdict(TimePoint now) const noexcept {
    const Duration left = empty_at_ - now;
    if (left >= time_of(limits_->glitch_limit)) return GlitchVerdict::kClose;
    const Duration goaway = time_of(limits_->glitch_limit) / 100 * limits_->glitch_goaway_percent;
    return left >= goaway ? GlitchVerdict::kGoaway : GlitchVerdict::kBearable;
  }

  const H2Limits* limits_;
  TimePoint empty_at_{};
  std::array<std::uint32_t, kH2GlitchCount> counts_{};
  std::uint64_t total_ = 0;
};

/// Frames of one kind that are still free; see H2FrameBudget.
///
/// Promises: never holds more than kEarnedMax; time restores at most `burst`.
class FrameAllowance {
 public:
  explicit FrameAllowance(const H2FrameBudget& budget) noexcept
      : budget_(&budget), left_(budget.burst) {}

  void on_stream() noexcept { earn(budget_->per_stream); }
  void on_frame_sent() noexcept { earn(budget_->per_frame_sent); }

  /// True if this frame is free.
  [[nodiscard]] bool take(TimePoint now) noexcept {
    if (left_ == 0) refill(now);
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  static constexpr std::uint32_t kEarnedMax = 100'000;

  void earn(std::uint32_t frames) noexcept { left_ = std::min(left_ + frames, kEarnedMax); }
  /// Only when none is left, so that the time is computed as rarely as possible.
  void refill(TimePoint now) noexcept {
    if (refilled_at_ == TimePoint{}) refilled_at_ = now;
    const auto frames = static_cast<std::int64_t>(to_seconds(now - refilled_at_) *
                                                  static_cast<double>(budget_->per_second));
    if (frames <= 0) return;
    left_ = static_cast<std::uint32_t>(std::min<std::int64_t>(frames, budget_->burst));
    refilled_at_ = now;
  }

  const H2FrameBudget* budget_;
  TimePoint refilled_at_{};
  std::uint32_t left_;
};

}  // namespace weir::inline v0::http::h2
